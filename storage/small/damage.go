package small

import (
	"sync"
	"sync/atomic"
	"time"
)

// certainAfter is how many rewrites the disk has to refuse to read for before what it does not read is taken for
// damaged.
const certainAfter = 5

// Damage says whether files of the instance are damaged, and when they are to be written anew. It is safe for
// concurrent use.
type Damage struct {
	met   atomic.Bool
	begun atomic.Uint64 // rewrites

	mu     sync.Mutex
	unread int       // rewrites, one after the other, that met what the disk does not read
	after  time.Time // when a rewrite is due
}

// Note says that a compaction met a damaged file. It reports whether that is news.
func (d *Damage) Note() (first bool) { return !d.met.Swap(true) }

// Met reports whether one did, and the files were not written anew since.
func (d *Damage) Met() bool { return d.met.Load() }

// Due reports whether the files are to be written anew now.
func (d *Damage) Due() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Met() && time.Until(d.after) <= 0
}

// Postpone has Due be false for a while. It reports whether this call did so, and not one before.
func (d *Damage) Postpone(wait time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Until(d.after) > 0 {
		return false
	}
	d.after = time.Now().Add(wait)
	return true
}

// Begin counts a rewrite, and returns how many have begun.
func (d *Damage) Begin() uint64 { return d.begun.Add(1) }

// Begun is how many rewrites have begun.
func (d *Damage) Begun() uint64 { return d.begun.Load() }

// Unread says that a rewrite met what the disk does not read, which is not damaged for certain.
func (d *Damage) Unread() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unread++
}

// Certain reports whether what the disk does not read is taken for damaged.
func (d *Damage) Certain() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unread >= certainAfter
}

// Mended says that a rewrite has ended well. The next is not due before a while.
func (d *Damage) Mended(wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.met.Store(false)
	d.unread, d.after = 0, time.Now().Add(wait)
}

// Righted says that what was damaged is whole again, without a rewrite.
func (d *Damage) Righted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.met.Store(false)
	d.unread = 0
}

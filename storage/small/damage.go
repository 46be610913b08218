package small

import (
	"sync/atomic"
	"time"
)

// certainAfter is how many rewrites have to fail before what the disk does not read is taken for damaged.
const certainAfter = 5

// Damage says whether files of the instance are damaged, and when they are to be written anew. It is safe for
// concurrent use.
type Damage struct {
	met    atomic.Bool
	after  atomic.Int64  // when a rewrite is due, in Unix nanoseconds
	begun  atomic.Uint64 // rewrites
	failed atomic.Int32  // rewrites, one after the other
}

// Note says that a compaction met a damaged file.
func (d *Damage) Note() { d.met.Store(true) }

// Met reports whether one did, and the files were not written anew since.
func (d *Damage) Met() bool { return d.met.Load() }

// Due reports whether the files are to be written anew now.
func (d *Damage) Due() bool { return d.Met() && time.Now().UnixNano() >= d.after.Load() }

// Postpone has Due be false for a while. It reports whether this call did so, and not one before.
func (d *Damage) Postpone(wait time.Duration) bool {
	now, last := time.Now(), d.after.Load()
	return last < now.UnixNano() && d.after.CompareAndSwap(last, now.Add(wait).UnixNano())
}

// Begin counts a rewrite, and returns how many have begun.
func (d *Damage) Begin() uint64 { return d.begun.Add(1) }

// Begun is how many rewrites have begun.
func (d *Damage) Begun() uint64 { return d.begun.Load() }

// Failed says that a rewrite failed. The next is due after a while.
func (d *Damage) Failed(wait time.Duration) {
	d.failed.Add(1)
	d.Postpone(wait)
}

// Mended says that a rewrite has ended well. The next is not due before a while.
func (d *Damage) Mended(wait time.Duration) {
	d.met.Store(false)
	d.failed.Store(0)
	d.Postpone(wait)
}

// Certain reports whether what the disk does not read is taken for damaged.
func (d *Damage) Certain() bool { return d.failed.Load() >= certainAfter }

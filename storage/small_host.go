package storage

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/instance"
	"divan/storage/small"
)

// smallHost opens the instance that has the small stores, and keeps it usable: it is opened anew to
// be written to in earnest, or when damage can be mended. It is safe for concurrent use.
type smallHost struct {
	env   *environment
	cache *storeCache

	damage  small.Damage
	reclaim small.Reclaim
	forced  atomic.Int32                             // callers that have it opened for writing although the disk is full
	rewrite atomic.Pointer[func(*smallStores) error] // of Engine.Run, nil before and after it
}

// with calls fn with the instance of the small stores. Where there is none the error is fault.NoCopy.
func (h *smallHost) with(fn func(db *pebble.DB) error) error {
	s, err := h.acquire(false)
	if err != nil {
		return err
	}
	defer h.cache.release(&s.handle)
	return errors.Join(fn(s.inst.DB()), s.Err())
}

// endsWithin is how long an instance that ends is waited for: what is under way there, of the
// caller as well, may be long.
const endsWithin = 100 * time.Millisecond

// acquire pins the instance of the small stores, and with mayMake makes it where there is none. One
// that ends can be read, and written to by a batch that was begun.
func (h *smallHost) acquire(mayMake bool) (*smallStores, error) {
	for again := true; ; again = false {
		m, err := h.cache.acquire(SmallDir, func(string) (member, error) { return h.open(mayMake) })
		if err != nil {
			return nil, err
		}
		s := m.(*smallStores)
		err = s.Err()
		if err == nil && (!again || !s.ends.Load()) {
			return s, nil
		}
		if h.cache.release(&s.handle); err != nil {
			return nil, err
		}
		limit := time.NewTimer(endsWithin)
		select {
		case <-s.closed:
		case <-limit.C:
		}
		limit.Stop()
	}
}

// writable pins it to be written to. The error is fault.InsufficientStorage while the disk is full.
// It waits while the disk does not keep up.
func (h *smallHost) writable(mayMake bool) (*smallStores, error) {
	if mayMake { // another one is made
		h.cache.failures.pardon(SmallDir)
	}
	for again := true; ; again = false {
		s, err := h.acquire(mayMake)
		if err != nil {
			return nil, err
		}
		if err = h.env.space.Err(); err == nil {
			err = h.admit(s)
		}
		if err == nil {
			return s, nil
		}
		if h.cache.release(&s.handle); !again || !errors.Is(err, errSmallEnds) {
			return nil, err
		}
	}
}

// admit returns when the instance takes another batch. Once a compaction met a damaged file it
// ends, to be written anew when it is opened again. Where that cannot be done it takes what it can.
func (h *smallHost) admit(s *smallStores) error {
	h.noteDamage(s)
	switch {
	case s.ends.Load() || s.inst.ReadOnly() || s.inst.Health().MendDue() && h.rewrite.Load() != nil:
		return s.end()
	case !h.damage.Met() || h.rewrite.Load() == nil:
		return s.inst.Admit(nil)
	case h.damage.Due() && !s.inst.Health().Mends():
		if err := spaceToRewrite(&h.env.space, s); err == nil {
			return s.end()
		} else if h.damage.Postpone(rewriteAgain) {
			h.env.log.Error("files of small shards are damaged, and there is no space to write them anew", zap.Error(err), zap.Duration("retry_in", rewriteAgain))
		}
	}
	if s.inst.Stalled() {
		return fault.New(fault.Unavailable, "The files of small shards are damaged.")
	}
	return nil
}

// reserve is writable for what gives space back in the end: it takes the space that is kept, and
// does not wait for compactions.
func (h *smallHost) reserve() (*smallStores, error) {
	s, err := h.acquire(false)
	if err != nil || !s.inst.ReadOnly() {
		return s, err
	}
	h.forced.Add(1)
	defer h.forced.Add(-1)
	_ = s.end()
	h.cache.release(&s.handle)
	if s, err = h.acquire(false); err == nil && s.inst.ReadOnly() {
		h.cache.release(&s.handle)
		return nil, diskspace.ErrDiskFull()
	}
	return s, err
}

// add has a store that is going to be made be among the small ones, durably. The instance is
// released when its directory is made: until then a rewrite would not keep it.
func (h *smallHost) add(uuid [16]byte) (*smallStores, error) {
	s, err := h.writable(true)
	if err != nil {
		return nil, err
	}
	if err = s.write(func(_ pebble.Reader, b *pebble.Batch) error { return small.Add(b, uuid) }); err != nil {
		h.cache.release(&s.handle)
		return nil, err
	}
	return s, nil
}

// remove removes stores from among the small ones, durably.
func (h *smallHost) remove(stores ...[16]byte) error {
	s, err := h.reserve()
	if fault.Is(err, fault.NoCopy) || fault.Is(err, fault.Corruption) { // what cannot be opened keeps what it has
		return nil
	}
	if err != nil {
		return err
	}
	defer h.cache.release(&s.handle)
	defer func() { h.reclaim.Removed(h.env.space.Full()) }() // of those that are gone
	return s.write(func(r pebble.Reader, b *pebble.Batch) error {
		for _, uuid := range stores {
			if err := small.Remove(r, b, uuid); err != nil {
				return err
			}
		}
		return nil
	})
}

// givenUp is Store.GivenUp of the instance that has the small stores.
func (h *smallHost) givenUp() (given *instance.GivenUp, err error) {
	s, err := h.acquire(false)
	if err == nil {
		given = s.inst.GivenUp()
		h.cache.release(&s.handle)
	}
	if fault.Is(err, fault.NoCopy) {
		err = nil
	}
	return given, err
}

// size returns what a store has among the small ones, in bytes.
func (h *smallHost) size(id *identity.Identity) (bytes int64, err error) {
	if !id.Small {
		return 0, nil
	}
	err = h.with(func(db *pebble.DB) error {
		bytes, _, err = small.Size(db, id.UUID)
		return err
	})
	return bytes, err
}

// noteUnread counts an error of the disk at a read of the small stores.
func (h *smallHost) noteUnread() {
	if s, err := h.acquire(false); err == nil {
		s.inst.Health().NoteUnread()
		h.noteDamage(s)
		h.cache.release(&s.handle)
	}
}

// ends reports whether the instance of the small stores makes way for one that may read more.
func (h *smallHost) ends() bool {
	if h.env.o.ReadOnly {
		return false
	}
	s, err := h.acquire(false)
	if err != nil {
		return false
	}
	defer h.cache.release(&s.handle)
	return s.ends.Load() || s.inst.Health().Mends()
}

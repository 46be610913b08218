package storage

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/instance"
	"divan/storage/records"
	"divan/storage/small"
)

// SmallDir is the directory of the instance that has the small stores, and its name among the members
// of the engine.
const SmallDir = "small-shards"

// smallStores is that instance. Like a store it is opened on demand, closed when it has failed, and
// opened again later, for reading while the disk is full. It is pinned by what is on its way
// to the disk; what small stores read is in memory.
type smallStores struct {
	handle
	ends   atomic.Bool   // it is closed with its last pin, to be opened in another way
	ending chan struct{} // closed when ends
	closed chan struct{} // when it was
}

func (s *smallStores) close(bool) error {
	defer close(s.closed)
	return s.inst.Close()
}

func (s *smallStores) remove() error { return nil }

// end has the instance be closed when what is under way has ended, as it is to be opened in another way. It
// does not fail: that would be the end of all stores with a batch on its way.
func (s *smallStores) end() error {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if !s.ends.Swap(true) {
		close(s.ending)
		s.engine.uncountLocked(&s.handle)
	}
	return errSmallEnds
}

var errSmallEnds = fault.New(fault.Unavailable, "The files of small shards are opened anew.")

// withSmall calls fn with the instance of the small stores. Where there is none the error is fault.NoCopy.
func (e *Engine) withSmall(fn func(db *pebble.DB) error) error {
	s, err := e.acquireSmall(false)
	if err != nil {
		return err
	}
	defer e.release(&s.handle)
	return errors.Join(fn(s.inst.DB()), s.Err())
}

// endsWithin is how long an instance that ends is waited for: what is under way there, of the caller as well, may be
// long.
const endsWithin = 100 * time.Millisecond

// acquireSmall pins the instance of the small stores, and with mayMake makes it where there is none. One
// that ends can be read, and written to by a batch that was begun.
func (e *Engine) acquireSmall(mayMake bool) (*smallStores, error) {
	for again := true; ; again = false {
		m, err := e.acquire(SmallDir, func(string) (member, error) { return e.openSmallStores(mayMake) })
		if err != nil {
			return nil, err
		}
		s := m.(*smallStores)
		err = s.Err()
		if err == nil && (!again || !s.ends.Load()) {
			return s, nil
		}
		if e.release(&s.handle); err != nil {
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

// writableSmall pins it to be written to. The error is fault.InsufficientStorage while the disk is full. It
// waits while the disk does not keep up.
func (e *Engine) writableSmall(mayMake bool) (*smallStores, error) {
	if mayMake && e.small.broken.Swap(nil) != nil { // another one is made
		e.mu.Lock()
		delete(e.mu.retry, SmallDir)
		e.mu.Unlock()
	}
	for again := true; ; again = false {
		s, err := e.acquireSmall(mayMake)
		if err != nil {
			return nil, err
		}
		if err = e.space.Err(); err == nil {
			err = e.admitSmall(s)
		}
		if err == nil {
			return s, nil
		}
		if e.release(&s.handle); !again || !errors.Is(err, errSmallEnds) {
			return nil, err
		}
	}
}

// admitSmall returns when the instance takes another batch. Once a compaction met a damaged file it ends, to
// be written anew when it is opened again. Where that cannot be done it takes what it can.
func (e *Engine) admitSmall(s *smallStores) error {
	e.noteDamage(s)
	switch {
	case s.ends.Load() || s.inst.ReadOnly() || s.inst.MendDue() && e.small.mend.Load() != nil:
		return s.end()
	case !e.small.damage.Met() || e.small.mend.Load() == nil:
		return s.inst.Admit(nil)
	case e.small.damage.Due() && !s.inst.Mends():
		if err := e.roomToRewrite(s); err == nil {
			return s.end()
		} else if e.small.damage.Postpone(rewriteAgain) {
			e.log.Error("files of small shards are damaged, and there is no room to write them anew", zap.Error(err), zap.Duration("retry_in", rewriteAgain))
		}
	}
	if s.inst.Stalled() {
		return fault.New(fault.Unavailable, "The files of small shards are damaged.")
	}
	return nil
}

// reserveSmall is writableSmall for what gives room back in the end: it takes the room that is kept, and
// does not wait for compactions.
func (e *Engine) reserveSmall() (*smallStores, error) {
	s, err := e.acquireSmall(false)
	if err != nil || !s.inst.ReadOnly() {
		return s, err
	}
	e.small.forced.Add(1)
	defer e.small.forced.Add(-1)
	_ = s.end()
	e.release(&s.handle)
	if s, err = e.acquireSmall(false); err == nil && s.inst.ReadOnly() {
		e.release(&s.handle)
		return nil, diskspace.ErrDiskFull()
	}
	return s, err
}

// write adds what fn puts into a batch, durably.
func (s *smallStores) write(fn func(r pebble.Reader, b *pebble.Batch) error) error {
	b := s.inst.DB().NewBatch()
	if err := fn(s.inst.DB(), b); err != nil || b.Empty() {
		return errors.Join(err, b.Close())
	}
	return errors.Join(b.Commit(pebble.Sync), b.Close(), s.Err())
}

// openSmallStores opens the instance, while the disk is full for reading, unless a caller is to give room back.
func (e *Engine) openSmallStores(mayMake bool) (member, error) {
	readOnly := e.readsOnly(SmallDir)
	if readOnly && !e.o.ReadOnly && e.small.forced.Load() > 0 {
		if s, err := e.openSmallAs(false, mayMake); !fault.Is(err, fault.InsufficientStorage) {
			return s, err
		}
	}
	return e.openSmallAs(readOnly, mayMake)
}

func (e *Engine) openSmallAs(readOnly, mayMake bool) (member, error) {
	s, err := e.openSmallFiles(readOnly, mayMake)
	if err != nil {
		return nil, err
	}
	e.countOpen(&s.handle, 0)
	return s, nil
}

func (e *Engine) openSmallFiles(readOnly, mayMake bool) (*smallStores, error) {
	s := &smallStores{handle: e.newHandle(SmallDir, readOnly), ending: make(chan struct{}), closed: make(chan struct{})}
	files, err := e.o.FS.List(s.inst.Dir)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		err = instance.DiskError("list small stores", err)
	case instance.IsMade(files):
		err = nil
	case slices.ContainsFunc(files, instance.HoldsKeys):
		err = fault.New(fault.Corruption, "The files of small shards are damaged: the marker of the manifest is missing.")
	case !mayMake:
		err = noStore()
	case s.inst.ReadOnly():
		err = diskspace.ErrDiskFull()
	default:
		e.small.damage.Begin() // a small store that is open is not in it
		if err = e.dirs.Make(s.inst.Dir); err == nil {
			err = e.touch(e.o.FS.PathJoin(s.inst.Dir, formatMarker+instance.PebbleFormat.String()))
		}
		if err != nil {
			err = instance.DiskError("make small stores", err)
		}
	}
	if err == nil {
		err = s.inst.Open(small.Kind(), func(*pebble.DB) error { return nil })
	}
	if err == nil && !s.inst.ReadOnly() {
		small.RemoveLeft(e.o.FS, s.inst.Dir, files)
		e.mendSmall(s)
		err = s.Err()
	}
	if err != nil {
		if e2 := s.close(false); e2 != nil {
			err = errors.Join(err, e2)
		}
		return nil, err
	}
	return s, nil
}

// addSmall has a store that is going to be made be among the small ones, durably. The instance is released when
// its directory is made: until then a rewrite would not keep it.
func (e *Engine) addSmall(uuid [16]byte) (*smallStores, error) {
	s, err := e.writableSmall(true)
	if err != nil {
		return nil, err
	}
	if err = s.write(func(_ pebble.Reader, b *pebble.Batch) error { return small.Add(b, uuid) }); err != nil {
		e.release(&s.handle)
		return nil, err
	}
	return s, nil
}

// removeSmall removes stores from among the small ones, durably.
func (e *Engine) removeSmall(stores ...[16]byte) error {
	s, err := e.reserveSmall()
	if fault.Is(err, fault.NoCopy) || fault.Is(err, fault.Corruption) { // what cannot be opened keeps what it has
		return nil
	}
	if err != nil {
		return err
	}
	defer e.release(&s.handle)
	defer func() { e.small.reclaim.Removed(e.space.Full()) }() // of those that are gone
	return s.write(func(r pebble.Reader, b *pebble.Batch) error {
		for _, uuid := range stores {
			if err := small.Remove(r, b, uuid); err != nil {
				return err
			}
		}
		return nil
	})
}

// SmallStoresGivenUp is Store.GivenUp of the instance that has the small stores.
func (e *Engine) SmallStoresGivenUp() (given *instance.GivenUp, err error) {
	s, err := e.acquireSmall(false)
	if err == nil {
		given = s.inst.GivenUp()
		e.release(&s.handle)
	}
	if fault.Is(err, fault.NoCopy) {
		err = nil
	}
	return given, err
}

// smallSize returns what a store has among the small ones, in bytes.
func (e *Engine) smallSize(id *identity.Identity) (bytes int64, err error) {
	if !id.Small {
		return 0, nil
	}
	err = e.withSmall(func(db *pebble.DB) error {
		bytes, _, err = small.Size(db, id.UUID)
		return err
	})
	return bytes, err
}

// readSmall reads what the store has among the small ones, nil when it has no batch there. What is damaged
// and can be mended is, first.
func (s *Store) readSmall() (v *small.View, err error) {
	v, err = s.readSmallOnce()
	if fault.Is(err, fault.Corruption) && s.engine.mendDamaged() {
		v, err = s.readSmallOnce()
	}
	if fault.Is(err, fault.Corruption) && s.engine.smallEnds() { // nothing is lost before that
		err = errSmallEnds
	}
	if errors.Is(err, syscall.EIO) {
		s.engine.noteUnread()
	}
	return v, err
}

// noteUnread counts an error of the disk at a read of the small stores.
func (e *Engine) noteUnread() {
	if s, err := e.acquireSmall(false); err == nil {
		s.inst.NoteUnread()
		e.noteDamage(s)
		e.release(&s.handle)
	}
}

// smallEnds reports whether the instance of the small stores makes way for one that may read more.
func (e *Engine) smallEnds() bool {
	if e.o.ReadOnly {
		return false
	}
	s, err := e.acquireSmall(false)
	if err != nil {
		return false
	}
	defer e.release(&s.handle)
	return s.ends.Load() || s.inst.Mends()
}

func (s *Store) readSmallOnce() (v *small.View, err error) {
	empty, err := s.engine.emptyDB()
	if err != nil {
		return nil, err
	}
	there := false
	err = s.engine.withSmall(func(db *pebble.DB) error {
		v, there, err = small.Read(db, empty, s.id.UUID)
		return err
	})
	if fault.Is(err, fault.NoCopy) || err == nil && !there {
		err = errMissingSmall()
	}
	return v, err
}

// FileSize is that of its instance, or the bytes that it has among the small ones.
func (s *Store) FileSize() (int64, error) {
	if v := s.small.Load(); v != nil {
		return int64(v.Len()), s.Err()
	}
	return s.handle.FileSize()
}

// isSmall reports whether batches of the store go among the small ones, as far as is known without s.opening.
func (s *Store) isSmall() bool {
	return s.mayBeSmall.Load() && (!s.inst.Opened() || s.small.Load() != nil)
}

// reader returns what the store is read from.
func (s *Store) reader() pebble.Reader {
	if v := s.small.Load(); v != nil {
		return v
	}
	return s.inst.DB()
}

// maxSmallOpen is the largest total weight, in bytes, of the small stores that stay open while
// they are not in use.
const maxSmallOpen = 64 << 20

// hold has the store be read from a view, and stay open by its weight.
func (s *Store) hold(v *small.View) {
	was := s.small.Swap(v)
	if w := v.Weight(); was == nil || w != was.Weight() {
		s.engine.countOpen(&s.handle, w)
	}
}

// bringSmall brings what the store has among the small ones into its own instance, which is being
// opened, durably, and returns the reader to use. v is the view that an open store is read from;
// a store that is being opened reads it from the small ones. A crash before the end is followed
// by another call.
func (s *Store) bringSmall(db *pebble.DB, v *small.View) (pebble.Reader, error) {
	if batch, _, err := records.Counters(db); err != nil || batch > 0 || !s.mayBeSmall.Load() {
		return db, err // it is there
	}
	if !s.attached {
		var err error
		if v, err = s.readSmall(); err != nil {
			return nil, err
		}
	}
	switch {
	case v == nil:
		return db, nil
	case s.inst.ReadOnly():
		s.small.Store(v)
		return v, nil
	}
	b := db.NewBatch()
	if err := v.AddTo(b); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return db, errors.Join(b.Commit(pebble.Sync), b.Close(), s.Err())
}

// leaveSmall ends that a store is among the small ones: all that it has is in its own instance, and the
// name of its marker says so from now on. Where the disk refuses that, it is done when the store
// is opened again.
func (s *Store) leaveSmall() {
	s.small.Store(nil)
	var err error
	written := s.states.Load().prev.batch > 0 // so that what it has is found in its own instance when it is opened again
	if written {
		err = s.engine.removeSmall(s.id.UUID)
	}
	if err == nil {
		err = identity.LeaveSmall(s.engine.o.FS, s.inst.Dir, s.name)
	}
	if err == nil {
		s.mayBeSmall.Store(false)
		if !written {
			err = s.engine.removeSmall(s.id.UUID)
		}
	}
	if err != nil {
		s.log.Warn("a shard with files of its own is among the small ones still", zap.Error(err))
	}
}

// smallBatch is the part of a batch that was begun while its store was small.
type smallBatch struct {
	shared *smallStores // pinned; where it goes
	join   bool         // the batches before it are to be put together
	was    *small.View  // what was put together; nil: nothing
	whole  *pebble.Batch
	base   *small.View // of whole
}

// newSmallBatch begins one. With reserve it takes the room that is kept on the disk.
func (s *Store) newSmallBatch(reserve bool) (*smallBatch, error) {
	acquire := s.engine.reserveSmall
	if !reserve {
		acquire = func() (*smallStores, error) { return s.engine.writableSmall(false) }
	}
	shared, err := acquire()
	if fault.Is(err, fault.NoCopy) {
		err = errMissingSmall()
	}
	if err != nil {
		return nil, err
	}
	return &smallBatch{shared: shared}, nil
}

func errMissingSmall() error {
	return fault.New(fault.Corruption, "What is stored of a small shard is missing.")
}

// end gives back what the batch holds.
func (b *smallBatch) end(e *Engine) {
	if b.shared != nil {
		e.release(&b.shared.handle)
		b.shared = nil
	}
	if b.whole != nil {
		_ = b.whole.Close() // of memory only
		b.whole = nil
	}
}

// place decides where a batch goes that was begun while the store was small: among the small ones, or into an
// instance of its own, which it opens. What aggregates and sequences add to it is not known yet. The
// caller holds s.opening.
func (b *Batch) place() error {
	s := b.s
	if !s.inst.Opened() {
		small, err := b.staysSmall(s.small.Load())
		if err != nil || small {
			return err
		}
	}
	db, err := s.openOwn()
	if err != nil {
		return err
	}
	b.small.end(s.engine)
	b.small = nil
	next := db.NewBatch(pebble.WithMaxRetainedSizeBytes(retainedBytes))
	err = errors.Join(next.Apply(b.b, nil), b.b.Close())
	b.b = next
	return err
}

// staysSmall reports whether the store is small with one more batch, if need be after those before are
// put together.
func (b *Batch) staysSmall(v *small.View) (stays bool, err error) {
	empty, err := b.s.engine.emptyDB()
	damage := &b.s.engine.small.damage
	if err != nil || damage.Met() || damage.Begun() != b.s.rewrites.Load() { // what it has may be damaged, or was not written anew
		return false, err
	}
	b.small.was = v
	stays, b.small.whole, b.small.base, err = v.Fits(empty, b.Size(), b.small.join)
	return stays, err
}

// applySmall adds a batch with that number to what the store has among the small ones, and returns
// what is on its way to the disk. The caller holds s.opening.
func (s *Store) applySmall(b *pebble.Batch, to *smallBatch, number uint64) (way *pebble.Batch, err error) {
	empty, err := s.engine.emptyDB()
	if err != nil {
		return nil, err
	}
	way = to.shared.inst.DB().NewBatch()
	base := s.small.Load()
	if to.whole != nil {
		base = to.base
		err = small.Join(way, s.id.UUID, to.was, to.whole)
	}
	v, e := base.With(empty, b, number)
	if err = errors.Join(err, e); err == nil {
		err = small.Put(way, s.id.UUID, number, b)
	}
	if err == nil {
		err = to.shared.inst.DB().ApplyNoSyncWait(way, pebble.Sync)
	}
	if err = errors.Join(err, to.shared.Err()); err != nil {
		return nil, fmt.Errorf("apply batch: %w", err)
	}
	s.hold(v)
	return way, nil
}

// joinSmall has the batches of a small store put together: what was written again or deleted goes. Any
// other store is compacted by its files.
func (b *Batch) joinSmall() {
	if b.small != nil {
		b.small.join = true
	}
}

// giveOwnFiles gives a small store that is not open an instance of its own, so that what is set aside is all
// in its directory. One that cannot be read is set aside as it is.
func (e *Engine) giveOwnFiles(name string) {
	id, _, err := e.readIdentity(name)
	if err != nil || !id.Small {
		return
	}
	m, err := e.openStore(name)
	if err == nil {
		s := m.(*Store)
		_, err = s.writable(true)
		err = errors.Join(err, s.close(false))
		e.mu.Lock()
		e.uncountLocked(&s.handle)
		e.mu.Unlock()
	}
	if err != nil {
		e.log.Warn("what a small shard has stays among the small ones", zap.String("store", name), zap.Error(err))
	}
}

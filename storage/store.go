package storage

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/instance"
	"divan/storage/paths"
	"divan/storage/uploads"
)

// Store is one open shard copy. Reads are safe for concurrent use; batches
// belong to one goroutine at a time, the shard's writer. Engine.Acquire gives
// one, Engine.Release takes it back.
//
// Invariants:
//
//	T1  a batch is applied whole, after its predecessor, and becomes durable
//	    after it: a crash leaves a prefix of the applied batches.
//	T2  see states
//	T3  a store that never took a write has no Pebble instance; it reads from
//	    the engine's empty one. Ten thousand empty databases cost nothing. One that
//	    is small has none either (small_part.go): it reads from a view in memory.
//	T4  after a failure nothing is read or written any more.
type Store struct {
	handle
	engine   *Engine
	id       identity.Identity // Small: as of the opening; see smallPart.maybe
	uploads  *uploads.Set
	swept    int        // uploads that opening has removed
	opening  sync.Mutex // one first write opens the instance; while the store is small each write
	small    smallPart
	attached bool // opened: its state is known
	states   states
	read     Reader
	inflight atomic.Int32
}

// openStore reads what is fixed about a store and, when it ever took a write,
// opens its Pebble instance.
func (e *Engine) openStore(name string) (member, error) {
	if !paths.Valid(name) {
		return nil, noStore()
	}
	id, files, err := e.env.readIdentity(name)
	if fault.Is(err, fault.NoCopy) && e.losses.made.Has(name) {
		return nil, errLost(name)
	}
	if err == nil {
		err = id.Check(name)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{
		handle: e.cache.newHandle(name, e.cache.failures.readsOnly(name)), engine: e,
		id: id, uploads: e.uploads.Of(name),
	}
	s.small.h, s.small.host, s.small.uuid = &s.handle, e.small, id.UUID
	s.small.maybe.Store(id.Small)
	s.read = Reader{h: &s.handle, small: &s.small, states: &s.states}
	s.states.partitioned = id.Partitioned
	s.states.set(&batchState{docs: newTopBlocks(), seqs: newTopBlocks()}, nil)
	if err := s.attach(files); err != nil {
		e.uploads.Release(s.uploads)
		return nil, e.losses.noteContent(name, s.inst, err)
	}
	e.losses.contents.forget(name)
	s.attached = true
	return s, nil
}

// attach opens the store's instance, or takes the empty one when the store
// never had its own.
func (s *Store) attach(files []string) error {
	if instance.IsMade(files) {
		return s.openPebble()
	}
	if slices.ContainsFunc(files, instance.HoldsKeys) { // made after the marker, which was durable by then
		return fault.New(fault.Corruption, "The shard's files are damaged: the marker of the manifest is missing.")
	}
	empty, err := s.env.emptyDB()
	if err != nil {
		return err
	}
	s.inst.Borrow(empty)
	if !s.id.Small {
		return nil
	}
	s.small.rewrites.Store(s.small.host.damage.Begun())
	v, err := s.small.read()
	if err != nil || v == nil {
		return err
	}
	if err = s.states.load(v); err == nil {
		s.small.hold(v)
	}
	return err
}

// mayWrite returns why the store takes no batch. The error is fault.InsufficientStorage when
// the disk is full. A store that was opened for reading then ends with the first write that
// there is space for, so that it is opened anew.
//
// With reserve it takes the space that is kept.
func (s *Store) mayWrite(reserve bool) error {
	if err := s.Err(); err != nil {
		return err
	}
	if err := s.env.space.Err(); err != nil && (!reserve || s.inst.ReadOnly()) {
		return err
	}
	if s.inst.ReadOnly() {
		return s.inst.Fail(errOpenedForReading)
	}
	return nil
}

// writable returns the store's own instance, opening it for the first write that needs it.
// The errors are those of mayWrite.
func (s *Store) writable(reserve bool) (*pebble.DB, error) {
	if err := s.mayWrite(reserve); err != nil {
		return nil, err
	}
	if !s.small.takesBatches() && s.inst.Opened() {
		if !reserve { // what gives space back does not wait for compactions
			if err := s.inst.Admit(nil); err != nil {
				return nil, err
			}
		}
		return s.inst.DB(), nil
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	return s.openOwn()
}

// openOwn returns the store's own instance, opening it when it is not open. The caller holds s.opening.
func (s *Store) openOwn() (*pebble.DB, error) {
	if !s.inst.Opened() {
		if err := s.env.markFormat(s.inst.Dir); err != nil {
			return nil, instance.DiskError("open store", err)
		}
		if err := s.openPebble(); err != nil {
			return nil, s.inst.Fail(err) // an instance is opened once
		}
	}
	return s.inst.DB(), nil
}

// errOpenedForReading ends a store that a full disk had opened for reading.
var errOpenedForReading = fmt.Errorf("opened for reading: %w", syscall.ENOSPC)

// close closes the store's instance.
func (s *Store) close(bool) error {
	s.engine.uploads.Release(s.uploads)
	return s.inst.Close()
}

func (s *Store) remove() error { return s.engine.moveToStaging(s.name) }

// FileSize is that of its instance, or the bytes that it has among the small ones.
func (s *Store) FileSize() (int64, error) {
	if v := s.small.view.Load(); v != nil {
		return int64(v.Len()), s.Err()
	}
	return s.handle.FileSize()
}

// UUID returns what names this copy, made with the store: sequences of two
// copies, or of a store made anew under the same name, do not compare.
func (s *Store) UUID() [16]byte { return s.id.UUID }

// CopyID returns which copy of its database the store is.
func (s *Store) CopyID() uint64 { return s.id.Copy }

// Partitioned reports the option the store was created with.
func (s *Store) Partitioned() bool { return s.id.Partitioned }

// Reader returns what reads its documents.
func (s *Store) Reader() *Reader { return &s.read }

// Counters returns the totals as of the last applied batch, which may not be
// durable yet.
func (s *Store) Counters() Counters { return s.states.applied().counters }

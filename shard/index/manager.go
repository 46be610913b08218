package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/shard"
	"divan/shard/fairqueue"
	"divan/storage"
	"divan/storage/fault"
)

// Options configure a Manager. Engine and Shards are required.
type Options struct {
	Engine *storage.Engine
	Shards *shard.Local
	Logger *zap.Logger // default: none
	// Workers is how many goroutines map documents for one update; default: the
	// processors there are.
	Workers int
	// Memory is how many bytes all updates together take for documents and their
	// results, unless one document alone takes more; default: 256 MB.
	Memory int64
}

// Manager keeps the indexes of a node. It is safe for concurrent use.
type Manager struct {
	o          Options
	budget     *budget
	openers    map[Type]Opener // not changed while the manager is in use
	followers  *followers
	background *background
	noSpace    *noSpace
	leftOut    atomic.Uint64 // documents that were left out of an index since the start
}

// New returns a manager. It starts nothing; Run and Close have to be called.
func New(o Options) *Manager {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	fs := newFollowers()
	b := newBackground(fs)
	return &Manager{
		o: o, budget: newBudget(o.Memory), openers: map[Type]Opener{},
		followers: fs, background: b, noSpace: newNoSpace(o.Engine, fs, b),
	}
}

// Run updates indexes in the background, one of a database at a time, and forgets indexes
// that are not in use; it returns nil when ctx ends, with the manager closed.
func (m *Manager) Run(ctx context.Context) error {
	tick, space := time.NewTicker(idleFollower/5), time.NewTicker(lookForSpace)
	defer tick.Stop()
	defer space.Stop()
	for {
		select {
		case <-ctx.Done():
			return m.Close()
		case <-tick.C:
			m.followers.forgetIdle()
		case <-space.C:
			m.noSpace.resume()
		case <-m.background.wake:
			m.background.update(ctx)
		}
	}
}

// Close stops updates, waits for them, and closes the kinds of all indexes that
// are not in use. It may be called more than once.
func (m *Manager) Close() error {
	m.followers.stop()
	m.background.giveUp()
	m.noSpace.giveUp(func(*follower) bool { return true })
	m.followers.forget(func(*follower) bool { return true })
	return nil
}

func errClosed() error { return fault.New(fault.Closed, "the node is shutting down") }

// CopyDropped ends the work on the indexes of a copy that is gone, and forgets them. It
// does not wait for that.
func (m *Manager) CopyDropped(copyName string) {
	of := func(f *follower) bool { return f.copyName == copyName }
	m.followers.copyDropped(copyName)
	m.noSpace.giveUp(of)
	m.followers.forget(of)
}

// Use is an index in use: its store and that of its copy stay open until
// Release.
type Use struct {
	f     *follower
	store *storage.Store
	Index *storage.Index
}

// Acquire opens the index of a copy, empty when there is none. The error is
// fault.NoCopy when there is no such copy, or that of Spec.Open.
func (m *Manager) Acquire(ctx context.Context, copyName string, spec Spec) (*Use, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := m.follower(ctx, copyName, spec)
	if err != nil {
		return nil, err
	}
	u, err := f.open()
	if err != nil {
		m.followers.leave(f)
		return nil, err
	}
	return u, nil
}

// follower returns the follower of an index, with one user more.
func (m *Manager) follower(ctx context.Context, copyName string, spec Spec) (*follower, error) {
	key := followerKey(copyName, spec.Name)
	if f, err := m.followers.known(key); f != nil || err != nil {
		return f, err
	}
	kind, sequences, err := spec.Open(ctx) // compiles, maybe for milliseconds
	if err != nil {
		return nil, err
	}
	f := &follower{m: m, copyName: copyName, spec: spec, kind: kind, sequences: sequences, log: m.o.Logger.With(
		zap.String("copy", copyName), zap.Stringer("index", spec.Name))}
	f.mu.hurry = make(chan struct{}, 1)
	return m.followers.add(key, f)
}

// Kind returns what Spec.Open made.
func (u *Use) Kind() Kind { return u.f.kind }

// UUID returns the UUID of the copy.
func (u *Use) UUID() [16]byte { return u.store.UUID() }

// Release gives the index back.
func (u *Use) Release() {
	e := u.f.m.o.Engine
	e.Indexes().Release(u.Index)
	e.Release(u.store)
	u.f.m.followers.leave(u.f)
}

// Discard drops what the index holds: it turned out to be damaged. It is built
// anew when it is next updated.
func (u *Use) Discard(cause error) {
	u.f.log.Warn("index is set aside and built anew", zap.Error(cause))
	if err := u.Index.Discard(); err != nil {
		u.f.log.Error("setting an index aside failed", zap.Error(err))
	}
}

// Update returns when the index holds everything that was durable in the copy
// when it was called. Calls that wait at the same time share one update, which
// goes on when ctx ends.
func (u *Use) Update(ctx context.Context) error {
	_, seq, err := u.f.m.o.Shards.Position(ctx, u.f.copyName)
	if err != nil {
		return fmt.Errorf("update index: %w", err)
	}
	want := Position{Seq: seq, PurgeSeq: u.store.Counters().PurgeSeq}
	for again := false; ; again = true {
		err := u.f.wait(ctx, u.Index, want)
		var d *damage
		switch {
		case errors.As(err, &d) && !again:
			u.Discard(err)
		case err != nil || u.Index.Err() == nil:
			return err
		}
		// This one was set aside; there is another.
		if err := u.reopen(); err != nil {
			return err
		}
	}
}

// reopen goes on with the index that has taken the place of a discarded one.
func (u *Use) reopen() error {
	e := u.f.m.o.Engine
	x, err := e.Indexes().Acquire(u.store, u.f.spec.String())
	if err != nil {
		return fmt.Errorf("open index of %s: %w", u.f.copyName, err)
	}
	e.Indexes().Release(u.Index)
	u.Index = x
	return nil
}

// Start begins an update without waiting for it.
func (u *Use) Start() { u.f.m.background.enqueue(u.f) }

func (m *Manager) warm(ctx context.Context, copyName string, spec Spec) {
	f, err := m.follower(fairqueue.With(ctx, fairqueue.Caller{Background: always}), copyName, spec)
	if err != nil {
		m.o.Logger.Debug("an index cannot be kept warm", zap.String("copy", copyName), zap.Error(err))
		return
	}
	m.background.enqueue(f)
	m.followers.leave(f)
}

func always() bool { return true }

// Task is an update that is under way, or waits to try a document again.
type Task struct {
	Name
	Copy, Design, Label  string
	StartedMS, UpdatedMS int64 // unix time, milliseconds
	Done, Total          uint64
	LeftOut              uint64 // documents that the index holds nothing of, because they cannot be indexed

	// Of a document at which the index stays:
	Document, Error string // its id; what went wrong. Empty: there is none
	RetryMS         int64  // when it is tried again
}

// Tasks lists the updates that are under way and those that wait, ordered by copy and name.
func (m *Manager) Tasks() []Task {
	out := m.followers.tasks()
	slices.SortFunc(out, func(a, b Task) int {
		return strings.Compare(a.Copy+"\x00"+a.String(), b.Copy+"\x00"+b.String())
	})
	return out
}

// LeftOut counts how often a document was left out of an index since the start.
func (m *Manager) LeftOut() uint64 { return m.leftOut.Load() }

// Status is how an index stands.
type Status struct {
	Position
	LeftOut              uint64    // documents that are left out
	Left                 []LeftOut // the first of them, by id
	Pending              uint64    // changes of the copy that are not in the index
	Waiting              int       // calls of Update
	Updating, Compacting bool
}

// Status tells how the index stands, as of a snapshot of it.
func (u *Use) Status(ctx context.Context, snap *storage.IndexSnapshot) (st Status, err error) {
	if st.Position, err = ReadPosition(snap); err != nil {
		return st, err
	}
	if st.Left, st.LeftOut, err = readLeftOut(snap); err != nil {
		return st, err
	}
	changes, err := u.f.m.o.Shards.Changes(ctx, shard.ChangesRequest{Copy: u.f.copyName, Since: st.Seq})
	if err != nil {
		return st, fmt.Errorf("status of index: %w", err)
	}
	defer changes.Close()
	if st.Filled {
		st.Pending, err = changes.Pending(st.Seq)
	} else {
		st.Pending, err = changes.Pending(0)
	}
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	st.Waiting, st.Updating, st.Compacting = u.f.mu.waiting, u.f.mu.running != nil, u.f.mu.compacting
	return st, err
}

// Compact starts the compaction of an index. While one is running a second call
// changes nothing. A document that has failed is tried at once by the next update:
// it is how an operator says that something was mended.
func (m *Manager) Compact(ctx context.Context, copyName string, spec Spec) error {
	u, err := m.Acquire(ctx, copyName, spec)
	if err != nil {
		return err
	}
	u.f.retryAtOnce()
	if !m.startCompacting(ctx, u) {
		u.Release()
	}
	return nil
}

// startCompacting compacts an index in the background and releases it then; false
// when one is running.
func (m *Manager) startCompacting(ctx context.Context, u *Use) bool {
	f := u.f
	m.followers.mu.Lock()
	defer m.followers.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.compacting || m.followers.mu.closed {
		return false
	}
	f.mu.compacting = true
	ctx, f.mu.stopCompacting = context.WithCancel(context.WithoutCancel(ctx))
	compacted := make(chan struct{})
	f.mu.compacted = compacted
	m.followers.work.Go(func() {
		defer close(compacted)
		err := u.Index.Compact(ctx)
		if err != nil && ctx.Err() == nil {
			f.log.Warn("compacting an index failed", zap.Error(err))
		}
		u.Release()
		f.mu.Lock()
		f.mu.compacting = false
		f.mu.stopCompacting()
		f.mu.Unlock()
	})
	return true
}

// Cleanup removes the indexes of a type of a copy except those with one of the signatures.
func (m *Manager) Cleanup(ctx context.Context, copyName string, t Type, keep []string) error {
	names, err := namesOf(m.o.Engine, copyName)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name.Type != t || slices.Contains(keep, name.Signature) {
			continue
		}
		if err := m.drop(ctx, copyName, name); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether a copy has an index. The error is fault.NoCopy when there is no such copy.
func (m *Manager) Has(copyName string, name Name) (bool, error) {
	names, err := namesOf(m.o.Engine, copyName)
	return slices.Contains(names, name), err
}

// drop removes one index. Who reads it goes on until it is done; work on it ends
// first, so that the next query finds its place free.
func (m *Manager) drop(ctx context.Context, copyName string, name Name) error {
	m.noSpace.giveUp(func(f *follower) bool { return f.copyName == copyName && f.spec.Name == name })
	for _, end := range m.followers.cancelWork(followerKey(copyName, name)) {
		select {
		case <-end:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := m.o.Engine.Indexes().Drop(copyName, name.String()); err != nil && !fault.Is(err, fault.NoCopy) {
		return err
	}
	return m.removeCheckpoint(ctx, copyName, name)
}

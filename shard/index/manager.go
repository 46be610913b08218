package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/shard"
	"divan/shard/fairqueue"
	"divan/shard/ring"
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
	o       Options
	budget  *budget
	openers map[Type]Opener // not changed while the manager is in use
	wg      sync.WaitGroup  // updates
	wake    chan struct{}   // something waits for the background
	leftOut atomic.Uint64   // documents that were left out of an index since the start

	mu struct {
		sync.Mutex
		closed    bool
		followers map[string]*follower   // by copy and name
		warm      []*follower            // to be updated in the background, in order
		warming   map[string]struct{}    // instances of databases of which one is
		noRoom    map[*follower]struct{} // to be updated when the disk has room
	}
}

// New returns a manager. It starts nothing; Run and Close have to be called.
func New(o Options) *Manager {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	m := &Manager{o: o, budget: newBudget(o.Memory), openers: map[Type]Opener{}, wake: make(chan struct{}, 1)}
	m.mu.followers, m.mu.warming, m.mu.noRoom = make(map[string]*follower), make(map[string]struct{}), make(map[*follower]struct{})
	return m
}

// idleFollower is how long a follower that is not in use is kept.
const idleFollower = 5 * time.Minute

// Run updates indexes in the background, one of a database at a time, and forgets indexes
// that are not in use; it returns nil when ctx ends, with the manager closed.
func (m *Manager) Run(ctx context.Context) error {
	tick, room := time.NewTicker(idleFollower/5), time.NewTicker(lookForRoom)
	defer tick.Stop()
	defer room.Stop()
	for {
		select {
		case <-ctx.Done():
			return m.Close()
		case <-tick.C:
			m.forgetIdle()
		case <-room.C:
			m.resume()
		case <-m.wake:
			m.updateWarm(ctx)
		}
	}
}

// Close stops updates, waits for them, and closes the kinds of all indexes that
// are not in use. It may be called more than once.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.mu.closed = true
	for _, f := range m.mu.followers {
		f.cancelWork()
	}
	m.mu.Unlock()
	m.wg.Wait()
	m.giveUpWarm()
	m.giveUpWaiting(func(*follower) bool { return true })
	for _, f := range m.takeUnused(func(*follower) bool { return true }) {
		f.kind.Close()
	}
	return nil
}

func errClosed() error { return fault.New(fault.Closed, "the node is shutting down") }

// takeUnused removes followers that are not in use.
func (m *Manager) takeUnused(which func(f *follower) bool) (out []*follower) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, f := range m.mu.followers {
		if f.users == 0 && which(f) {
			delete(m.mu.followers, key)
			out = append(out, f)
		}
	}
	return out
}

func (m *Manager) forgetIdle() {
	m.forget(func(f *follower) bool { return time.Since(f.unused) > idleFollower })
}

// forget forgets followers that are not in use.
func (m *Manager) forget(which func(f *follower) bool) {
	for _, f := range m.takeUnused(which) {
		f.kind.Close()
	}
}

// CopyDropped ends the work on the indexes of a copy that is gone, and forgets them. It
// does not wait for that.
func (m *Manager) CopyDropped(copyName string) {
	of := func(f *follower) bool { return f.copyName == copyName }
	m.mu.Lock()
	for _, f := range m.mu.followers {
		if of(f) {
			f.gone = true
			f.cancelWork()
		}
	}
	m.mu.Unlock()
	m.giveUpWaiting(of)
	m.forget(of)
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
		m.leave(f)
		return nil, err
	}
	return u, nil
}

// follower returns the follower of an index, with one user more.
func (m *Manager) follower(ctx context.Context, copyName string, spec Spec) (*follower, error) {
	key := copyName + "\x00" + spec.String()
	m.mu.Lock()
	f := m.mu.followers[key]
	switch {
	case m.mu.closed:
		m.mu.Unlock()
		return nil, errClosed()
	case f != nil:
		f.users++
		m.mu.Unlock()
		return f, nil
	}
	m.mu.Unlock()
	kind, sequences, err := spec.Open(ctx) // compiles, maybe for milliseconds
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.mu.followers[key]; other != nil || m.mu.closed {
		kind.Close()
		if m.mu.closed {
			return nil, errClosed()
		}
		other.users++
		return other, nil
	}
	f = &follower{m: m, copyName: copyName, spec: spec, kind: kind, sequences: sequences, users: 1, log: m.o.Logger.With(
		zap.String("copy", copyName), zap.Stringer("index", spec.Name))}
	f.mu.hurry = make(chan struct{}, 1)
	m.mu.followers[key] = f
	return f, nil
}

// leave takes back a user of a follower.
func (m *Manager) leave(f *follower) {
	m.mu.Lock()
	f.users--
	last := f.users == 0
	if last {
		f.unused = time.Now()
	}
	gone := last && f.gone
	m.mu.Unlock()
	if gone {
		m.forget(func(other *follower) bool { return other == f })
	}
}

// Kind returns what Spec.Open made.
func (u *Use) Kind() Kind { return u.f.kind }

// UUID returns the UUID of the copy.
func (u *Use) UUID() [16]byte { return u.store.UUID() }

// Release gives the index back.
func (u *Use) Release() {
	e := u.f.m.o.Engine
	e.ReleaseIndex(u.Index)
	e.Release(u.store)
	u.f.m.leave(u.f)
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
	x, err := e.AcquireIndex(u.store, u.f.spec.String())
	if err != nil {
		return fmt.Errorf("open index of %s: %w", u.f.copyName, err)
	}
	e.ReleaseIndex(u.Index)
	u.Index = x
	return nil
}

// Start begins an update without waiting for it.
func (u *Use) Start() { u.f.m.enqueue(u.f) }

func (m *Manager) warm(ctx context.Context, copyName string, spec Spec) {
	f, err := m.follower(fairqueue.With(ctx, fairqueue.Caller{Background: always}), copyName, spec)
	if err != nil {
		m.o.Logger.Debug("an index cannot be kept warm", zap.String("copy", copyName), zap.Error(err))
		return
	}
	m.enqueue(f)
	m.leave(f)
}

func always() bool { return true }

func (m *Manager) enqueue(f *follower) {
	m.mu.Lock()
	if !f.queued && !m.mu.closed {
		f.queued = true
		f.users++
		m.mu.warm = append(m.mu.warm, f)
	}
	m.mu.Unlock()
	m.poke()
}

// One update in the background may take hours, or as long as a user likes. When it has had
// warmTurn the next one begins beside it, of another database, up to warmAtOnce.
const (
	warmTurn   = 2 * time.Second
	warmAtOnce = 8
)

// updateWarm updates what waits for the background, one index after the other as long
// as each takes no longer than its turn.
func (m *Manager) updateWarm(ctx context.Context) {
	for ended := m.startWarm(ctx); ended != nil; ended = m.startWarm(ctx) {
		turn := time.NewTimer(warmTurn)
		select {
		case <-ended:
		case <-turn.C:
		}
		turn.Stop()
	}
}

// startWarm begins the next update in the background; nil: there is none, or none may begin
// before another one ends.
func (m *Manager) startWarm(ctx context.Context) (ended <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.mu.warm, func(f *follower) bool {
		_, busy := m.mu.warming[ring.CopyTail(f.copyName)]
		return !busy
	})
	if i < 0 || len(m.mu.warming) >= warmAtOnce || m.mu.closed {
		return nil
	}
	f := m.mu.warm[i]
	m.mu.warm = slices.Delete(m.mu.warm, i, i+1)
	f.queued = false
	m.mu.warming[ring.CopyTail(f.copyName)] = struct{}{}
	end := make(chan struct{})
	m.wg.Go(func() {
		defer close(end)
		f.updateAlone(ctx)
		m.mu.Lock()
		delete(m.mu.warming, ring.CopyTail(f.copyName))
		m.mu.Unlock()
		m.leave(f)
		m.poke()
	})
	return end
}

// giveUpWarm forgets what waits for the background.
func (m *Manager) giveUpWarm() {
	m.mu.Lock()
	warm := m.mu.warm
	m.mu.warm = nil
	m.mu.Unlock()
	for _, f := range warm {
		m.leave(f)
	}
}

// poke has the background look for what waits for it.
func (m *Manager) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

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
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Task
	for _, f := range m.mu.followers {
		if t, ok := f.task(); ok {
			out = append(out, t)
		}
	}
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
	m.mu.Lock()
	defer m.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.compacting || m.mu.closed {
		return false
	}
	f.mu.compacting = true
	ctx, f.mu.stopCompacting = context.WithCancel(context.WithoutCancel(ctx))
	compacted := make(chan struct{})
	f.mu.compacted = compacted
	m.wg.Go(func() {
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
	m.giveUpWaiting(func(f *follower) bool { return f.copyName == copyName && f.spec.Name == name })
	var ended []<-chan struct{}
	m.mu.Lock()
	if f := m.mu.followers[copyName+"\x00"+name.String()]; f != nil {
		ended = f.cancelWork()
	}
	m.mu.Unlock()
	for _, end := range ended {
		select {
		case <-end:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := m.o.Engine.DropIndex(copyName, name.String()); err != nil && !fault.Is(err, fault.NoCopy) {
		return err
	}
	return m.removeCheckpoint(ctx, copyName, name)
}

package shard

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"divan/storage"
	"divan/storage/fault"
)

// Options are what a Local is made of. Engine is required.
type Options struct {
	Engine *storage.Engine
	Logger *zap.Logger // default: none
	// Validate is asked about every edit of a regular document that makes a
	// leaf; nil: everything passes.
	Validate Validate
	// CompileSelector turns the text of Filter.Selector into a Matcher; a
	// refusal is a *fault.Error. nil: FilterSelector is refused.
	CompileSelector func(selector []byte) (Matcher, error)
	// OnUpdate is told the name of a copy whenever its durable sequence has
	// moved, or its log of purges, and when it goes on after a failure of the disk.
	// It must not block.
	OnUpdate func(copy string)
}

// Local does every operation on the copies of this node. It is safe for
// concurrent use.
type Local struct {
	engine   *storage.Engine
	log      *zap.Logger
	validate Validate
	compile  func(selector []byte) (Matcher, error)
	onUpdate func(copy string)

	clock   atomic.Uint64  // counts applied rounds of all copies, see recent
	revived atomic.Uint64  // the moment of the last revive; what was read before may be gone
	closing chan struct{}  // closed by Close
	wg      sync.WaitGroup // writers, running compactions, holders of replicas

	mu          sync.RWMutex
	closed      bool
	copies      map[string]*replica
	troubled    map[string]struct{} // copies that have stopped and written nothing since
	compactions map[string]*compaction
}

// New returns a Local on an engine that stays the caller's. It starts nothing:
// writers start with the first write to a copy and end when it is idle.
func New(o Options) *Local {
	log := o.Logger
	if log == nil {
		log = zap.NewNop()
	}
	return &Local{
		engine: o.Engine, log: log, validate: o.Validate, compile: o.CompileSelector, onUpdate: o.OnUpdate,
		closing: make(chan struct{}), copies: make(map[string]*replica), troubled: make(map[string]struct{}),
		compactions: make(map[string]*compaction),
	}
}

// Run blocks until ctx ends and then closes the Local.
func (l *Local) Run(ctx context.Context) error {
	<-ctx.Done()
	return l.Close()
}

// Close refuses new work with fault.Closed, stops compactions, lets the
// writers finish what waits in their queues, and returns when everything
// applied is durable and no goroutine of the Local is left. Streams that are
// open keep their stores pinned until they are closed. It may be called more
// than once.
func (l *Local) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
	}
	for _, c := range l.compactions {
		c.cancel()
	}
	l.mu.Unlock()
	l.wg.Wait()
	return nil
}

func errClosed() error { return fault.New(fault.Closed, "the node is shutting down") }

// errLostContent is for content that the tree says is stored and is not.
func errLostContent() error { return fault.New(fault.Corruption, "stored content is missing") }

// CreateOptions are fixed when a copy is made.
type CreateOptions struct {
	Partitioned bool // the ids are partition:id
	// Rebuilding makes the copy as one that does not hold yet what the other
	// copies of its range have; see Local.Rebuilding. It is this node's own
	// business and never travels.
	Rebuilding bool
}

// Create makes an empty copy, durable on return; fault.Exists when it is
// there.
func (l *Local) Create(ctx context.Context, name string, o CreateOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.engine.Create(name, storage.CreateOptions{Partitioned: o.Partitioned, Marked: o.Rebuilding}); err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	return nil
}

// Drop removes a copy with everything in it, as soon as nobody reads it any
// more; fault.NoCopy when it is not there. Requests that wait to write to it
// get fault.NoCopy; its watchers are woken.
func (l *Local) Drop(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.stopCompaction(name)
	if err := l.engine.Drop(name); err != nil {
		return fmt.Errorf("drop %s: %w", name, err)
	}
	if exited := l.dismiss(name); exited != nil {
		<-exited // it has no store any more: at once
	}
	return l.Rebuilt(name)
}

// Has reports whether a copy is on this node. It is not opened for that.
func (l *Local) Has(name string) bool { return l.engine.Has(name) }

// Names lists the copies on this node.
func (l *Local) Names() ([]string, error) {
	names, err := l.engine.Names()
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	return names, nil
}

// enter returns the replica of a copy, made when there is none, and keeps it
// until leave; the error of one that has failed, which so gets no new users.
func (l *Local) enter(name string) (*replica, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed()
	}
	r := l.replicaLocked(name)
	if err := r.failure(); err != nil {
		return nil, err
	}
	r.users++
	l.wg.Add(1)
	return r, nil
}

// replicaLocked returns the replica of a copy, made when there is none.
func (l *Local) replicaLocked(name string) *replica {
	r := l.copies[name]
	if r == nil {
		r = &replica{local: l, name: name, horizon: newHorizon(), wake: make(chan struct{}, 1)}
		_, r.troubled = l.troubled[name]
		l.copies[name] = r
	}
	return r
}

// leave ends what enter began.
func (l *Local) leave(r *replica) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.users--
	l.forgetLocked(r)
	l.wg.Done()
}

// retire is leave for the writer.
func (l *Local) retire(r *replica) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetLocked(r)
}

// forgetLocked removes a replica that nobody needs any more (R1). One that has
// failed stays until revive: what its store shows is not all durable.
func (l *Local) forgetLocked(r *replica) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users == 0 && !r.mu.active && r.mu.err == nil && l.copies[r.name] == r {
		delete(l.copies, r.name)
	}
}

// dismiss forgets what was known about a copy that was dropped, and returns
// what tells that its writer has ended; nil when it has none.
func (l *Local) dismiss(name string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.copies[name]
	if r == nil {
		return nil
	}
	delete(l.copies, name)
	delete(l.troubled, name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.leaving = true
	r.rouse()
	for w := range r.mu.watchers {
		w.signal()
	}
	if !r.mu.active {
		return nil
	}
	return r.mu.exited
}

// lookup returns the replica of a copy, nil when the copy is at rest. It has
// to be called after the store was read (horizon H3).
func (l *Local) lookup(name string) *replica {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.copies[name]
}

// durable returns when the copy's sequence is durable up to seq.
func (l *Local) durable(ctx context.Context, name string, seq uint64) error {
	return l.settled(name, func(h *horizon) error { return h.waitSeq(ctx, seq) })
}

// durableLoose returns when the changes of a copy that have no sequence are
// durable.
func (l *Local) durableLoose(ctx context.Context, name string) error {
	return l.settled(name, func(h *horizon) error { return h.waitLoose(ctx) })
}

// settled does a wait at the horizon of a copy. One that has stopped is looked
// at again when that is over: the caller has read from the store that is pinned
// now.
func (l *Local) settled(name string, wait func(h *horizon) error) error {
	for {
		r := l.lookup(name)
		if r == nil {
			return nil
		}
		if err := wait(r.horizon); err == nil || !l.revive(r) {
			return err
		}
	}
}

// pin opens a copy's store for reading; release it with l.engine.Release.
func (l *Local) pin(ctx context.Context, name string) (*storage.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := l.engine.Acquire(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return s, nil
}

// newKey names the content of an attachment or an entry in the log of purges.
// It is random, never derived: content that compaction found without a
// reference can then not come back under the same name.
func newKey() [16]byte {
	var k [16]byte
	_, _ = rand.Read(k[:]) // never fails
	return k
}

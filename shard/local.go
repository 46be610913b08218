package shard

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"divan/shard/query"
	"divan/storage"
	"divan/storage/fault"
	"divan/storage/paths"
)

// Options are what a Local is made of. Engine is required.
type Options struct {
	Engine *storage.Engine
	Logger *zap.Logger // default: none
	// Validator returns what is asked about the edits of regular documents that
	// make leaves, for one request to a copy of a database. It is called on the
	// goroutine of the request. nil, also as its answer: everything passes.
	Validator func(ctx context.Context, copy, db string) (Validate, error)
	// CompileSelector turns the text of Filter.Selector into a BatchMatcher; a
	// refusal is a *fault.Error. nil: FilterSelector is refused.
	CompileSelector func(selector []byte) (BatchMatcher, error)
	// Heavy bounds the matching of selectors that takes long; nil: nothing does.
	Heavy query.Gate
	// CompileFunction finds what FilterFunction and FilterView name; a refusal is a
	// *fault.Error. nil: they are refused.
	CompileFunction func(ctx context.Context, f *Filter) (BatchMatcher, error)
	// OnUpdate is told the name of a copy whenever its durable sequence has
	// moved, or its purge log, and when it goes on after a failure of the disk.
	// It must not block.
	OnUpdate func(copy string)
	// OnDesignDoc is told the name of a copy whenever a design document in it has
	// changed by whatever way, after that is durable and before the writer learns
	// of it. It must not block.
	OnDesignDoc func(copy string)
	// OnDrop is told the name of a copy that was taken away. It must not block.
	OnDrop func(copy string)
}

// Local does every operation on the copies of this node. It is safe for
// concurrent use.
type Local struct {
	engine      *storage.Engine
	log         *zap.Logger
	validator   func(ctx context.Context, copy, db string) (Validate, error)
	compile     func(selector []byte) (BatchMatcher, error)
	function    func(ctx context.Context, f *Filter) (BatchMatcher, error)
	heavy       query.Gate
	onUpdate    func(copy string)
	onDesignDoc func(copy string)
	onDrop      func(copy string)

	clock      atomic.Uint64  // counts applied groups of all copies, see recentWrites
	reopenedTS atomic.Uint64  // the timestamp of the last reopen; what was read before may be gone
	closing    chan struct{}  // closed by Close
	wg         sync.WaitGroup // writers, running compactions, holders of copy states

	// Writes is passed by all changes that a coordinator counts.
	Writes WriteFence

	mu          sync.RWMutex
	closed      bool
	copies      map[string]*copyState
	recovering  map[string]struct{} // copies that have stopped and written nothing since
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
		engine: o.Engine, log: log, validator: o.Validator, compile: o.CompileSelector, function: o.CompileFunction, heavy: o.Heavy,
		onUpdate: o.OnUpdate, onDesignDoc: o.OnDesignDoc, onDrop: o.OnDrop,
		closing: make(chan struct{}), copies: make(map[string]*copyState), recovering: make(map[string]struct{}),
		compactions: make(map[string]*compaction),
	}
}

// Heavy returns what bounds the matching of selectors that takes long.
func (l *Local) Heavy() query.Gate { return l.heavy }

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

// errNoStoredContent is for content that the tree says is stored and is not.
func errNoStoredContent() error { return fault.New(fault.Corruption, "stored content is missing") }

// CreateOptions are fixed when a copy is made.
type CreateOptions struct {
	ID          uint64 // of the copy in the map of its database; 0: copies have none
	Partitioned bool   // the ids are partition:id
}

// Create makes an empty copy, durable on return; fault.Exists when it is
// there.
func (l *Local) Create(ctx context.Context, name string, o CreateOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.engine.Create(name, storage.CreateOptions{CopyID: o.ID, Partitioned: o.Partitioned}); err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	return nil
}

// Drop removes a copy with everything in it, as soon as nobody reads it any
// more; fault.NoCopy when it is not there. Requests that wait to write to it
// get fault.NoCopy; its watchers are woken.
func (l *Local) Drop(ctx context.Context, name string) error {
	if err := l.remove(ctx, name, l.engine.Drop); err != nil {
		return fmt.Errorf("drop %s: %w", name, err)
	}
	return nil
}

// remove has the engine take the store of a copy away.
func (l *Local) remove(ctx context.Context, name string, out func(name string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.stopCompaction(name)
	if err := out(name); err != nil {
		return err
	}
	if l.onDrop != nil {
		l.onDrop(name)
	}
	if exited := l.forgetDropped(name); exited != nil {
		<-exited // it has no store any more: at once
	}
	return nil
}

// Has reports whether a copy is on this node. It is not opened for that.
func (l *Local) Has(name string) bool { return l.engine.Has(name) }

// DiskFull is fault.InsufficientStorage while the disk of this node is full.
func (l *Local) DiskFull() error { return l.engine.DiskFull() }

// Names lists the copies on this node.
func (l *Local) Names() ([]string, error) {
	names, err := l.engine.Names()
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	return names, nil
}

// Stored is Names with what the directories say which copies they are.
func (l *Local) Stored() ([]paths.Store, error) {
	stores, err := l.engine.Stored()
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	return stores, nil
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

// newKey names the content of an attachment or an entry in the purge log.
// It is random, never derived: content that compaction found without a
// reference can then not come back under the same name.
func newKey() [16]byte {
	var k [16]byte
	_, _ = rand.Read(k[:]) // never fails
	return k
}

package shard

import (
	"context"
	"crypto/rand"

	"go.uber.org/zap"

	"divan/shard/query"
	"divan/shard/writefence"
	"divan/storage"
	"divan/storage/fault"
)

// Options configure a Local. Engine is required.
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
	// changed in any way, after that is durable and before the writer learns of
	// it. It must not block.
	OnDesignDoc func(copy string)
	// OnDrop is told the name of a copy that was taken away. It must not block.
	OnDrop func(copy string)
}

// Local does every operation on the copies of this node. Its own methods read and write
// the documents of a copy, with their listings, changes and purges; every other concern has
// a type of its own. It is safe for concurrent use.
type Local struct {
	Copies      *Copies      // which copies there are: made, removed, held, lost
	Compactions *Compactions // those that run
	Attachments *Attachments // contents before an edit refers to them, and their reading
	LocalDocs   *LocalDocs
	Clones      *Clones          // copies made of parts of other copies
	Writes      writefence.Fence // is passed by all changes that a coordinator counts

	states    *copyStates
	validator func(ctx context.Context, copy, db string) (Validate, error)
	filters   filters
	heavy     query.Gate
}

// New returns a Local on an engine that stays the caller's. It starts nothing:
// writers start with the first write to a copy and end when it is idle.
func New(o Options) *Local {
	states := newCopyStates(&o)
	l := &Local{
		Compactions: &Compactions{states: states, running: make(map[string]*compaction)},
		Attachments: &Attachments{states: states},
		LocalDocs:   &LocalDocs{states: states},
		Clones:      &Clones{states: states},
		states:      states, validator: o.Validator, heavy: o.Heavy,
		filters: filters{compile: o.CompileSelector, function: o.CompileFunction},
	}
	l.Copies = &Copies{engine: o.Engine, states: states, compactions: l.Compactions, onDrop: o.OnDrop}
	return l
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
	l.states.close()
	l.Compactions.stopAll()
	l.states.wg.Wait()
	return nil
}

func errClosed() error { return fault.New(fault.Closed, "the node is shutting down") }

// errNoStoredContent is for content that the tree says is stored and is not.
func errNoStoredContent() error { return fault.New(fault.Corruption, "stored content is missing") }

// newKey names the content of an attachment or an entry in the purge log.
// It is random, never derived: content that compaction found without a
// reference can then not come back under the same name.
func newKey() [16]byte {
	var k [16]byte
	_, _ = rand.Read(k[:]) // never fails
	return k
}

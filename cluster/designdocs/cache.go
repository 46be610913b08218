package designdocs

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.uber.org/zap"

	"divan/cluster"
	"divan/shard"
	"divan/shard/ring"
	"divan/shard/script"
	"divan/storage/fault"
)

// Times and sizes of a cache.
const (
	// maxBytes bounds the texts of the design documents that are kept.
	maxBytes = 64 << 20
	// wholeLife is how long an entry is used while every node of the cluster can be
	// reached. It bounds what a write may do to other nodes that was never
	// acknowledged and that repair brings to the copies later.
	wholeLife = time.Minute
	// partedLife is the same while some node cannot be reached, which then
	// cannot tell of a write.
	partedLife = 200 * time.Millisecond
)

// Options configures a Cache. DB and Scripts are required.
type Options struct {
	Node    string // this node
	DB      func(ctx context.Context, name string) (*cluster.DB, error)
	Scripts *script.Engine
	// BuiltIn returns the rules that a system database has besides its design
	// documents, nil for any other; nil: there are none.
	BuiltIn func(db string) shard.Validate
	// Standard returns a design document whose validation function counts as long as
	// the database has none of its id, nil for a database without one; nil: there are none.
	Standard func(db string) *shard.Doc
	Nodes    func() []string // the members of the cluster, this node too
	Peers    Peers           // nil: this node stands alone
	Logger   *zap.Logger     // default: none
}

// Peers is the other nodes; *wire.Pool is one.
type Peers interface {
	// Reachable reports whether a node can be asked now.
	Reachable(node string) bool
	// Ask sends a request to a service of another node.
	Ask(ctx context.Context, node, service string, request []byte) ([]byte, error)
	// Subscribe has f called when a node can be reached again or no longer.
	Subscribe(f func(node string, up bool)) (cancel func())
}

// Cache keeps design documents. It is safe for concurrent use.
//
//	C1. A read that begins after a Drop gives out what a load has read that
//	    began after that Drop.
//	C2. So a load that a Drop has overtaken is never kept, nor waited for by new
//	    reads: it is no longer its entry's flight.
type Cache struct {
	o     Options
	leave func()

	hits, misses atomic.Uint64

	mu struct {
		sync.Mutex
		entries *simplelru.LRU[string, *entry] // by the tail of the names of the copies
		bytes   int
		down    map[string]time.Time // since when nodes cannot be reached
	}
}

// entry is the cached state of one database.
type entry struct {
	tail    string
	set     *set // what was loaded last; nil: nothing yet
	valid   bool // set may be given out until expires
	expires time.Time
	flight  *flight // the load that will become set; nil: none
}

// flight is a load that several reads wait for.
type flight struct {
	done chan struct{}
	set  *set
	err  error
}

// New returns a cache that is empty. Close ends it.
func New(o Options) *Cache {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.BuiltIn == nil {
		o.BuiltIn = func(string) shard.Validate { return nil }
	}
	if o.Standard == nil {
		o.Standard = func(string) *shard.Doc { return nil }
	}
	c := &Cache{o: o, leave: func() {}}
	c.mu.entries, _ = simplelru.NewLRU[string, *entry](math.MaxInt, nil) // it refuses what is not positive
	c.mu.down = map[string]time.Time{}
	if o.Peers != nil {
		c.leave = o.Peers.Subscribe(c.changed)
	}
	return c
}

// Close ends what New began.
func (c *Cache) Close() error {
	c.leave()
	return nil
}

// Get returns a design document by its id, with "_design/". The error is
// fault.NotFound "missing" or "deleted" when there is none.
func (c *Cache) Get(ctx context.Context, db *cluster.DB, id string) (*Document, error) {
	s, err := c.read(ctx, db.Instance(), db.Name())
	if err != nil {
		return nil, err
	}
	if d := s.byID[id]; d != nil {
		return d, nil
	}
	found, err := db.Open(ctx, cluster.OpenOptions{ID: id}) // which of the two it is
	if err != nil {
		return nil, err
	}
	return newDocument(c.o.Scripts, db.Instance(), found), nil
}

// All returns the design documents of a database, ordered by id. The list must not be
// changed.
func (c *Cache) All(ctx context.Context, db *cluster.DB) ([]*Document, error) {
	s, err := c.read(ctx, db.Instance(), db.Name())
	if err != nil {
		return nil, err
	}
	return s.all, nil
}

// Reads returns how many reads found what they need, and how many had to load it or
// to wait for that, since the start.
func (c *Cache) Reads() (hits, misses uint64) { return c.hits.Load(), c.misses.Load() }

// Drop forgets the design documents of the database that a copy belongs to.
func (c *Cache) Drop(copyName string) { c.drop(ring.CopyTail(copyName)) }

func (c *Cache) drop(tail string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.mu.entries.Peek(tail); ok {
		e.invalidate()
	}
}

// invalidate makes the next read load again. What was loaded stays, so that
// documents that have not changed need not be parsed again.
func (e *entry) invalidate() { e.valid, e.flight = false, nil }

// changed notes that a node can be reached or no longer: it may have told of
// writes in vain.
func (c *Cache) changed(node string, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if up {
		delete(c.mu.down, node)
	} else {
		c.mu.down[node] = time.Now()
	}
	for _, e := range c.mu.entries.Values() {
		e.invalidate()
	}
}

// read returns the design documents of the database whose copies have that tail.
func (c *Cache) read(ctx context.Context, tail, name string) (*set, error) {
	c.mu.Lock()
	e := c.entryLocked(tail)
	if e.valid && time.Now().Before(e.expires) {
		s := e.set
		c.mu.Unlock()
		c.hits.Add(1)
		return s, nil
	}
	c.misses.Add(1)
	if f := e.flight; f != nil {
		c.mu.Unlock()
		select {
		case <-f.done:
			return f.set, f.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f := &flight{done: make(chan struct{})}
	e.flight = f
	before := e.set
	c.mu.Unlock()
	return c.fly(context.WithoutCancel(ctx), e, f, func(ctx context.Context) (*set, error) { // others wait for it too
		return c.load(ctx, tail, name, before)
	})
}

// fly does a load.
func (c *Cache) fly(ctx context.Context, e *entry, f *flight, load func(context.Context) (*set, error)) (*set, error) {
	f.err = fault.New(fault.Internal, "reading design documents has failed") // should it panic
	life := c.life()                                                         // before: a node that goes meanwhile drops the flight
	defer func() {
		close(f.done)
		c.keep(e, f, life)
	}()
	f.set, f.err = load(ctx)
	return f.set, f.err
}

// entryLocked returns the entry of a database, made when there is none, as the one used
// last.
func (c *Cache) entryLocked(tail string) *entry {
	if e, ok := c.mu.entries.Get(tail); ok {
		return e
	}
	e := &entry{tail: tail}
	c.mu.entries.Add(tail, e)
	c.mu.bytes += entryBytes
	return e
}

// keep makes what was loaded the entry's, unless that was dropped meanwhile, and
// lets go of the entries used longest ago when there are too many.
func (c *Cache) keep(e *entry, f *flight, life time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.flight != f {
		return
	}
	e.flight = nil
	if now, _ := c.mu.entries.Peek(e.tail); now != e {
		return // let go of meanwhile
	}
	if f.err == nil {
		c.mu.bytes += f.set.bytes - e.set.size()
		e.set, e.valid, e.expires = f.set, true, time.Now().Add(life)
	}
	for c.mu.bytes > maxBytes && c.mu.entries.Len() > 1 {
		_, old, _ := c.mu.entries.RemoveOldest()
		c.mu.bytes -= entryBytes + old.set.size()
	}
}

// life is how long what is loaded now may be used.
func (c *Cache) life() time.Duration {
	for _, node := range c.others() {
		if !c.o.Peers.Reachable(node) {
			return partedLife
		}
	}
	return wholeLife
}

// others returns the other nodes of the cluster.
func (c *Cache) others() []string {
	if c.o.Peers == nil {
		return nil
	}
	var out []string
	for _, node := range c.o.Nodes() {
		if node != c.o.Node {
			out = append(out, node)
		}
	}
	return out
}

// errOther says that the copy that is asked belongs to another database of that name
// than the one this node knows.
func errOther(name string) error {
	return fault.Newf(fault.Unavailable, "This node does not know the design documents of %s.", name)
}

package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"divan/cluster/attachment"
	"divan/cluster/config"
	"divan/cluster/events"
	"divan/cluster/figures"
	"divan/cluster/lost"
	"divan/cluster/meta"
	"divan/cluster/peers"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/index"
	"divan/shard/search"
	"divan/shard/view"
)

// Options configures a Coordinator. NodeName, Meta, Config, Local and Logger are required.
type Options struct {
	NodeName string // this node, as the shard maps name it
	Meta     *meta.Meta
	Config   *config.Holder
	Local    *shard.Local    // the copies on this node
	Indexes  *index.Manager  // of those copies; nil: indexes are not asked for
	Views    *view.Views     // likewise
	Searches *search.Indexes // likewise
	Logger   *zap.Logger
	Peers    peers.Directory // nil: this node stands alone
	Repair   Repair          // nil: copies are not brought in line
	// DesignWritten is called before the answer to a request that may have changed a design
	// document, whether it did or not; nil: not called.
	DesignWritten func(ctx context.Context, d *DB)
}

// Coordinator does what clients ask of databases. It is safe for concurrent
// use.
//
// LOCKS: handles.mu and background.mu guard maps and counters only; nothing is
// called while one is held.
type Coordinator struct {
	*replicas
	*background

	meta    *meta.Meta
	config  *config.Holder
	log     *zap.Logger
	held    replica.Held
	lost    *lost.Register // which copies of this node are gone for good
	missing *lost.Missing  // which of them are gone and have to join
	keeper  *copyKeeper    // makes and removes the copies of this node
	design  func(ctx context.Context, d *DB)

	handles     handles
	readRepairs readRepairs
	figures     figures.Counters
	events      events.Queue // what _db_updates is fed from
	uploads     attachment.Uploader
}

// New returns a coordinator. It starts nothing; Run must be running for copies
// to be brought in line with the map.
func New(o Options) (*Coordinator, error) {
	if o.NodeName == "" || o.Meta == nil || o.Config == nil || o.Local == nil || o.Logger == nil {
		return nil, errors.New("cluster: NodeName, Meta, Config, Local and Logger are required")
	}
	c := &Coordinator{
		replicas: &replicas{node: o.NodeName, others: peers.Alone{}, repair: o.Repair}, background: &background{config: o.Config},
		meta: o.Meta, config: o.Config, log: o.Logger,
		missing: lost.NewMissing(),
		lost:    lost.NewRegister(o.Local.Copies, o.Logger), uploads: attachment.Uploader{Config: o.Config}, design: o.DesignWritten,
	}
	if c.design == nil {
		c.design = func(context.Context, *DB) {}
	}
	c.held = replica.Held{Shards: o.Local, Indexes: o.Indexes, Views: o.Views, Searches: o.Searches, Place: PlaceOn(o.NodeName, o.Meta), Heard: c.heard, Make: c.makeAsked, Dropped: c.lost.NoteDropped}
	c.local = replica.NewLocal(c.held)
	c.keeper = &copyKeeper{node: c.node, meta: c.meta, local: c.local, shards: o.Local, lost: c.lost, missing: c.missing, log: c.log}
	c.handles.c, c.handles.byName = c, make(map[string]*DB)
	c.readRepairs.figures = &c.figures
	if o.Peers != nil {
		c.others = peers.Of(o.Peers)
	}
	c.meet(c.others)
	return c, nil
}

// Held returns the copies of this node and what follows them, for other nodes, too.
func (c *Coordinator) Held() replica.Held { return c.held }

// Figures returns what became of documents since the start.
func (c *Coordinator) Figures() figures.Figures { return c.figures.Now() }

// DB returns a handle on a database. The error is fault.NotFound "Database
// does not exist." when there is none: for a name that this node does not
// know that is said only after it has caught up with the metadata of the
// cluster, so that a database created through another node is never denied.
func (c *Coordinator) DB(ctx context.Context, name string) (*DB, error) {
	m, err := c.meta.Require(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.handles.get(m), nil
}

// maxHandles bounds the cache of handles: one costs a few hundred bytes.
const maxHandles = 4096

// handles keeps the handles of databases in use, because the names of the
// copies and the cover need not be worked out for every request.
type handles struct {
	c      *Coordinator
	making singleflight.Group // by DB.Instance; for making the copies of this node, and for undoing a creation for lack of them
	mu     sync.RWMutex
	byName map[string]*DB

	hearing struct { // see heard
		vain    atomic.Uint64 // a generation that was waited for in vain
		waiters atomic.Int64
	}
}

// held returns the handle that is kept for a name, nil when there is none.
func (h *handles) held(name string) *DB {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.byName[name]
}

// get returns a handle on a database.
func (h *handles) get(m *meta.Database) *DB {
	d := h.held(m.Name)
	if d == nil || d.meta != m {
		d = newDB(h.c, m)
		h.put(d)
	}
	return d
}

// made reports whether the copies of this node were made by that map of a database.
func (h *handles) made(m *meta.Database) bool {
	d := h.held(m.Name)
	return d != nil && d.meta == m && d.made.Load()
}

// secure makes the copies of a database on this node that are not there yet.
func (h *handles) secure(ctx context.Context, d *DB) error {
	done := h.making.DoChan(d.Instance(), func() (any, error) {
		return nil, h.c.keeper.ensureStill(context.WithoutCancel(ctx), d.meta) // others wait for it too
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn runs f while no other goroutine makes copies of the database on this node. It does not take
// the outcome of a call that another goroutine has begun for that of f.
func (h *handles) turn(d *DB, f func() error) error {
	for {
		ran := false
		_, err, _ := h.making.Do(d.Instance(), func() (any, error) {
			ran = true
			return nil, f()
		})
		if ran {
			return err
		}
	}
}

func (h *handles) put(d *DB) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.byName) >= maxHandles {
		for name := range h.byName { // any one will do: making it again is cheap
			delete(h.byName, name)
			break
		}
	}
	h.byName[d.meta.Name] = d
}

func (h *handles) forget(name string) {
	h.mu.Lock()
	delete(h.byName, name)
	h.mu.Unlock()
}

// Close waits for the writes to slower copies that are still under way, for
// some seconds at most. No operation may be started after Close.
func (c *Coordinator) Close() error {
	c.refuse()
	c.leave()
	c.wait()
	return nil
}

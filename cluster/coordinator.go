package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"divan/cluster/attachment"
	"divan/cluster/config"
	"divan/cluster/events"
	"divan/cluster/fanout"
	"divan/cluster/figures"
	"divan/cluster/lost"
	"divan/cluster/meta"
	"divan/cluster/peers"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/index"
	"divan/shard/view"
	"divan/storage/fault"
)

// Options are what a Coordinator is made of. All but Peers, Repair and
// DesignWritten are required.
type Options struct {
	NodeName string // this node, as the shard maps name it
	Meta     *meta.Meta
	Config   *config.Holder
	Local    *shard.Local   // the copies on this node
	Indexes  *index.Manager // of those copies; nil: indexes are not asked for
	Views    *view.Views    // likewise
	Logger   *zap.Logger
	Peers    peers.Directory // nil: this node stands alone
	Repair   Repair          // nil: copies are not brought in line
	// DesignWritten is called before a request is answered that may have changed a
	// design document, whatever came of it; nil: nobody is told.
	DesignWritten func(ctx context.Context, d *DB)
}

// Repair brings copies in line with each other.
type Repair interface {
	// Missed is told that a copy on a node lacks something that another copy of
	// its range has. It returns at once.
	Missed(copy, node string)
	// Sync starts a round of synchronisation for copies that this node or
	// others hold, by name. It returns before the round is over.
	Sync(ctx context.Context, copies []string) error
}

// Coordinator does what clients ask of databases. It is safe for concurrent
// use.
//
// LOCKS: handles.mu and work.mu guard maps and counters only; nothing is
// called while one is held.
type Coordinator struct {
	node    string
	meta    *meta.Meta
	config  *config.Holder
	log     *zap.Logger
	held    replica.Held
	local   ownCopies
	lost    *lost.Register // which of them are gone for good
	missing *lost.Missing  // which of them are gone and have to join
	others  peers.Others
	repair  Repair // nil: nobody repairs
	design  func(ctx context.Context, d *DB)

	here        peers.Presence
	latency     struct{ reads, writes fanout.Latency } // of answers of other nodes
	handles     handles
	readRepairs readRepairs
	figures     figures.Counters
	events      events.Queue // what _db_updates is fed from
	uploads     attachment.Uploader
	leave       func() // ends the watching of other nodes
	work        struct {
		sync.Mutex
		closed  bool
		running sync.WaitGroup // goroutines that may outlive the request they belong to
		number  uint64
		cancels map[uint64]context.CancelFunc // of what detach runs
	}
}

// New returns a coordinator. It starts nothing; Run must be running for copies
// to be brought in line with the map.
func New(o Options) (*Coordinator, error) {
	if o.NodeName == "" || o.Meta == nil || o.Config == nil || o.Local == nil || o.Logger == nil {
		return nil, errors.New("cluster: NodeName, Meta, Config, Local and Logger are required")
	}
	c := &Coordinator{
		node: o.NodeName, meta: o.Meta, config: o.Config, log: o.Logger,
		others: peers.Nobody{}, repair: o.Repair,
		missing: lost.NewMissing(),
		lost:    lost.NewRegister(o.Local.Copies, o.Logger), uploads: attachment.Uploader{Config: o.Config}, design: o.DesignWritten,
	}
	if c.design == nil {
		c.design = func(context.Context, *DB) {}
	}
	c.held = replica.Held{Shards: o.Local, Indexes: o.Indexes, Views: o.Views, Place: PlaceOn(o.NodeName, o.Meta), Heard: c.heard, Make: c.makeAsked, Dropped: c.lost.NoteDropped}
	c.local = replica.NewLocal(c.held)
	c.handles.byName = make(map[string]*DB)
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

// meet makes other nodes known to the coordinator.
func (c *Coordinator) meet(o peers.Others) {
	if c.leave != nil {
		c.leave()
	}
	c.others, c.leave = o, o.Subscribe(c.here.Changed)
	c.here.Changed("", true)
}

// replica returns a copy; it is Away when its node cannot be reached.
func (c *Coordinator) replica(t fanout.Target) replica.Copy {
	return replica.Copy{At: c.copies(t.Node), To: t.Addressee()}
}

// copies returns the copies of a node, nil when it cannot be reached.
func (c *Coordinator) copies(node string) replica.Copies {
	if node == c.node {
		return c.local
	}
	return c.others.Find(node)
}

// missed notes that a copy does not have what other copies of its range have.
func (c *Coordinator) missed(t fanout.Target) {
	if c.repair != nil {
		c.repair.Missed(t.Name, t.Node)
	}
}

// DB returns a handle on a database. The error is fault.NotFound "Database
// does not exist." when there is none: for a name that this node does not
// know that is said only after it has caught up with the metadata of the
// cluster, so that a database created through another node is never denied.
func (c *Coordinator) DB(ctx context.Context, name string) (*DB, error) {
	m, err := c.meta.Require(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.handles.get(c, m), nil
}

// maxHandles bounds the cache of handles: one costs a few hundred bytes.
const maxHandles = 4096

// handles keeps the handles of databases in use, because the names of the
// copies and the cover need not be worked out for every request.
type handles struct {
	making singleflight.Group // by DB.key; whoever makes copies of this node, or undoes a creation for lack of them
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
func (h *handles) get(c *Coordinator, m *meta.Database) *DB {
	d := h.held(m.Name)
	if d == nil || d.meta != m {
		d = newDB(c, m)
		h.put(d)
	}
	return d
}

// secure makes the copies of a database on this node that are not there yet.
func (h *handles) secure(ctx context.Context, c *Coordinator, d *DB) error {
	done := h.making.DoChan(d.Instance(), func() (any, error) {
		return nil, c.ensureStill(context.WithoutCancel(ctx), d) // others wait for it too
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn runs f while nobody else makes copies of the database on this node. It
// does not do with the outcome of what somebody else has begun.
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

// closePatience is how long Close waits for slower copies. Repair brings them
// what they have not taken by then.
const closePatience = 10 * time.Second

// Close waits for the writes to slower copies that are still under way, for
// some seconds at most. No operation may be started after Close.
func (c *Coordinator) Close() error {
	c.work.Lock()
	c.work.closed = true
	c.work.Unlock()
	c.leave()
	late := time.AfterFunc(closePatience, c.giveUp)
	defer late.Stop()
	c.work.running.Wait()
	return nil
}

// giveUp ends what detach runs.
func (c *Coordinator) giveUp() {
	c.work.Lock()
	defer c.work.Unlock()
	for _, cancel := range c.work.cancels {
		cancel()
	}
}

// spawn runs f on a goroutine of its own, which Close waits for; f has to end
// soon after its request does. It returns false when the coordinator is
// closing.
func (c *Coordinator) spawn(f func()) bool {
	c.work.Lock()
	defer c.work.Unlock()
	if c.work.closed {
		return false
	}
	c.work.running.Go(f)
	return true
}

// detach runs f on a goroutine of its own that ends when [fabric]
// request_timeout is over, even if the request ends before, or some seconds
// after Close has begun. It returns false when the coordinator is closing.
func (c *Coordinator) detach(ctx context.Context, f func(context.Context)) bool {
	c.work.Lock()
	defer c.work.Unlock()
	if c.work.closed {
		return false
	}
	ctx, cancel := c.deadline(context.WithoutCancel(ctx))
	if c.work.cancels == nil {
		c.work.cancels = make(map[uint64]context.CancelFunc)
	}
	c.work.number++
	number := c.work.number
	c.work.cancels[number] = cancel
	c.work.running.Go(func() {
		f(ctx)
		cancel()
		c.work.Lock()
		delete(c.work.cancels, number)
		c.work.Unlock()
	})
	return true
}

// deadline bounds a fan-out by [fabric] request_timeout; a nearer deadline of
// the request itself stands.
func (c *Coordinator) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := c.requestTimeout()
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// requestTimeout returns [fabric] request_timeout; 0: none.
func (c *Coordinator) requestTimeout() time.Duration { return c.config.Load().Fabric.RequestTimeout }

func (c *Coordinator) maxPartitionSize() int64 {
	return max(c.config.Load().CouchDB.MaxPartitionSize, 0)
}

// noDatabase is the text that PouchDB and the replicator test for.
const noDatabase = "Database does not exist."

func errNoDatabase() error { return fault.New(fault.NoDatabase, noDatabase) }

// explain turns what the copies said, of which those that answered are sure,
// into what the client is told. When they say that they are not there, this node
// may not have heard yet that the database was deleted: it asks the group, so
// that the answer is 404 and not 503.
func (d *DB) explain(ctx context.Context, err error) error {
	d.catchUp(ctx, err)
	return d.phrase(err)
}

// catchUp does the asking of explain. That the database is gone may be known
// already and that another one has its name not yet.
func (d *DB) catchUp(ctx context.Context, err error) {
	if !fault.Is(err, fault.NoCopy) {
		return
	}
	if now, ok := d.c.meta.Database(d.meta.Name); ok && now.ID != d.meta.ID {
		return
	}
	soon, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
	defer cancel()
	_ = d.c.meta.CatchUp(soon) // without a leader it stays as it is
}

// phrase is explain with what this node knows: of a copy that is gone because
// the database was deleted meanwhile, and of a deadline that passed. What was
// phrased once stays as it is: a node that cannot be reached may have a deadline
// of dialing for its cause, which is none of the request's.
func (d *DB) phrase(err error) error {
	switch {
	case err == nil:
		return nil
	case fault.Is(err, fault.Unavailable):
		return d.unavailable(err)
	case fault.Is(err, fault.NoCopy):
		switch m, ok := d.c.meta.Database(d.meta.Name); {
		case !ok:
			return errNoDatabase()
		case m.ID != d.meta.ID:
			return fault.Wrap(fault.NoDatabase, noDatabase, ErrSuccessor)
		}
		return d.unavailable(err)
	case fault.Is(err, fault.NodeDown), fault.Is(err, fault.StaleMap):
		return d.unavailable(err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.Timeout, fanout.TimeoutText, err)
	default:
		return err
	}
}

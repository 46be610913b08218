package core

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/designdocs"
	"divan/cluster/indexes"
	"divan/cluster/meta"
	"divan/cluster/view"
	"divan/httpapi/auth"
	"divan/httpapi/conns"
	"divan/httpapi/guard"
	"divan/httpapi/stats"
	"divan/replicator"
	"divan/reshard"
	"divan/reshard/rebalance"
	"divan/shard/query"
	"divan/shard/script"
	"divan/storage/fault"
	"divan/storage/memory"
)

// Deps are the parts and settings that the API is built from. Everything up to Logger is
// required.
type Deps struct {
	Coordinator *cluster.Coordinator
	Views       *view.Views
	Indexes     *indexes.Indexes
	Meta        *meta.Meta
	Config      *config.Holder
	Auth        *auth.Authenticator
	Designs     *designdocs.Cache
	Scripts     *script.Engine // what checks functions when a design document is saved
	Logger      *zap.Logger
	Version     string // of this server, for "/", the Server header and _versions
	// Restart is called when an administrator asks the node to restart (POST
	// /_node/{name}/_restart), once the answer is written; it must return at
	// once. nil: such a request is refused.
	Restart func()
	// Figures returns numbers of the node for _stats, _system and _prometheus; nil: there are
	// none.
	Figures func() Figures
	// Tasks lists what is running in the background, for _active_tasks; nil: there are none.
	Tasks func() []Task
	// Replicator runs the replications of this node. It is set before the first request; nil:
	// there are none, and no request may ask for one.
	Replicator *replicator.Replicator
	// Reshard is the jobs that split shards; nil: such requests are refused.
	Reshard *reshard.Table
	// Rebalance moves shards between nodes; nil: this node stands alone.
	Rebalance *rebalance.Rebalancer
	// Heavy bounds the matching of selectors that takes long; nil: nothing does.
	Heavy query.Gate
	// Cluster are the other nodes; nil: this node stands alone.
	Cluster Cluster
	// Dial opens a connection to the HTTP port of a node that is being set up
	// (POST /_cluster_setup); nil: a real one.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Limits are those of this process.
	Limits Limits
}

// Limits bounds the resources that the process may take for its clients.
type Limits struct {
	// BodyMemory is how many bytes the bodies of all requests may take when the
	// configuration does not say; 0: a default.
	BodyMemory int64
	// Connections is how many connections of clients there may be; 0: any number.
	Connections int
}

// TextOverload is the reason of a 503 while there is too much to do.
const TextOverload = "Nodes are unable to service this request due to overloading or maintenance mode."

// API answers HTTP requests: the core of the API, without any endpoint. It is
// safe for concurrent use.
type API struct {
	Deps    Deps
	router  *router
	Stats   *stats.Counters
	answers chunkPool
	bodies  bodyPools
	calls   sync.Pool
	set     atomic.Pointer[settings]
	Guard   *guard.Guard
	// Connections are those of clients, over all listeners.
	Connections *conns.Limiter
	Memory      *memory.Budget // of bodies and held answers, and of what replications read
	shares      *memory.Shares // of Memory, those of requests
	forwarding  forwarding
	uuids       uuidSource
	feeds       feedGate
	refusals    *zap.Logger // a few lines of many
	Started     time.Time
	active      atomic.Int64 // requests under way
	stopped     atomic.Bool
}

// New returns an API without endpoints; Mount adds those.
func New(d Deps) *API {
	a := &API{
		Deps: d, Stats: &stats.Counters{}, Started: time.Now(),
		Guard: &guard.Guard{Auth: d.Auth, Scripts: d.Scripts}, refusals: fewOf(d.Logger),
	}
	if d.Scripts != nil {
		d.Scripts.WatchValidations(a.Stats.ValidationTook)
	}
	a.Memory = memory.NewBudget(a.memoryLimit)
	a.shares = memory.ForRequests(a.Memory)
	a.bodies.parsing = newParseLimit()
	a.Connections = conns.New(a.connectionOptions())
	d.Config.Subscribe(func(_, now *config.Snapshot) { a.feeds.pause(now.CouchDB.MaintenanceMode != "") })
	a.feeds.pause(d.Config.Load().CouchDB.MaintenanceMode != "")
	return a
}

// Mount makes the rows of all families the endpoints of the API. It is called
// once, before the first request. Rows of a table are tried in the order given.
func (a *API) Mount(families ...[]Route) { a.router = newRouter(slices.Concat(families...)) }

// Active returns how many requests are under way, feeds included.
func (a *API) Active() int { return int(a.active.Load()) }

// Stop prepares for the end: /_up answers 404, so that a load balancer sends
// no more requests here, and changes feeds end. Other requests are still
// served. It cannot be undone.
func (a *API) Stop() {
	a.stopped.Store(true)
	a.EndFeeds()
}

// IsStopped reports whether Stop was called.
func (a *API) IsStopped() bool { return a.stopped.Load() }

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer := conns.From(r.Context())
	peer.Begin()
	defer peer.End()
	c := a.newCall(w, r)
	c.peer, c.Body.peer = peer, peer
	defer a.active.Add(-1)
	if err := c.run(a.active.Add(1)); err != nil { //nolint:contextcheck // the call carries the request, and with it its context
		c.fail(err)
	} else if !c.Response.Started() {
		c.Response.WriteHeader(http.StatusOK)
	}
	c.finish()
	a.release(c)
}

// newCall takes a call from the pool.
func (a *API) newCall(w http.ResponseWriter, r *http.Request) *Call {
	c, ok := a.calls.Get().(*Call)
	if !ok {
		c = &Call{Response: &Response{}, Target: Target{scratch: &scratch{}}}
	}
	c.assemble(a, w, r, c.scratch)
	c.RequestID = requestID(r)
	return c
}

// release gives the call back, with what its body has taken. The request may live on
// in a handler that was hijacked; the call may not.
func (a *API) release(c *Call) {
	c.Body.End()
	c.Memory.release()
	s, res := c.scratch, c.Response
	s.params, s.segments, s.escaped = emptied(s.params), emptied(s.segments), emptied(s.escaped)
	*res = Response{}
	*c = Call{Response: res, Target: Target{scratch: s}}
	a.calls.Put(c)
}

// emptied returns a slice for reuse that holds on to nothing of the request; a
// large one is left to the collector.
func emptied[T any](s []T) []T {
	const keep = 64
	if cap(s) > keep {
		return nil
	}
	clear(s[:cap(s)])
	return s[:0]
}

// settings returns what this package made of a snapshot. Two requests may both
// read a new snapshot; either result is right.
func (a *API) settings(cfg *config.Snapshot) *settings {
	if s := a.set.Load(); s != nil && s.from == cfg {
		return s
	}
	s := newSettings(cfg, a.Deps.Version)
	s.bodyMemory = cmp.Or(cfg.Chttpd.MaxBodyMemory, a.Deps.Limits.BodyMemory, defaultBodyMemory)
	a.set.Store(s)
	return s
}

// run takes a request through all steps. A panic becomes an error.
// active is the number of requests under way, this one included.
func (c *Call) run(active int64) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
				c.Body.End()
				c.Memory.release()
				panic(v)
			}
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	c.Response.commonHeaders(c.RequestID)
	if err := c.admit(); err != nil {
		return err
	}
	if err := c.refuseExcess(active); err != nil {
		return err
	}
	if c.Method == http.MethodOptions && c.set.cors.preflight(c.Response) {
		return nil
	}
	if err := c.API.refuseRemoved(&c.Target); err != nil {
		return err
	}
	c.route = c.API.router.route(&c.Target)
	if err := c.identify(); err != nil {
		return err
	}
	return c.answer()
}

// answer carries out a request. A node that has not heard that a database was
// deleted and made again begins with the one that is gone, and learns better
// from its copies; one that has heard of a new database may be faster than the
// copies of it are made. The client need not know: all begins again, with the
// question of who may do what.
func (c *Call) answer() error {
	var attempts cluster.Attempts
	for {
		err := c.authorize()
		if err == nil {
			err = c.dispatch()
		}
		if err == nil || c.Response.Started() {
			return err
		}
		if c.Body.streamed || !attempts.Again(err) {
			if errors.Is(err, cluster.ErrSuccessor) {
				err = fault.Wrap(fault.Unavailable, "The database was deleted and made again meanwhile. Try again.", err)
			}
			return err
		}
		if c.Response.streaming != nil {
			c.Response.streaming.release()
		}
		c.Memory.restart()
		c.Response.resetHeaders()
		c.DB = nil
	}
}

// admit makes the checks that come before authentication.
func (c *Call) admit() error {
	if c.Method == http.MethodPost {
		c.overrideMethod(c.Request.Header)
	}
	if c.Method == http.MethodHead {
		c.Method, c.Head = http.MethodGet, true
	}
	raw, query := c.Request.RequestURI, ""
	if i := strings.IndexByte(raw, '?'); i >= 0 {
		raw, query = raw[:i], raw[i+1:]
	}
	if int64(len(c.Request.RequestURI)) > c.Config.Chttpd.MaxURILength {
		return fault.New(fault.URITooLong, "the request uri is too long")
	}
	if !strings.HasPrefix(raw, "/") {
		raw = c.Request.URL.EscapedPath() // absolute-form, as proxies send it
	}
	raw = c.atVirtualHost(raw, query)
	if err := c.parsePath(raw, c.Config.Chttpd.DecodePlusToSpace); err != nil {
		return err
	}
	if err := c.parseQuery(query); err != nil {
		return err
	}
	if err := c.Response.checkCallback(); err != nil {
		return err
	}
	if c.Request.ContentLength > c.set.maxRequestSize {
		return c.Response.TooLarge()
	}
	return nil
}

// identify finds out who sent the request.
func (c *Call) identify() error {
	result, err := c.API.Deps.Auth.Authenticate(c.Request)
	if err != nil {
		return err
	}
	c.Auth, c.User = result, result.User
	if result.RefreshCookie != "" && (len(c.Path) != 1 || c.Path[0] != "_session") {
		c.Response.Header()["Set-Cookie"] = []string{result.RefreshCookie}
	}
	return requireUser(c.need(), &c.User, &c.Config.Chttpd)
}

// dispatch runs the endpoint's handler for the method.
func (c *Call) dispatch() error {
	if c.DBName != "" && c.DB == nil && !c.createsDatabase() {
		if err := c.OpenDatabase(); err != nil {
			return err
		}
	}
	if c.route == nil {
		return NotHere(c)
	}
	h := c.route.handlerFor(c.Method)
	if h == nil {
		return &MethodError{Allow: c.route.Allow}
	}
	if c.User.Anonymous && c.Request.ContentLength != 0 {
		c.Body.await()
		defer c.Body.arrive()
	}
	return h(c)
}

// OpenDatabase looks the database of the path up.
func (c *Call) OpenDatabase() error {
	db, err := c.API.Deps.Coordinator.DB(c.Request.Context(), c.DBName)
	if err != nil {
		return err
	}
	c.DB = db
	return nil
}

// requestID returns the client's id when it is short and plain, else ten
// random hexadecimal digits.
func requestID(r *http.Request) string {
	if v := r.Header["X-Couch-Request-Id"]; len(v) != 0 && wellFormedID(v[0]) {
		return v[0]
	}
	return NewRequestID()
}

// NewRequestID returns ten random hexadecimal digits.
func NewRequestID() string {
	const digits = "0123456789abcdef"
	var id [10]byte
	n := rand.Uint64()
	for i := range id {
		id[i] = digits[n&15]
		n >>= 4
	}
	return string(id[:])
}

func wellFormedID(s string) bool {
	if len(s) == 0 || len(s) > 36 {
		return false
	}
	for i := range len(s) {
		b := s[i]
		if (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && b != '-' && b != '_' {
			return false
		}
	}
	return true
}

// gone reports whether the client has hung up.
func (c *Call) gone() bool { return errors.Is(c.Request.Context().Err(), context.Canceled) }

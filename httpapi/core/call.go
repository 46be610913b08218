package core

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/httpapi/auth"
	"divan/httpapi/conns"
	"divan/shard"
	"divan/shard/fairqueue"
)

// Handler serves one method of one endpoint. The error it returns becomes the
// answer (errors.go), as long as no byte of an answer was written; after that
// it only goes to the log.
type Handler func(c *Call) error

// Call is one request on its way through the package, as handlers get it. It is reused for later
// requests once the answer is out: nothing may keep it, nor what it is made of.
type Call struct {
	API       *API
	Response  *Response // the answer
	Request   *http.Request
	Body      Body             // of the request
	Memory    Memory           // that the request has
	Config    *config.Snapshot // the configuration for the whole request
	set       *settings        // what this package made of it
	Log       *zap.Logger      // without fields of the request
	RequestID string           // X-Couch-Request-ID
	User      shard.User
	Auth      auth.Result

	Target             // what is asked for
	DB     *cluster.DB // the database, nil on server endpoints and while creating or deleting one

	route     *endpoint // nil: there is none
	Start     time.Time
	peer      *conns.Conn // nil: the request came another way
	internal  bool        // the program itself made the request: no virtual host counts
	requested string      // path and query below a virtual host; empty: there is none
}

// assemble gives a call what it is made of, for a request whose answer goes to w.
func (c *Call) assemble(a *API, w http.ResponseWriter, r *http.Request, s *scratch) {
	res := c.Response
	*c = Call{API: a, Response: res, Request: r, Log: a.Deps.Logger, Target: Target{Method: r.Method, scratch: s}, Start: time.Now()}
	c.Config = a.Deps.Config.Load()
	c.set = a.settings(c.Config)
	*res = Response{inner: w, request: r, target: &c.Target, body: &c.Body, config: c.Config, set: c.set, pools: &a.answers}
	c.Memory = Memory{api: a, response: res}
	c.Body = Body{
		request: r, response: res, memory: &c.Memory, config: c.Config, most: c.set.maxRequestSize, user: &c.User, target: &c.Target, pools: &a.bodies,
	}
}

// ForAccount has the turns that the request waits for count as those of its account.
func (c *Call) ForAccount() {
	c.Request = c.Request.WithContext(fairqueue.With(c.Request.Context(), fairqueue.Caller{Account: c.User.Name}))
}

// CutOff ends the connection of a client that does not take its answer. It may be
// called on another goroutine as long as the request is served.
func (c *Call) CutOff() {
	if c.peer != nil {
		c.peer.CutOff()
		return
	}
	_ = http.NewResponseController(c.Response.inner).SetWriteDeadline(time.Unix(1, 0)) // else the client has its time
}

// BaseURL returns scheme://host as the client sees this server: the forwarding
// headers of a proxy count (their names are settings), then Host and the
// socket.
func (c *Call) BaseURL() string { return baseURL(c.Request, c.Config) }

func baseURL(r *http.Request, cfg *config.Snapshot) string {
	host := r.Header.Get(cfg.Chttpd.Forwarded.Host)
	if host == "" {
		host = r.Host
	}
	return scheme(r, cfg) + "://" + host
}

// Scheme returns http or https, as the client sees this server.
func (c *Call) Scheme() string { return scheme(c.Request, c.Config) }

func scheme(r *http.Request, cfg *config.Snapshot) string {
	if r.Header.Get(cfg.Chttpd.Forwarded.SSL) == "on" {
		return "https"
	}
	switch r.Header.Get(cfg.Chttpd.Forwarded.Proto) {
	case "https":
		return "https"
	case "http":
		return "http"
	}
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

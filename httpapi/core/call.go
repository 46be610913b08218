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
	"divan/storage/fault"
	"divan/storage/memory"
)

// Handler serves one method of one endpoint. The error it returns becomes the
// answer through the table of errors.go, as long as no byte of an answer was
// written; after that it only goes to the log.
type Handler func(c *Call) error

// Call is one request on its way through the package. It is reused for later
// requests once the answer is out: nothing may keep it, nor the response.
type Call struct {
	API       *API
	Response  *Response
	Request   *http.Request
	Config    *config.Snapshot // the configuration for the whole request
	set       *settings        // what this package made of it
	Log       *zap.Logger      // without fields of the request
	RequestID string           // X-Couch-Request-ID
	User      shard.User
	Auth      auth.Result

	Method string   // after X-HTTP-Method-Override; HEAD reads GET here, see Head
	Head   bool     // the client sent HEAD: same headers, no body
	Path   []string // decoded segments, without empty ones
	Query  Params   // decoded query string, in order

	target             // the database and document of the path
	DB     *cluster.DB // the database, nil on server endpoints and while creating or deleting one

	route     *endpoint
	Start     time.Time
	transfer           // how the body comes
	scratch   *scratch // what is reused with the call
	streaming *Stream  // the streamed answer under way
}

// transfer is how the body of a request comes.
type transfer struct {
	peer     *conns.Conn   // nil: the request came another way
	bodyTime time.Duration // spent reading the body
	memory   memory.Claim  // what the body has of what there is for all
	bodyOver bool          // nothing more is read of it
	arrived  func()        // to be called once the body of a client that nobody knows is there; nil: done
}

// target is what the path of a request names.
type target struct {
	DBName string   // first segment below the database tables, else empty
	DocID  string   // below the document table: the document, "_design/x" and "_local/x" in one piece
	Rest   []string // below the document table: the segments after the document (an attachment's name)
}

// Param is one name=value of the query string, decoded.
type Param struct{ Name, Value string }

// Params is a query string, decoded.
type Params []Param

// Value returns the value of a parameter. A name that is given several times has
// its first value, as in CouchDB.
func (p Params) Value(name string) (value string, ok bool) {
	for i := range p {
		if p[i].Name == name {
			return p[i].Value, true
		}
	}
	return "", false
}

// QueryValue returns the value of a query parameter.
func (c *Call) QueryValue(name string) (value string, ok bool) { return c.Query.Value(name) }

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

// RequireJSON refuses a request whose media type is not application/json
// (endpoints marked CT in api.md). The comparison is exact, as CouchDB's.
func (c *Call) RequireJSON() error {
	if MediaType(c.Request.Header.Get("Content-Type")) == "application/json" {
		return nil
	}
	return fault.New(fault.BadContentType, "Content-Type must be application/json")
}

// RefuseForms is RequireJSON for endpoints that CouchDB lets a client call without
// any content type: what the form of a page of another site can send is refused.
func (c *Call) RefuseForms() error {
	if len(c.Request.Header["Content-Type"]) == 0 {
		return nil
	}
	return c.RequireJSON()
}

// BaseURL returns scheme://host as the client sees this server: the forwarding
// headers of a proxy count (their names are settings), then Host and the
// socket.
func (c *Call) BaseURL() string {
	host := c.Request.Header.Get(c.Config.Chttpd.Forwarded.Host)
	if host == "" {
		host = c.Request.Host
	}
	return c.Scheme() + "://" + host
}

// Scheme returns http or https, as the client sees this server.
func (c *Call) Scheme() string {
	if c.Request.Header.Get(c.Config.Chttpd.Forwarded.SSL) == "on" {
		return "https"
	}
	switch c.Request.Header.Get(c.Config.Chttpd.Forwarded.Proto) {
	case "https":
		return "https"
	case "http":
		return "http"
	}
	if c.Request.TLS != nil {
		return "https"
	}
	return "http"
}

package httpapi

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/httpapi/auth"
	"divan/shard"
	"divan/storage/fault"
)

// handler serves one method of one endpoint. The error it returns becomes the
// answer through the table of errors.go, as long as no byte of an answer was
// written; after that it only goes to the log.
type handler func(c *call) error

// call is one request on its way through the package. It is reused for later
// requests once the answer is out: nothing may keep it, nor the response.
type call struct {
	api  *engine
	w    *response
	r    *http.Request
	cfg  *config.Snapshot // the configuration for the whole request
	set  *settings        // what this package made of it
	log  *zap.Logger      // without fields of the request
	id   string           // X-Couch-Request-ID
	user shard.User
	auth auth.Result

	method string   // after X-HTTP-Method-Override; HEAD reads GET here, see head
	head   bool     // the client sent HEAD: same headers, no body
	path   []string // decoded segments, without empty ones
	query  []param  // decoded query string, in order

	target             // the database and document of the path
	db     *cluster.DB // the database, nil on server endpoints and while creating or deleting one

	route     *endpoint
	start     time.Time
	bodyTime  time.Duration // spent reading the request's body
	scratch   *scratch      // what is reused with the call
	streaming *streamWriter // the streamed answer under way
}

// target is what the path of a request names.
type target struct {
	dbName string   // first segment below the database tables, else empty
	docID  string   // below the document table: the document, "_design/x" and "_local/x" in one piece
	rest   []string // below the document table: the segments after the document (an attachment's name)
}

// param is one name=value of the query string, decoded.
type param struct{ name, value string }

// qs returns the value of a query parameter. A name that is given several
// times has its first value, as in CouchDB.
func (c *call) qs(name string) (value string, ok bool) {
	for i := range c.query {
		if c.query[i].name == name {
			return c.query[i].value, true
		}
	}
	return "", false
}

// requireJSON refuses a request whose media type is not application/json
// (endpoints marked CT in api.md). The comparison is exact, as CouchDB's.
func (c *call) requireJSON() error {
	if mediaType(c.r.Header.Get("Content-Type")) == "application/json" {
		return nil
	}
	return fault.New(fault.BadContentType, "Content-Type must be application/json")
}

// baseURL returns scheme://host as the client sees this server: the forwarding
// headers of a proxy count (their names are settings), then Host and the
// socket.
func (c *call) baseURL() string {
	host := c.r.Header.Get(c.cfg.Chttpd.Forwarded.Host)
	if host == "" {
		host = c.r.Host
	}
	return c.scheme() + "://" + host
}

func (c *call) scheme() string {
	if c.r.Header.Get(c.cfg.Chttpd.Forwarded.SSL) == "on" {
		return "https"
	}
	switch c.r.Header.Get(c.cfg.Chttpd.Forwarded.Proto) {
	case "https":
		return "https"
	case "http":
		return "http"
	}
	if c.r.TLS != nil {
		return "https"
	}
	return "http"
}

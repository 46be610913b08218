package core

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gorilla/mux"

	"divan/cluster/access"
	"divan/storage/fault"
)

// Table names one of the three routing tables. Which of them a path belongs
// to follows from its first two segments alone, so each table stays small and
// a document write looks at a handful of patterns.
type Table uint8

// The routing tables.
const (
	ServerTable Table = iota // "/", "/favicon.ico" and "/_…"
	DBTable                  // "/{db}" and "/{db}/_…": the patterns start after the database
	DocTable                 // "/{db}/{doc}…", "/{db}/_design/…", "/{db}/_local/…": the patterns start after the database
	tables
)

// Methods holds the handlers of an endpoint. HEAD runs Get.
type Methods struct {
	Get, Post, Put, Delete, Copy, Options Handler
	Any                                   Handler // every method that has no handler of its own
}

// Route is one row of a routing table. Families may contribute to the same
// path: their methods are joined, the Allow list comes from the row that has
// one.
type Route struct {
	Table  Table
	Path   string      // gorilla/mux template on the escaped path, "/" for the root of the table
	Access access.Need // who may use the methods of this row
	Allow  string      // value of Allow, exactly as CouchDB writes it: its order, with or without HEAD
	Name   string      // for the access log and the request statistics
	Methods
}

// endpoint is a route in its table. It is the http.Handler that gorilla/mux
// hands back, and is not called.
type endpoint struct {
	Route                          // Access: of methods without a handler, as the first row for the path has it
	needs [methodSlots]access.Need // of those with one
}

// methodSlots is how many handlers Methods has.
const methodSlots = 7

// slots returns the places of the handlers.
func (m *Methods) slots() [methodSlots]*Handler {
	return [...]*Handler{&m.Get, &m.Post, &m.Put, &m.Delete, &m.Copy, &m.Options, &m.Any}
}

// ServeHTTP implements http.Handler.
func (*endpoint) ServeHTTP(http.ResponseWriter, *http.Request) {}

// slotOf returns the slot of the handler of a method; that of Any, which may have none, when no other has it.
func (m *Methods) slotOf(method string) int {
	slot, h := methodSlots-1, Handler(nil)
	switch method {
	case http.MethodGet:
		slot, h = 0, m.Get
	case http.MethodPost:
		slot, h = 1, m.Post
	case http.MethodPut:
		slot, h = 2, m.Put
	case http.MethodDelete:
		slot, h = 3, m.Delete
	case "COPY":
		slot, h = 4, m.Copy
	case http.MethodOptions:
		slot, h = 5, m.Options
	}
	if h == nil {
		return methodSlots - 1
	}
	return slot
}

// handlerFor returns the handler of a method, nil when it is not allowed.
func (m *Methods) handlerFor(method string) Handler { return *m.slots()[m.slotOf(method)] }

// needOf returns who may use a method.
func (e *endpoint) needOf(method string) access.Need {
	slot := e.slotOf(method)
	if slot == methodSlots-1 && e.Any == nil {
		return e.Access
	}
	return e.needs[slot]
}

// join adds the methods and the Allow list of another row for the same path.
func (e *endpoint) join(r Route) {
	to := e.slots()
	for i, from := range r.slots() {
		if *from != nil {
			*to[i], e.needs[i] = *from, r.Access
		}
	}
	if r.Allow != "" {
		e.Allow = r.Allow
	}
	if r.Name != "" {
		e.Name = r.Name
	}
}

// router holds the three tables, and what they answer for paths of one segment,
// which most requests have: patterns are regular expressions.
type router struct {
	tables [tables]*mux.Router
	words  [tables]map[string]*endpoint // paths of one fixed segment, as "_all_docs"
	doc    *endpoint                    // any other segment of DocTable that does not begin with "_"
}

// newRouter builds the tables from the rows of all families. The order of the
// rows is the order in which patterns are tried: hot and narrow ones first.
func newRouter(rows []Route) *router {
	rt := &router{}
	type key struct {
		table Table
		path  string
	}
	seen := make(map[key]*endpoint, len(rows))
	for i := range rt.tables {
		rt.tables[i] = mux.NewRouter().UseEncodedPath().SkipClean(true)
	}
	for _, r := range rows {
		k := key{r.Table, r.Path}
		if e, ok := seen[k]; ok {
			e.join(r)
			continue
		}
		e := &endpoint{Route: r}
		e.join(r)
		seen[k] = e
		rt.tables[r.Table].Path(r.Path).Handler(e)
	}
	for i := range rt.words {
		rt.words[i] = map[string]*endpoint{}
	}
	for k := range seen {
		if word := k.path[1:]; word != "" && plain(word) {
			rt.words[k.table][word] = rt.match(k.table, &http.Request{URL: &url.URL{Path: k.path}})
		}
	}
	rt.doc = rt.match(DocTable, &http.Request{URL: &url.URL{Path: "/x"}})
	return rt
}

// match asks the patterns of a table, in their order; nil: none matches.
func (rt *router) match(t Table, r *http.Request) *endpoint {
	var match mux.RouteMatch
	if !rt.tables[t].Match(r, &match) || match.MatchErr != nil || match.Route == nil {
		return nil
	}
	e, _ := match.Handler.(*endpoint)
	return e
}

// short is match for a path of one segment, as far as it is known without
// asking. No pattern is a fixed segment without "_" in front.
func (rt *router) short(t Table, segment string) *endpoint {
	if t == DocTable && segment[0] != '_' {
		return rt.doc
	}
	return rt.words[t][segment]
}

// find looks a path up in a table: the segments from first on.
func (rt *router) find(to *Target, t Table, first int) *endpoint {
	s := to.scratch
	if len(to.Path) == first+1 {
		if e := rt.short(t, s.escaped[first]); e != nil {
			return e
		}
	}
	s.url = url.URL{}
	if first >= len(to.Path) {
		s.url.Path = "/"
	} else {
		s.url.Path = "/" + strings.Join(to.Path[first:], "/")
		s.url.RawPath = "/" + strings.Join(s.escaped[first:], "/")
	}
	s.req.URL = &s.url
	s.req.Method = to.Method
	return rt.match(t, &s.req)
}

// route finds the endpoint of a request, and names its database and document. The endpoint is nil
// when there is none on the server or below a database; the caller decides what that means.
func (rt *router) route(to *Target) *endpoint {
	p := to.Path
	if len(p) == 0 {
		return rt.find(to, ServerTable, 0)
	}
	if p[0][0] == '_' || p[0] == "favicon.ico" {
		if e := rt.find(to, ServerTable, 0); e != nil {
			return e
		}
	}
	to.DBName = p[0]
	if len(p) == 1 {
		return rt.find(to, DBTable, 1)
	}
	if p[1][0] == '_' && p[1] != "_design" && p[1] != "_local" {
		if e := rt.find(to, DBTable, 1); e != nil {
			return e
		}
	}
	to.splitDocument()
	return rt.find(to, DocTable, 1)
}

// plain reports whether a segment is the same decoded and escaped.
func plain(s string) bool {
	for i := range len(s) {
		b := s[i]
		if b < '-' || b > 'z' || (b > '9' && b < 'A') || (b > 'Z' && b < '_') || b == '/' || b == '`' {
			return false
		}
	}
	return true
}

// Unescape undoes percent-encoding; a malformed escape is an error.
func Unescape(s string, plusIsSpace bool) (string, error) {
	if strings.IndexByte(s, '%') < 0 && (!plusIsSpace || strings.IndexByte(s, '+') < 0) {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%':
			if i+2 >= len(s) {
				return "", errInvalidEncoding()
			}
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi < 0 || lo < 0 {
				return "", errInvalidEncoding()
			}
			out = append(out, byte(hi<<4|lo))
			i += 2
		case s[i] == '+' && plusIsSpace:
			out = append(out, ' ')
		default:
			out = append(out, s[i])
		}
	}
	return string(out), nil
}

func errInvalidEncoding() error { return fault.New(fault.BadRequest, "invalid_url_encoding") }

// unhex returns the value of a hexadecimal digit, -1 for another byte.
func unhex(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

// NotHere answers for paths below an endpoint that has nothing below it, and for
// those that are no endpoint.
func NotHere(*Call) error { return fault.New(fault.NotFound, "missing") }

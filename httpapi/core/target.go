package core

import (
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"
)

// Target is the target of a request: its method, its path and its query string.
type Target struct {
	Method string   // after X-HTTP-Method-Override; HEAD reads GET here, see Head
	Head   bool     // the client sent HEAD: same headers, no body
	Path   []string // decoded segments, without empty ones
	Query  Params   // decoded query string, in order

	DBName string   // first segment below the database tables, else empty
	DocID  string   // below the document table: the document, "_design/x" and "_local/x" in one piece
	Rest   []string // below the document table: the segments after the document (an attachment's name)

	scratch *scratch // what is reused with the call
}

// scratch holds buffers for the way of a request through the router, reused with the call.
type scratch struct {
	req      http.Request
	url      url.URL
	escaped  []string     // segments as they are matched
	segments []string     // backing of Path
	params   []Param      // backing of Query
	line     [8]zap.Field // of the access log
}

// overrideMethod honours X-HTTP-Method-Override on a POST.
func (t *Target) overrideMethod(h http.Header) {
	switch m := h.Get("X-HTTP-Method-Override"); m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete,
		http.MethodTrace, http.MethodConnect, "COPY":
		t.Method = m
	}
}

// splitDocument sets DocID and Rest from the segments after the database.
func (t *Target) splitDocument() {
	p := t.Path[1:]
	if len(p) > 1 && (p[0] == "_design" || p[0] == "_local") {
		t.DocID, t.Rest = p[0]+"/"+p[1], p[2:]
		return
	}
	t.DocID, t.Rest = p[0], p[1:]
}

// parsePath splits the path of the request line at its slashes, drops empty
// segments, and decodes each one. plusIsSpace is [chttpd] decode_plus_to_space.
func (t *Target) parsePath(raw string, plusIsSpace bool) error {
	s := t.scratch
	s.segments, s.escaped = s.segments[:0], s.escaped[:0]
	for len(raw) > 0 {
		segment := raw
		if i := strings.IndexByte(raw, '/'); i >= 0 {
			segment, raw = raw[:i], raw[i+1:]
		} else {
			raw = ""
		}
		if segment == "" {
			continue
		}
		if plain(segment) {
			s.segments, s.escaped = append(s.segments, segment), append(s.escaped, segment)
			continue
		}
		decoded, err := Unescape(segment, plusIsSpace)
		if err != nil {
			return err
		}
		s.segments, s.escaped = append(s.segments, decoded), append(s.escaped, url.PathEscape(decoded))
	}
	t.Path = s.segments
	return nil
}

// parseQuery splits a query string into decoded pairs, in order; a semicolon
// separates them as well. A malformed escape refuses the request, a name without
// "=" has the empty value.
func (t *Target) parseQuery(raw string) error {
	if raw == "" {
		return nil
	}
	list := t.scratch.params[:0]
	for raw != "" {
		pair := raw
		if end := strings.IndexAny(raw, "&;"); end >= 0 {
			pair, raw = raw[:end], raw[end+1:]
		} else {
			raw = ""
		}
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := Unescape(name, true)
		if err != nil {
			return err
		}
		value, err = Unescape(value, true)
		if err != nil {
			return err
		}
		list = append(list, Param{name, value})
	}
	t.scratch.params, t.Query = list, list
	return nil
}

// QueryValue returns the value of a query parameter.
func (t *Target) QueryValue(name string) (value string, ok bool) { return t.Query.Value(name) }

// WriteQuorum reads w for writes that have no other options, 0 when it is not
// given.
func (t *Target) WriteQuorum() (int, error) {
	text, ok := t.QueryValue("w")
	if !ok {
		return 0, nil
	}
	return ParseQuorum(Param{"w", text})
}

// asksState reports whether the request is for /_up or the figures of the node.
func (t *Target) asksState() bool {
	switch p := t.Path; {
	case len(p) == 1:
		return p[0] == "_up"
	case len(p) >= 3 && p[0] == "_node":
		return p[2] == "_prometheus" || p[2] == "_stats" || p[2] == "_system"
	}
	return false
}

// aboutProcess reports whether the request only looks at this process, on the node self:
// nothing that it shows comes from the cluster. _membership and _config do, so that
// they are not among them.
func (t *Target) aboutProcess(self string) bool {
	if t.Method != http.MethodGet {
		return false
	}
	p := t.Path
	switch {
	case len(p) == 0:
		return true
	case len(p) == 1:
		return p[0] == "_up" || p[0] == "favicon.ico"
	case p[0] != "_node" || p[1] != "_local" && p[1] != self:
		return false
	case len(p) == 2:
		return true
	}
	switch p[2] {
	case "_system", "_stats", "_prometheus", "_versions", "_active_tasks", "_smoosh":
		return true
	}
	return false
}

// createsDatabase reports whether the request is PUT /{db}: the only one below a
// database that does not need one.
func (t *Target) createsDatabase() bool { return len(t.Path) == 1 && t.Method == http.MethodPut }

package core

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"divan/cluster/config"
)

// This file is section [vhosts]: a request for a host, perhaps below a path, is answered as the
// same request below another path (couch_httpd_vhost of CouchDB).
//
//	example.com = /db                       the database of one host
//	*.example.com = /*                      what stands for the star, one segment for each name
//	:ddoc.:db.example.com/app = /:db/_design/:ddoc/_rewrite

// vhostPathHeader tells functions what the client asked for below a virtual host, with the query. What a client
// sends under this name is dropped.
const vhostPathHeader = "X-Couchdb-Vhost-Path"

// vhost is one line of the section.
type vhost struct {
	host   []string // names of the host, the last one first; "*" and ":name" stand for any
	port   int      // anyPort: whichever the client wrote, or none
	path   []string // segments that the path has to begin with
	target []string // segments; "*" and ":name" as in host
}

const anyPort = -1

// vhosts are the lines in the order in which they are tried.
type vhosts struct {
	lines  []vhost
	global []string // first segments of paths that are the same on each host
}

func newVHosts(cfg *config.Snapshot) vhosts {
	v := vhosts{global: []string{"_utils", "_uuids", "_session", "_users"}}
	if names, ok := cfg.Get("chttpd", "vhost_global_handlers"); ok {
		v.global = strings.FieldsFunc(names, func(c rune) bool { return c == ',' || c == ' ' })
	}
	for from, to := range cfg.Section("vhosts") {
		if to != "" && !strings.HasPrefix(from, "/") {
			v.lines = append(v.lines, parseVHost(from, to))
		}
	}
	slices.SortFunc(v.lines, func(a, b vhost) int { return -a.compare(&b) })
	return v
}

func parseVHost(from, to string) vhost {
	host, path := from, ""
	if i := strings.IndexByte(from, '/'); i >= 0 {
		host, path = from[:i], from[i:]
	}
	v := vhost{path: segments(path), target: segments(to)}
	v.host, v.port = splitHost(host)
	return v
}

// segments splits a path at its slashes and drops what is empty.
func segments(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
}

// splitHost returns the names of a host, the last one first, and its port. What does not read as a port is none.
func splitHost(host string) (names []string, port int) {
	port = anyPort
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		if n, err := strconv.Atoi(host[i+1:]); err == nil && n >= 0 {
			host, port = host[:i], n
		}
	}
	names = slices.DeleteFunc(strings.Split(host, "."), func(s string) bool { return s == "" })
	slices.Reverse(names)
	return names, port
}

// compare orders lines as Erlang orders their terms. CouchDB tries the greatest first: a name before a variable before
// a star, any port before one that is named, a long path before its beginning.
func (v *vhost) compare(o *vhost) int {
	rank := func(name string) int {
		switch {
		case name == "*":
			return 0
		case strings.HasPrefix(name, ":"):
			return 1
		}
		return 2
	}
	names := func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) }
	first, second := slices.Clone(v.host), slices.Clone(o.host)
	slices.Reverse(first)
	slices.Reverse(second)
	port := func(n int) int { // an atom is greater than a number
		if n == anyPort {
			return 1 << 20
		}
		return n
	}
	return cmp.Or(slices.CompareFunc(first, second, names), cmp.Compare(port(v.port), port(o.port)), slices.Compare(v.path, o.path),
		slices.CompareFunc(v.target, o.target, names))
}

// match returns the path that stands for one below a host, and how much of that is below the virtual host.
func (v *vhosts) match(host, path string) (target, below string, ok bool) {
	names, port := splitHost(host)
	parts := segments(path)
	for i := range v.lines {
		line := &v.lines[i]
		if line.port != anyPort && line.port != port {
			continue
		}
		bound, rest, fits := line.bind(names)
		if !fits || len(parts) < len(line.path) || !slices.Equal(parts[:len(line.path)], line.path) {
			continue
		}
		if slices.Contains(v.global, firstSegment(path)) {
			return "", "", false
		}
		below = "/" + strings.Join(parts[len(line.path):], "/")
		target = "/" + strings.Join(line.fill(bound, rest), "/")
		if target == "/" {
			return below, below, true
		}
		return target + below, below, true
	}
	return "", "", false
}

// firstSegment returns the first segment of a path, "/" for the root.
func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return cmp.Or(first, "/")
}

// bind compares the names of a host with those of the line. rest are the names that a star
// at the front matches.
func (v *vhost) bind(names []string) (bound map[string]string, rest []string, ok bool) {
	for i, want := range v.host {
		switch {
		case want == "*" && i == len(v.host)-1:
			return bound, names[min(i, len(names)):], i < len(names)
		case i >= len(names):
			return nil, nil, false
		case want == "*" || strings.HasPrefix(want, ":"):
			if bound == nil {
				bound = map[string]string{}
			}
			bound[want] = names[i]
		case !strings.EqualFold(want, names[i]):
			return nil, nil, false
		}
	}
	return bound, nil, len(names) == len(v.host)
}

// fill puts what was bound into the target, each name as one segment.
func (v *vhost) fill(bound map[string]string, rest []string) []string {
	var out []string
	for _, part := range v.target {
		switch {
		case part == "*":
			for _, name := range rest {
				out = append(out, segmentOf(name))
			}
			return out
		case strings.HasPrefix(part, ":"):
			out = append(out, cmp.Or(segmentOf(bound[part]), "undefined"))
		default:
			out = append(out, part)
		}
	}
	return out
}

// segmentOf escapes a name of a host: it is a client's, and no syntax of a path.
func segmentOf(name string) string { return strings.ReplaceAll(url.PathEscape(name), "+", "%2B") }

// atVirtualHost makes the request that of the path that stands for its host, and returns that path. A request that
// stands in for another one (_rewrite) has had its turn.
func (c *Call) atVirtualHost(path, query string) string {
	r := c.Request
	if c.internal {
		return path
	}
	if from, ok := r.Context().Value(rewritesKey{}).(rewrites); ok {
		c.requested = from.requested
		return path
	}
	r.Header.Del(vhostPathHeader)
	if len(c.set.vhosts.lines) == 0 {
		return path
	}
	host := r.Host
	if forwarded := r.Header.Get(c.Config.Chttpd.Forwarded.Host); forwarded != "" {
		host = forwarded
	}
	target, below, ok := c.set.vhosts.match(host, path)
	if !ok {
		return path
	}
	if query != "" {
		query = "?" + query
	}
	c.requested = below + query
	r.Header.Set(vhostPathHeader, c.requested)
	r.RequestURI = target + query
	return target
}

// RequestedPath returns the path and the query that the client asked for, before a virtual host; of a request that
// stands in for another one (_rewrite) without one its own, as CouchDB has it.
func (c *Call) RequestedPath() string { return cmp.Or(c.requested, c.Request.RequestURI) }

package core

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"divan/cluster/config"
)

// Names of the CORS headers as they go over the wire.
const (
	corsOrigin      = "Access-Control-Allow-Origin"
	corsCredentials = "Access-Control-Allow-Credentials"
	corsMethods     = "Access-Control-Allow-Methods"
	corsHeaders     = "Access-Control-Allow-Headers"
	corsMaxAge      = "Access-Control-Max-Age"
	corsExpose      = "Access-Control-Expose-Headers"
)

// corsSettings are the rules of cross-origin requests, made ready: the rules
// for every host and those of hosts with a section of their own.
type corsSettings struct {
	common *corsRules
	hosts  map[string]*corsRules
}

// corsRules are the rules of one section (api.md section 19.5).
type corsRules struct {
	origins     map[string]bool // lower case
	all         bool            // any origin
	credentials bool
	methods     []string
	headers     []string // lower case
	exposed     []string // lower case
	maxAge      string   // seconds
}

func newCORSSettings(c config.CORS) *corsSettings {
	s := &corsSettings{common: newCORSRules(c.CORSRules), hosts: make(map[string]*corsRules, len(c.Hosts))}
	for host, rules := range c.Hosts {
		s.hosts[host] = newCORSRules(rules)
	}
	return s
}

func newCORSRules(c config.CORSRules) *corsRules {
	r := &corsRules{
		origins: make(map[string]bool, len(c.Origins)), credentials: c.Credentials, methods: c.Methods,
		headers: c.Headers, exposed: c.ExposedHeaders, maxAge: strconv.Itoa(int(c.MaxAge.Seconds())),
	}
	for _, origin := range c.Origins {
		r.origins[origin] = true
		r.all = r.all || origin == "*"
	}
	if r.methods == nil {
		r.methods = []string{"CONNECT", "COPY", "DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE"}
	}
	if r.headers == nil {
		r.headers = []string{
			"accept", "accept-language", "authorization", "content-length", "content-range", "content-type",
			"destination", "expires", "if-match", "last-modified", "origin", "pragma", "x-couch-full-commit",
			"x-couch-id", "x-couch-persist", "x-couchdb-www-authenticate", "x-http-method-override",
			"x-requested-with", "x-couchdb-vhost-path",
		}
	}
	if r.exposed == nil {
		r.exposed = []string{"accept-ranges", "etag", "server", "x-couch-request-id", "x-couch-update-newrev", "x-couchdb-body-time"}
	}
	return r
}

// rulesFor returns the rules for a request and the origin as it was sent, when
// cross-origin requests are on (s is not nil) and the origin may call, however it is spelled.
func (s *corsSettings) rulesFor(r *http.Request) (rules *corsRules, origin string, ok bool) {
	if s == nil {
		return nil, "", false
	}
	origin = r.Header.Get("Origin")
	if origin == "" {
		return nil, "", false
	}
	rules = s.common
	if len(s.hosts) > 0 {
		host, _, _ := strings.Cut(strings.ToLower(r.Host), ":")
		if own := s.hosts[host]; own != nil {
			rules = own
		}
	}
	return rules, origin, rules.all || rules.origins[strings.ToLower(origin)]
}

// preflight answers a CORS preflight request (OPTIONS) before the client is authenticated.
// The origin has to be spelled as browsers do, in lower case. A preflight that is not
// granted is handled as the OPTIONS request it is. It reports whether it has answered.
func (s *corsSettings) preflight(w *Response) bool {
	rules, origin, ok := s.rulesFor(w.request)
	method := w.request.Header.Get("Access-Control-Request-Method")
	if !ok || !slices.Contains(rules.methods, method) || !rules.all && !rules.origins[origin] {
		return false
	}
	asked := w.request.Header.Get("Access-Control-Request-Headers")
	for name := range strings.SplitSeq(asked, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name != "" && !slices.Contains(rules.headers, name) {
			return false
		}
	}
	h := w.Header()
	rules.allow(h, origin)
	h[corsMethods] = []string{strings.Join(rules.methods, ", ")}
	h[corsMaxAge] = []string{rules.maxAge}
	h[corsHeaders] = []string{asked}
	h["Content-Length"] = zeroTime
	w.preflight = true
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allow sets the headers that grant the answer to an origin.
func (r *corsRules) allow(h http.Header, origin string) {
	h[corsOrigin] = []string{origin}
	if r.credentials {
		h[corsCredentials] = []string{"true"}
	}
}

// expose adds the CORS headers of an answer to a plain request: which
// origin may read it, and which of its headers.
func (s *corsSettings) expose(w *Response, h http.Header) {
	if w.preflight {
		return
	}
	rules, origin, ok := s.rulesFor(w.request)
	if !ok {
		return
	}
	exposed := make([]string, 0, 12)
	exposed = append(exposed, "content-type")
	for _, name := range []string{"Cache-Control", "Content-Language", "Expires", "Last-Modified", "Pragma"} {
		if len(h[name]) != 0 {
			exposed = append(exposed, strings.ToLower(name))
		}
	}
	exposed = append(exposed, rules.exposed...)
	h[corsExpose] = []string{strings.Join(exposed, ", ")}
	rules.allow(h, origin)
}

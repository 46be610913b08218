package migrate

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"divan/storage/pause"
)

const (
	// requestTimeout is for requests that say what a server has; those that carry
	// documents have their own.
	requestTimeout = 2 * time.Minute
	// maxAnswer bounds what is read of such an answer, in bytes.
	maxAnswer = 256 << 20
)

// Server is one side: where it is, and who asks.
type Server struct {
	URL            string // of its root, without credentials and without a slash at its end
	User, Password string // of a server administrator; empty: nobody is named
}

// ParseServer reads a URL like http://admin:password@host:5984; the scheme may
// be missing.
func ParseServer(text string) (Server, error) {
	full := text
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
		// Not the text itself: it may hold a password.
		return Server{}, errors.New("the URL of a server must look like http://admin:password@host:5984")
	}
	var s Server
	if u.User != nil {
		s.User = u.User.Username()
		s.Password, _ = u.User.Password()
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	s.URL = strings.TrimRight(u.String(), "/")
	return s, nil
}

// Host names the server in messages.
func (s Server) Host() string {
	_, host, _ := strings.Cut(s.URL, "://")
	return host
}

// proxy is the URL of the proxy that the environment names for the server, empty
// for none.
func (s Server) proxy() (string, error) {
	to, err := url.Parse(s.URL)
	if err != nil {
		return "", err
	}
	u, err := http.ProxyFromEnvironment(&http.Request{URL: to})
	if u == nil || err != nil {
		return "", err
	}
	return u.String(), nil
}

// path is the URL of a database below the root, escaped. A plus sign is
// escaped too: old servers take it for a space.
func path(db string) string { return "/" + url.QueryEscape(db) }

// side is a server that is asked about itself.
type side struct {
	Server
	through   string // URL of the proxy for documents; the client finds it itself
	client    *http.Client
	userAgent string
	about     about
	modern    bool // what does not compile here, does not there: its JavaScript is as new as ours
	met       bool // it has answered: when it does not, it is worth another attempt
}

func newSide(s Server, insecure bool, userAgent string) *side {
	return &side{Server: s, userAgent: userAgent, client: &http.Client{Timeout: requestTimeout, CheckRedirect: sameServer, Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: 16,                                                                      // as many as databases at the same time, about
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure}, //nolint:gosec // the flag says so
	}}}
}

// sameServer refuses redirects that would take the password to somebody else.
func sameServer(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	if len(via) >= 10 || to.URL.Scheme != from.Scheme || to.URL.Host != from.Host {
		return fmt.Errorf("%s redirects to %s://%s, which is not followed", from.Redacted(), to.URL.Scheme, to.URL.Host)
	}
	return nil
}

// about is what a server says of itself.
type about struct {
	Version string `json:"version"`
	UUID    string `json:"uuid"`
	Vendor  struct{ Name, Version string }
}

// String names software and version.
func (a about) String() string {
	if a.Vendor.Name == "" || strings.Contains(a.Vendor.Name, "Apache") {
		return "CouchDB " + a.Version
	}
	return strings.TrimSpace(a.Vendor.Name + " " + a.Vendor.Version)
}

// refusal is an answer with a status of 400 or more.
type refusal struct {
	status int
	Code   string `json:"error"`
	Reason string `json:"reason"`
}

// Error implements error.
func (r *refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("status %d", r.status)
	}
	return fmt.Sprintf("status %d, %s: %s", r.status, r.Code, r.Reason)
}

// refusedWith returns the status of an answer that is an error, 0 for none.
func refusedWith(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.status
	}
	return 0
}

const (
	firstPause = 250 * time.Millisecond // before a second attempt
	lastPause  = 4 * time.Second
)

// call sends a request with a JSON body, nil for none, and returns the body of
// a good answer. A server that cannot be reached or has too much to do for now
// is asked again.
func (s *side) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	for wait := firstPause; ; wait *= 2 {
		text, err := s.once(ctx, method, path, body)
		if err == nil || !s.met || wait > lastPause || !passing(err) {
			return text, err
		}
		if err := pause.For(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// passing reports whether the same request may work a little later.
func passing(err error) bool {
	switch refusedWith(err) {
	case 0, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// once is one attempt of call.
func (s *side) once(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if s.User != "" {
		req.SetBasicAuth(s.User, s.Password)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", s.userAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	_ = res.Body.Close() // what matters has been read
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %s%s: %w", method, s.Host(), path, err)
	case res.StatusCode >= http.StatusBadRequest:
		r := &refusal{status: res.StatusCode}
		_ = json.Unmarshal(text, r) // the status says enough
		return nil, fmt.Errorf("%s %s%s: %w", method, s.Host(), path, r)
	case len(text) == maxAnswer:
		return nil, fmt.Errorf("%s %s%s: more than %d bytes", method, s.Host(), path, maxAnswer)
	}
	return text, nil
}

// get reads a good answer's JSON into v.
func (s *side) get(ctx context.Context, path string, v any) error {
	text, err := s.call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("GET %s%s: %w", s.Host(), path, err)
	}
	return nil
}

// hello checks that the server answers, and that we are an administrator there.
func (s *side) hello(ctx context.Context) error {
	if err := s.get(ctx, "/", &s.about); err != nil && refusedWith(err) != http.StatusUnauthorized {
		return err
	}
	var session struct {
		UserCtx struct {
			Name  string
			Roles []string
		} `json:"userCtx"`
	}
	err := s.get(ctx, "/_session", &session)
	switch {
	case refusedWith(err) == http.StatusUnauthorized:
		return fmt.Errorf("%s does not take the name and the password", s.Host())
	case err != nil:
		return err
	case slices.Contains(session.UserCtx.Roles, "_admin"):
		s.met = true
		s.modern = s.hasModernJavaScript(ctx)
		return nil
	case s.User == "":
		return fmt.Errorf("%s wants the name and the password of a server administrator", s.Host())
	}
	return fmt.Errorf("%s is no server administrator of %s", s.User, s.Host())
}

// oldSpiderMonkeys are the major versions below which SpiderMonkey has syntax that
// was never in a standard.
const oldSpiderMonkeys = 60

// hasModernJavaScript reports whether the server is known to compile what compiles
// here, and nothing else.
func (s *side) hasModernJavaScript(ctx context.Context) bool {
	if strings.Contains(s.about.Vendor.Name, "Divan") {
		return true
	}
	var versions struct {
		Engine struct{ Name, Version string } `json:"javascript_engine"`
	}
	if err := s.get(ctx, "/_node/_local/_versions", &versions); err != nil {
		return false // CouchDB before 2.3
	}
	major, _, _ := strings.Cut(versions.Engine.Version, ".")
	n, err := strconv.Atoi(major)
	return versions.Engine.Name == "quickjs" || versions.Engine.Name == "spidermonkey" && err == nil && n >= oldSpiderMonkeys
}

// pageSize is how many names are asked for at a time.
const pageSize = 1000

// databases lists the names of all databases. CouchDB 1.x knows no pages and
// answers with everything at once.
func (s *side) databases(ctx context.Context) ([]string, error) {
	var names []string
	query := fmt.Sprintf("?limit=%d", pageSize)
	for {
		var page []string
		if err := s.get(ctx, "/_all_dbs"+query, &page); err != nil {
			return nil, err
		}
		got := len(page)
		if len(names) > 0 {
			last := names[len(names)-1]
			if got == 0 || page[0] != last {
				return names, nil // no pages here: the first one was everything
			}
			page = page[1:] // the last one of the page before
		}
		names = append(names, page...)
		if got != pageSize || len(page) == 0 {
			return names, nil
		}
		key, err := json.Marshal(names[len(names)-1])
		if err != nil {
			return nil, err
		}
		query = fmt.Sprintf("?limit=%d&startkey=%s", pageSize, url.QueryEscape(string(key)))
	}
}

// info is what a server says of a database.
type info struct {
	Documents uint64 `json:"doc_count"`
	Deleted   uint64 `json:"doc_del_count"`
	Props     struct{ Partitioned bool }
	Cluster   struct{ Q int } // not of CouchDB 1.x
	UpdateSeq json.RawMessage `json:"update_seq"`
}

// all is how many documents have a place in the changes.
func (i *info) all() uint64 { return i.Documents + i.Deleted }

// info describes a database; ok is false when there is none.
func (s *side) info(ctx context.Context, db string) (i info, ok bool, err error) {
	err = s.get(ctx, path(db), &i)
	if refusedWith(err) == http.StatusNotFound {
		return i, false, nil
	}
	return i, err == nil, err
}

// hasBuiltIn reports whether a database has the design document that the server puts
// into it by itself.
func (s *side) hasBuiltIn(ctx context.Context, db string) (bool, error) {
	id := builtIn(db)
	if id == "" {
		return false, nil
	}
	_, err := s.call(ctx, http.MethodGet, path(db)+"/"+id, nil)
	if refusedWith(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

package bench

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// server is one that is loaded, with the databases that a run makes there.
type server struct {
	url       string // may carry user and password
	client    *fasthttp.HostClient
	auth      string // value of the Authorization header, or empty
	prefix    string // of the databases
	q         int    // shards per database; 0 leaves it to the server
	databases int    // how many the creation workload makes
}

// newServer returns the server of a configuration; it was not asked yet.
func newServer(cfg Config) (*server, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("the server's URL: %w", err)
	}
	if u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("the server's URL must look like http://user:password@host:port, not %q", u.Redacted())
	}
	s := &server{
		url: cfg.URL, client: newHostClient(u.Host, cfg.Clients+16), q: cfg.Q, databases: cfg.Databases,
		prefix: fmt.Sprintf("bench_%x_", uint64(time.Now().UnixNano())&0xffffffffff),
	}
	if u.User != nil {
		password, _ := u.User.Password()
		s.auth = basic(u.User.Username(), password)
	}
	return s, nil
}

func newHostClient(address string, conns int) *fasthttp.HostClient {
	return &fasthttp.HostClient{
		Addr: address, MaxConns: conns, ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10,
		StreamResponseBody: true, MaxResponseBodySize: 1 << 20, // what is larger is not read at once
		NoDefaultUserAgentHeader: true, DisablePathNormalizing: true,
		MaxIdemponentCallAttempts: 1, // a request that fails is counted, not repeated
	}
}

func (s *server) newCall() *call {
	a := &call{client: s.client, req: fasthttp.AcquireRequest(), resp: fasthttp.AcquireResponse()}
	a.req.Header.SetHost(s.client.Addr)
	if s.auth != "" {
		a.req.Header.Set(fasthttp.HeaderAuthorization, s.auth)
	}
	return a
}

// hello checks that the server answers and lets us in, and tells its name.
func (s *server) hello() (string, error) {
	a := s.newCall()
	defer a.release()
	err := a.do(fasthttp.MethodGet, []byte("/_all_dbs?limit=1"), nil, fasthttp.StatusOK, fasthttp.StatusUnauthorized, fasthttp.StatusForbidden)
	if err != nil {
		return "", fmt.Errorf("the server does not answer as it should: %w", err)
	}
	if status := a.resp.StatusCode(); status != fasthttp.StatusOK {
		return "", fmt.Errorf("the server refuses us with status %d: give a server administrator in the URL", status)
	}
	return string(a.resp.Header.Server()), nil
}

// create makes the database of that name; one that is there already is fine.
func (s *server) create(name string) error {
	a := s.newCall()
	defer a.release()
	return a.do(fasthttp.MethodPut, s.createPath(name), nil, fasthttp.StatusCreated, fasthttp.StatusAccepted, fasthttp.StatusPreconditionFailed)
}

func (s *server) createPath(name string) []byte {
	path := "/" + s.prefix + name
	if s.q > 0 {
		path += "?q=" + strconv.Itoa(s.q)
	}
	return []byte(path)
}

// holds fails when a database does not have so many documents.
func (s *server) holds(db string, docs int) error {
	a := s.newCall()
	defer a.release()
	if err := a.do(fasthttp.MethodGet, []byte("/"+db+"/_all_docs?limit=0"), nil, fasthttp.StatusOK); err != nil {
		return err
	}
	_, text, _ := bytes.Cut(a.body.start, []byte(`"total_rows":`))
	text, _, _ = bytes.Cut(text, []byte(`,`))
	if n, err := strconv.Atoi(string(text)); err != nil || n < docs {
		return fmt.Errorf("the copy has %s of %d documents", text, docs)
	}
	return nil
}

// drop drops the databases of the run.
func (s *server) drop() {
	names := []string{"put", "one", "warm", "hot", "bulk", "fresh", "search", "att", "rep"}
	for i := range s.databases {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	a := s.newCall()
	defer a.release()
	for _, n := range names {
		// a workload that did not run made none, then the answer is 404
		_ = a.do(fasthttp.MethodDelete, []byte("/"+s.prefix+n), nil)
	}
}

// Package httpclient asks servers through their HTTP API, as the commands that move data
// and look after a cluster do.
package httpclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
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
	User, Password string // of a server administrator; empty: no credentials are sent
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

// Proxy is the URL of the proxy that the environment names for the server, empty
// for none.
func (s Server) Proxy() (string, error) {
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

// Client asks one server. It is safe for concurrent use.
type Client struct {
	Server
	Retry     bool // ask again when the server cannot be reached or has too much to do for now
	http      *http.Client
	userAgent string
}

// Options configures a Client.
type Options struct {
	Insecure  bool           // accept certificates that are not trusted
	CAs       *x509.CertPool // nil: those that the system trusts
	UserAgent string
	HTTP      *http.Client // nil: one of its own
}

// New returns a client.
func New(s Server, o Options) *Client {
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: requestTimeout, CheckRedirect: sameServer, Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			MaxIdleConnsPerHost: 16,                                                                                        // as many as databases at the same time, about
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.CAs, InsecureSkipVerify: o.Insecure}, //nolint:gosec // the flag says so
		}}
	}
	return &Client{Server: s, http: o.HTTP, userAgent: o.UserAgent}
}

// CloseIdleConnections closes the connections that no request uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// ReadCAs reads the certificates of authorities from a PEM file; nil without one.
func ReadCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // those of the system
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}

// sameServer refuses redirects that would send the password to another server.
func sameServer(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	if len(via) >= 10 || to.URL.Scheme != from.Scheme || to.URL.Host != from.Host {
		return fmt.Errorf("%s redirects to %s://%s, which is not followed", from.Redacted(), to.URL.Scheme, to.URL.Host)
	}
	return nil
}

// Refusal is an answer with a status of 400 or more.
type Refusal struct {
	HTTPStatus int    `json:"-"`
	Code       string `json:"error"`
	Reason     string `json:"reason"`
	Body       []byte `json:"-"`
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("status %d", r.HTTPStatus)
	}
	return fmt.Sprintf("status %d, %s: %s", r.HTTPStatus, r.Code, r.Reason)
}

// Status returns the status of an answer that is an error, 0 for none.
func Status(err error) int {
	var r *Refusal
	if errors.As(err, &r) {
		return r.HTTPStatus
	}
	return 0
}

const (
	firstPause = 250 * time.Millisecond // before a second attempt
	lastPause  = 4 * time.Second
)

// Call sends a request with a JSON body, nil for none, and returns the body of
// a good answer. A server that cannot be reached or has too much to do for now
// is asked again.
func (c *Client) Call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	for wait := firstPause; ; wait *= 2 {
		text, err := c.once(ctx, method, path, body)
		if err == nil || !c.Retry || wait > lastPause || !passing(err) {
			return text, err
		}
		if err := pause.For(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// passing reports whether the same request may work a little later.
func passing(err error) bool {
	switch Status(err) {
	case 0, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// once is one attempt of Call.
func (c *Client) once(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.User != "" {
		req.SetBasicAuth(c.User, c.Password)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.userAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	_ = res.Body.Close() // what matters has been read
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %s%s: %w", method, c.Host(), path, err)
	case res.StatusCode >= http.StatusBadRequest:
		r := &Refusal{HTTPStatus: res.StatusCode, Body: text}
		_ = json.Unmarshal(text, r) // the status says enough
		return nil, fmt.Errorf("%s %s%s: %w", method, c.Host(), path, r)
	case len(text) == maxAnswer:
		return nil, fmt.Errorf("%s %s%s: more than %d bytes", method, c.Host(), path, maxAnswer)
	}
	return text, nil
}

// Get reads a good answer's JSON into v.
func (c *Client) Get(ctx context.Context, path string, v any) error {
	text, err := c.Call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("GET %s%s: %w", c.Host(), path, err)
	}
	return nil
}

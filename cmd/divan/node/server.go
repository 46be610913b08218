package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/httpapi/conns"
)

// Limits of a connection. Bodies and answers may take as long as they need;
// only a client that does not say what it wants is cut off.
const (
	headerTimeout  = 30 * time.Second
	idleTimeout    = 5 * time.Minute
	maxHeaderBytes = 1 << 20
	// stopTimeout is how long requests may still take once their listener is
	// given up or the node stops.
	stopTimeout = 5 * time.Second
	// maxScrapers is how many connections the port for metrics has of its own.
	maxScrapers = 16
)

// kind says what is served at a place.
type kind uint8

const (
	plain kind = iota
	secret
	metrics // only the figures for Prometheus, without authentication
)

func (k kind) String() string { return [...]string{"HTTP", "HTTPS", "metrics"}[k] }

// place is an address and how to serve it.
type place struct {
	kind    kind
	address string  // HOST:PORT
	secrecy secrecy // of kind secret
}

// places returns where the configuration wants the server.
func places(s *config.Snapshot) []place {
	at := func(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
	out := []place{{kind: plain, address: at(s.Chttpd.BindAddress, s.Chttpd.Port)}}
	if s.SSL.Enable {
		host := s.SSL.BindAddress
		if host == "" {
			host = s.Chttpd.BindAddress
		}
		out = append(out, place{kind: secret, address: at(host, s.SSL.Port), secrecy: secrecyOf(s.SSL)})
	}
	if p := s.Prometheus; p.AdditionalPort {
		out = append(out, place{kind: metrics, address: at(p.BindAddress, p.Port)})
	}
	return out
}

// port is the part of the address that two places cannot share on one machine.
func (p place) port() string {
	_, port, _ := net.SplitHostPort(p.address) // made by JoinHostPort
	return port
}

// network keeps 0.0.0.0 from meaning the addresses of IPv6 too; :: means both.
func (p place) network() string {
	host, _, _ := net.SplitHostPort(p.address) // made by JoinHostPort
	if ip := net.ParseIP(host); ip != nil && ip.To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

// loopback reports whether nothing but this machine can reach the address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// allowed refuses to be reachable from other machines without an administrator.
func allowed(h *config.Holder, p place) error {
	if h.HasAdmins() || p.kind == metrics || loopback(p.address) {
		return nil
	}
	return fmt.Errorf("%w, so the node listens on this machine only, not on %s; set one with --admin NAME:PASSWORD, "+
		"with COUCHDB_USER and COUCHDB_PASSWORD, or in section [admins] of an ini file", ErrNoAdmin, p.address)
}

// server serves at one place.
type server struct {
	place       place
	http        *http.Server
	credentials *credentials  // of kind secret
	secrets     *tls.Config   // of kind secret
	listener    net.Listener  // nil until listen
	ended       chan struct{} // closed when nothing is accepted any more
}

// prepare does what can fail without an address: it looks for an administrator
// and reads the certificate.
func (d *listeners) prepare(p place) (*server, error) {
	if err := allowed(d.config, p); err != nil {
		return nil, err
	}
	s := &server{place: p, ended: make(chan struct{}), http: &http.Server{
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: zap.NewStdLog(d.log.Named("http")),
	}}
	if p.kind != secret {
		return s, nil
	}
	s.credentials = &credentials{secrecy: p.secrecy}
	err := s.credentials.load()
	if err == nil {
		s.secrets, err = s.credentials.tlsConfig()
	}
	return s, err
}

// listen takes the address.
func (s *server) listen(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, s.place.network(), s.place.address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.place.address, err)
	}
	s.listener = l
	return nil
}

// tryPorts takes the addresses of a node that is new, and gives them back: one that
// cannot have them is refused before its data directory is made. Later the
// addresses may have been changed through HTTP, which is not known yet here.
func (b *base) tryPorts(ctx context.Context) error {
	_, err := b.cfg.fileSystem().Stat(b.cfg.DataDir)
	if b.cfg.Listener != nil || b.cfg.FS != nil || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, p := range places(b.config.Load()) {
		if err := allowed(b.config, p); err != nil {
			return err
		}
		s := &server{place: p}
		if err := s.listen(ctx); err != nil {
			return err
		}
		_ = s.listener.Close() // no client has connected
	}
	return nil
}

// serve begins to answer on the listener.
func (d *listeners) serve(s *server) {
	l := s.listener
	if s.secrets != nil {
		l = tls.NewListener(l, s.secrets)
	}
	if s.place.kind == metrics {
		s.http.Handler = d.api.MetricsHandler()
		l = conns.Listen(l, conns.Options{Most: maxScrapers})
	} else {
		l = d.api.Attach(s.http, l)
	}
	d.serving.Go(func() {
		defer close(s.ended)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.fail(fmt.Errorf("serve on %s: %w", s.place.address, err))
		}
	})
	d.log.Info("listening", zap.Stringer("for", s.place.kind), zap.Stringer("address", s.listener.Addr()))
}

// maxStacks bounds the text of stacks, in bytes.
const maxStacks = 256 << 10

// stacks returns what every goroutine is doing: a request that does not end is
// an error of this program, and nothing else tells which.
func stacks() string {
	text := make([]byte, maxStacks)
	return string(text[:runtime.Stack(text, true)])
}

// drain takes no more connections, lets requests finish, and cuts off those
// that take longer than the patience of the listeners.
func (d *listeners) drain(ctx context.Context, s *server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.patience)
	defer cancel()
	if err := s.http.Shutdown(ctx); err == nil {
		return
	}
	d.log.Warn("requests that did not end in time are cut off", zap.String("address", s.place.address), zap.Duration("after", d.patience),
		zap.String("goroutines", stacks()))
	if err := s.http.Close(); err != nil {
		d.log.Warn("close connections", zap.Error(err))
	}
}

package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/httpapi"
)

// Limits of a connection. Bodies and answers may take as long as they need;
// only a client that does not say what it wants is cut off.
const (
	headerTimeout  = 30 * time.Second
	idleTimeout    = 5 * time.Minute
	maxHeaderBytes = 1 << 20
	// stopTimeout is how long requests may still take once the node stops.
	stopTimeout = 30 * time.Second
)

// door serves HTTP on one address, or on two with TLS, and moves when the
// configuration names others.
type door struct {
	log    *zap.Logger
	api    *httpapi.API
	config *config.Holder
	fixed  net.Listener // from Config.Listener, or nil

	mu struct {
		sync.Mutex
		addr net.Addr
	}
	serving sync.WaitGroup
	failed  chan error
}

func newDoor(api *httpapi.API, h *config.Holder, fixed net.Listener, log *zap.Logger) *door {
	return &door{log: log, api: api, config: h, fixed: fixed, failed: make(chan error, 1)}
}

// place is an address and how to serve it.
type place struct {
	network  string
	address  string
	certFile string // with keyFile: TLS
	keyFile  string
	metrics  bool // only the figures for Prometheus, without authentication
}

// places returns where the configuration wants the server.
func places(s *config.Snapshot) []place {
	at := func(port int) string { return net.JoinHostPort(s.Chttpd.BindAddress, strconv.Itoa(port)) }
	out := []place{{network: "tcp", address: at(s.Chttpd.Port)}}
	if s.SSL.Enable {
		out = append(out, place{network: "tcp", address: at(s.SSL.Port), certFile: s.SSL.CertFile, keyFile: s.SSL.KeyFile})
	}
	if p := s.Prometheus; p.AdditionalPort {
		out = append(out, place{network: "tcp", address: net.JoinHostPort(p.BindAddress, strconv.Itoa(p.Port)), metrics: true})
	}
	return out
}

// loopback reports whether nothing but this machine can reach the address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// allowed refuses to be reachable from other machines without an administrator.
func allowed(s *config.Snapshot, p place) error {
	if len(s.Admins) > 0 || loopback(p.address) || p.metrics {
		return nil
	}
	return fmt.Errorf("%w, so the node listens on this machine only, not on %s; set one with --admin NAME:PASSWORD, "+
		"with COUCHDB_USER and COUCHDB_PASSWORD, or in section [admins] of an ini file", ErrNoAdmin, p.address)
}

// server is one listener at work.
type server struct {
	place    place
	http     *http.Server
	listener net.Listener
}

// open listens at the place and serves there.
func (d *door) open(p place) (*server, error) {
	if err := allowed(d.config.Load(), p); err != nil {
		return nil, err
	}
	l, handler := d.fixed, d.api.Handler()
	if p.metrics {
		l, handler = nil, d.api.MetricsHandler()
	}
	if l == nil {
		var err error
		if l, err = net.Listen(p.network, p.address); err != nil {
			return nil, fmt.Errorf("listen on %s: %w", p.address, err)
		}
	}
	s := &server{place: p, listener: l, http: &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: zap.NewStdLog(d.log.Named("http")),
	}}
	serve := func() error { return s.http.Serve(l) }
	if p.certFile != "" {
		s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		serve = func() error { return s.http.ServeTLS(l, p.certFile, p.keyFile) }
	}
	d.serving.Go(func() {
		if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			select {
			case d.failed <- fmt.Errorf("serve on %s: %w", p.address, err):
			default: // one failure is enough to stop the node
			}
		}
	})
	if p.certFile == "" && !p.metrics {
		d.mu.Lock()
		d.mu.addr = l.Addr()
		d.mu.Unlock()
	}
	d.log.Info("listening", zap.String("address", l.Addr().String()), zap.Bool("tls", p.certFile != ""))
	return s, nil
}

// Addr returns the address of the plain listener, nil before Run has opened it.
func (d *door) Addr() net.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.addr
}

// run serves until ctx ends, then lets the requests finish that are under way.
// opened is called once every address is served.
func (d *door) run(ctx context.Context, opened func(), stopping func()) error {
	moved := make(chan struct{}, 1)
	cancel := d.config.Subscribe(func(_, _ *config.Snapshot) {
		select {
		case moved <- struct{}{}:
		default: // a look is due already
		}
	})
	defer cancel()
	var servers []*server
	var err error
	if servers, err = d.moveTo(ctx, servers, places(d.config.Load())); err == nil {
		opened()
		err = d.follow(ctx, moved, &servers)
	}
	stopping()
	stopErr := d.close(context.WithoutCancel(ctx), servers)
	d.serving.Wait()
	return errors.Join(err, stopErr)
}

// follow moves the listeners when the configuration says so, until ctx ends.
func (d *door) follow(ctx context.Context, moved <-chan struct{}, servers *[]*server) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-d.failed:
			return err
		case <-moved:
			if d.fixed != nil {
				continue
			}
			next, err := d.moveTo(ctx, *servers, places(d.config.Load()))
			if err != nil {
				d.log.Error("cannot listen where the configuration says; staying where we are", zap.Error(err))
				continue
			}
			*servers = next
		}
	}
}

// moveTo opens what is missing and closes what is not wanted any more. When
// one place cannot be opened, nothing changes.
func (d *door) moveTo(ctx context.Context, have []*server, want []place) ([]*server, error) {
	var next, fresh []*server
	for _, p := range want {
		s := find(have, p)
		if s == nil {
			var err error
			if s, err = d.open(p); err != nil {
				return have, errors.Join(err, d.close(context.WithoutCancel(ctx), fresh))
			}
			fresh = append(fresh, s)
		}
		next = append(next, s)
	}
	var old []*server
	for _, s := range have {
		if find(next, s.place) == nil {
			old = append(old, s)
		}
	}
	for _, s := range old { // the requests there finish by themselves
		d.serving.Go(func() {
			if err := d.close(context.WithoutCancel(ctx), []*server{s}); err != nil {
				d.log.Warn("requests on an address that was given up did not finish in time", zap.Error(err))
			}
		})
	}
	return next, nil
}

func find(servers []*server, p place) *server {
	for _, s := range servers {
		if s.place == p {
			return s
		}
	}
	return nil
}

// close lets the requests of the servers finish, and cuts off those that take
// longer than stopTimeout.
func (d *door) close(ctx context.Context, servers []*server) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var errs []error
	for _, s := range servers {
		if err := s.http.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop serving on %s: %w", s.place.address, err), s.http.Close())
		}
	}
	return errors.Join(errs...)
}

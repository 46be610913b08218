package node

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/httpapi"
)

// listeners serves HTTP where the configuration says, and moves when it changes.
type listeners struct {
	log    *zap.Logger
	api    *httpapi.API
	config *config.Holder
	// base is the configuration without what was set through HTTP: where to
	// listen when that leads nowhere, so that it can be mended.
	base     *config.Snapshot
	fixed    net.Listener  // from Config.Listener, or nil
	patience time.Duration // with requests under way when a listener goes

	mu struct {
		sync.Mutex
		addr net.Addr
	}
	serving sync.WaitGroup
	failed  chan error
	moved   chan struct{} // a look at the configuration and the certificates is due
}

func newListeners(api *httpapi.API, h *config.Holder, fixed net.Listener, log *zap.Logger) *listeners {
	return &listeners{
		log: log, api: api, config: h, base: h.Load(), fixed: fixed, patience: stopTimeout, failed: make(chan error, 1),
		moved: make(chan struct{}, 1),
	}
}

// Addr returns the address of the plain listener, nil before Run has opened it.
func (d *listeners) Addr() net.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.addr
}

// fail makes run end with an error; the first one counts.
func (d *listeners) fail(err error) {
	select {
	case d.failed <- err:
	default:
	}
}

// run serves until ctx ends, then lets the requests finish that are under way.
// opened is called once every address is served, stopping before the first
// connection is closed.
func (d *listeners) run(ctx context.Context, opened func(), stopping func()) error {
	cancel := d.config.Subscribe(func(_, _ *config.Snapshot) { d.look() })
	defer cancel()
	servers, err := d.open(ctx)
	if err == nil {
		opened()
		servers, err = d.follow(ctx, servers)
	}
	stopping()
	for _, s := range servers {
		d.serving.Go(func() { d.drain(ctx, s) })
	}
	d.serving.Wait()
	return err
}

// look has the configuration and the certificates read again.
func (d *listeners) look() {
	select {
	case d.moved <- struct{}{}:
	default: // a look is due already
	}
}

// close gives back a listener that was never served on.
func (d *listeners) close() error {
	if d.fixed != nil && d.Addr() == nil {
		return d.fixed.Close()
	}
	return nil
}

// open starts serving. When settings that were made through HTTP make that
// impossible, it does without them: they could not be changed otherwise.
func (d *listeners) open(ctx context.Context) ([]*server, error) {
	if d.fixed != nil {
		s, err := d.prepare(place{kind: plain, address: d.fixed.Addr().String()})
		if err != nil {
			return nil, err
		}
		s.listener = d.fixed
		d.admit([]*server{s})
		return []*server{s}, nil
	}
	want, base := places(d.config.Load()), places(d.base)
	servers, err := d.moveTo(ctx, nil, want)
	if err == nil || slices.Equal(want, base) || ctx.Err() != nil {
		return servers, err
	}
	d.log.Error("cannot listen where settings made through HTTP say; listening where files, environment and flags say", zap.Error(err))
	return d.moveTo(ctx, nil, base)
}

// follow moves the listeners when the configuration says so, until ctx ends.
// It returns those that are served then.
func (d *listeners) follow(ctx context.Context, servers []*server) ([]*server, error) {
	for {
		select {
		case <-ctx.Done():
			return servers, nil
		case err := <-d.failed:
			return servers, err
		case <-d.moved:
		}
		if d.fixed != nil {
			continue
		}
		d.renew(servers)
		var err error
		if servers, err = d.moveTo(ctx, servers, places(d.config.Load())); err != nil && ctx.Err() == nil {
			d.log.Error("cannot listen where the configuration says; staying", zap.Error(err))
		}
	}
}

// renew reads the certificates again: they may have been replaced.
func (d *listeners) renew(servers []*server) {
	for _, s := range servers {
		if s.credentials == nil {
			continue
		}
		if err := s.credentials.load(); err != nil {
			d.log.Error("the certificate from before stays in use", zap.Error(err))
		}
	}
}

// moveTo opens what is missing and gives up what is not wanted any more. When
// one place cannot be opened the servers stay, at the same places as before.
func (d *listeners) moveTo(ctx context.Context, have []*server, want []place) ([]*server, error) {
	m := move{listeners: d, before: slices.Clone(have)}
	for _, p := range want {
		if i := slices.IndexFunc(m.before, func(s *server) bool { return s.place == p }); i >= 0 {
			m.kept = append(m.kept, m.before[i])
			m.before = slices.Delete(m.before, i, i+1)
			continue
		}
		s, err := d.prepare(p)
		if err != nil {
			return have, err
		}
		m.fresh = append(m.fresh, s)
	}
	for _, s := range m.fresh {
		if err := m.take(ctx, s); err != nil {
			return m.undo(ctx), err
		}
	}
	d.admit(m.fresh)
	for _, s := range m.before {
		d.retire(ctx, s)
	}
	return append(m.kept, m.fresh...), nil
}

// admit serves on listeners that are open.
func (d *listeners) admit(servers []*server) {
	for _, s := range servers {
		d.serve(s)
		if s.place.kind == plain {
			d.mu.Lock()
			d.mu.addr = s.listener.Addr()
			d.mu.Unlock()
		}
	}
}

// retire gives an address up. It returns when the address is free; the
// requests finish by themselves.
func (d *listeners) retire(ctx context.Context, s *server) {
	d.serving.Go(func() { d.drain(ctx, s) })
	<-s.ended
}

// move is one change of places.
type move struct {
	listeners *listeners
	kept      []*server
	fresh     []*server // to be served
	before    []*server // to be given up when everything else is open
	early     []place   // given up already, because a fresh one needs the port
}

// take opens the address of a fresh server. An address with the same port may
// have to go first: all addresses of the machine include each single one.
func (m *move) take(ctx context.Context, s *server) error {
	err := s.listen(ctx)
	i := slices.IndexFunc(m.before, func(o *server) bool { return o.place.port() == s.place.port() })
	if err == nil || i < 0 {
		return err
	}
	m.early = append(m.early, m.before[i].place)
	m.listeners.retire(ctx, m.before[i])
	m.before = slices.Delete(m.before, i, i+1)
	return s.listen(ctx)
}

// undo returns to the places from before.
func (m *move) undo(ctx context.Context) []*server {
	for _, s := range m.fresh {
		if s.listener != nil {
			_ = s.listener.Close() // no client has connected
		}
	}
	servers := append(m.kept, m.before...)
	var again []*server
	for _, p := range m.early {
		s, err := m.listeners.prepare(p)
		if err == nil {
			err = s.listen(ctx)
		}
		if err != nil {
			m.listeners.fail(fmt.Errorf("return to the address from before: %w", err))
			continue
		}
		again = append(again, s)
	}
	m.listeners.admit(again)
	return append(servers, again...)
}

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi"
	"divan/httpapi/auth"
	"divan/shard"
	"divan/storage"
)

// Node is one node of a cluster, or a server that stands alone.
type Node struct {
	cfg    Config
	log    *zap.Logger
	config *config.Holder
	engine *storage.Engine
	local  *shard.Local
	meta   *meta.Meta
	coord  *cluster.Coordinator
	auth   *auth.Authenticator
	api    *httpapi.API
	door   *door

	ready   chan struct{}
	restart atomic.Bool
	halt    context.CancelFunc // ends Run, for a restart; set by Run
	haltMu  sync.Mutex
}

// New opens the data directory and builds every part; nothing runs yet. A node
// that was built must be run, or closed with Close.
func New(ctx context.Context, cfg Config) (*Node, error) {
	n := &Node{cfg: cfg, ready: make(chan struct{})}
	if err := n.configure(ctx); err != nil {
		return nil, err
	}
	var err error
	n.engine, err = storage.NewEngine(engineOptions(cfg, n.config.Load(), n.log))
	if err != nil {
		return nil, fmt.Errorf("open the data directory %s: %w", cfg.DataDir, err)
	}
	if err := n.build(); err != nil {
		return nil, errors.Join(err, n.engine.Close())
	}
	return n, nil
}

// configure reads the settings and opens the log.
func (n *Node) configure(ctx context.Context) error {
	flags, err := n.cfg.flags()
	if err != nil {
		return err
	}
	options := config.Options{
		Files: n.cfg.files(), Environ: n.cfg.Environ, Flags: flags, Logger: n.cfg.Logger,
		Hash: func(password string) (string, error) {
			s := n.config.Load().ChttpdAuth
			return auth.HashAdmin(ctx, password, s.PasswordScheme, s.PBKDF2PRF, s.Iterations)
		},
		Verify: func(stored, password string) bool { return auth.VerifyAdmin(ctx, stored, password) },
	}
	if n.config, err = config.New(options); err == nil && alone(n.config.Load()) {
		put(flags, "couchdb", "single_node", "true")
		n.config, err = config.New(options)
	}
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if n.log = n.cfg.Logger; n.log == nil {
		n.log, err = newLogger(n.config)
	}
	return err
}

// alone reports whether nothing in the configuration speaks of other nodes: then
// the node is a server by itself and needs no set-up.
func alone(s *config.Snapshot) bool {
	_, said := s.Get("couchdb", "single_node")
	return !said && len(s.Cluster.SeedList) == 0
}

// build makes the floors above storage.
func (n *Node) build() error {
	n.local = shard.New(shard.Options{
		Engine: n.engine, Logger: n.log.Named("shard"), Validate: auth.Validator(n.config), CompileSelector: compileSelector,
	})
	name := n.config.Load().Cluster.NodeName
	if name == "" {
		name = defaultName
	}
	dir := n.cfg.DataDir + "/meta"
	if n.cfg.MetaInMemory {
		dir = ""
	}
	var err error
	n.meta, err = meta.New(meta.Options{
		Dir: dir, Self: meta.Node{Name: name}, Bootstrap: true, Config: n.config, Logger: n.log.Named("meta"),
	})
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	n.coord, err = cluster.New(cluster.Options{
		NodeName: name, Meta: n.meta, Config: n.config, Local: n.local, Logger: n.log.Named("cluster"),
	})
	if err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	n.auth = auth.New(auth.Options{Config: n.config, Users: userStore{n.coord}, Logger: n.log.Named("auth")})
	n.api, err = httpapi.New(httpapi.Deps{
		Coordinator: n.coord, Meta: n.meta, Config: n.config, Auth: n.auth, Logger: n.log.Named("http"),
		Version: n.cfg.Version, Restart: n.Restart, Figures: n.figures, Tasks: n.tasks,
	})
	if err != nil {
		return fmt.Errorf("HTTP interface: %w", err)
	}
	n.door = newDoor(n.api, n.config, n.cfg.Listener, n.log)
	return nil
}

// defaultName is the name of a node that was given none: it stands alone, so
// no other node has to find it.
const defaultName = "divan@127.0.0.1"

// Ready returns a channel that is closed once the node answers requests.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Addr returns the address of the HTTP interface; nil before Ready.
func (n *Node) Addr() net.Addr { return n.door.Addr() }

// Config returns the node's configuration.
func (n *Node) Config() *config.Holder { return n.config }

// Restart makes Run return ErrRestart after a graceful stop.
func (n *Node) Restart() {
	n.restart.Store(true)
	n.haltMu.Lock()
	defer n.haltMu.Unlock()
	if n.halt != nil {
		n.halt()
	}
}

// ErrRestart is what Run returns when the node was asked to start anew: the
// caller builds a new node with the same Config.
var ErrRestart = errors.New("the node was asked to restart")

// part is something that lives. It is stopped by the end of the context of
// run, and close is called after run has returned.
type part struct {
	name  string
	run   func(ctx context.Context) error
	close func() error
	// up is called, when it is there, before the next part starts.
	up func(ctx context.Context) error
}

// parts returns what lives, from the lowest floor up.
func (n *Node) parts() []part {
	nothing := func() error { return nil }
	return []part{
		{name: "storage", run: n.engine.Run, close: n.engine.Close},
		{name: "shard", run: n.local.Run, close: n.local.Close},
		{name: "metadata", run: n.meta.Run, close: n.meta.Close, up: n.settle},
		{name: "cluster", run: n.coord.Run, close: n.coord.Close, up: n.furnish},
		{name: "auth", run: n.auth.Run, close: nothing},
		{name: "http", run: func(ctx context.Context) error {
			return n.door.run(ctx, func() { close(n.ready) }, n.api.Stop)
		}, close: nothing},
	}
}

// Run serves until ctx ends or a part fails, then stops every part, the
// highest first, so that requests under way can finish.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.haltMu.Lock()
	n.halt = cancel
	n.haltMu.Unlock()

	type running struct {
		part
		stop context.CancelFunc
		done chan struct{}
		err  error
	}
	var up []*running
	var errs []error
	for _, p := range n.parts() {
		if ctx.Err() != nil {
			break
		}
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		r := &running{part: p, stop: stop, done: make(chan struct{})}
		up = append(up, r)
		go func() {
			defer close(r.done)
			if r.err = r.run(own); r.err != nil {
				cancel() // the house comes down in order
			}
		}()
		if p.up == nil {
			continue
		}
		if err := p.up(ctx); err != nil && ctx.Err() == nil {
			errs = append(errs, err)
			cancel()
		}
	}
	<-ctx.Done()
	for i := len(up) - 1; i >= 0; i-- {
		r := up[i]
		r.stop()
		<-r.done
		if r.err != nil && !errors.Is(r.err, context.Canceled) {
			errs = append(errs, fmt.Errorf("%s: %w", r.name, r.err))
		}
		if err := r.close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", r.name, err))
		}
	}
	if len(up) < len(n.parts()) {
		errs = append(errs, n.closeFrom(len(up)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if n.restart.Load() {
		return ErrRestart
	}
	return nil
}

// closeFrom closes the parts that were built but never ran.
func (n *Node) closeFrom(first int) error {
	var errs []error
	all := n.parts()
	for i := len(all) - 1; i >= first; i-- {
		errs = append(errs, all[i].close())
	}
	return errors.Join(errs...)
}

// Close releases a node that was built and never run.
func (n *Node) Close() error { return n.closeFrom(0) }

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/designdocs"
	"divan/cluster/indexes"
	"divan/cluster/meta"
	"divan/cluster/repair"
	clusterview "divan/cluster/view"
	"divan/httpapi"
	"divan/httpapi/auth"
	"divan/reshard"
	"divan/reshard/rebalance"
	"divan/shard"
	"divan/shard/index"
	"divan/shard/query"
	"divan/shard/script"
	"divan/shard/search"
	"divan/shard/search/indexer"
	"divan/shard/view"
	"divan/storage"
)

// Node is one node of a cluster, or a server that stands alone.
type Node struct {
	cfg    Config
	name   string
	logger *logger
	log    *zap.Logger
	config *config.Holder
	files  descriptors
	engine *storage.Engine
	local  *shard.Local
	functions
	replication
	meta  *meta.Meta
	coord *cluster.Coordinator
	upkeep
	auth      *auth.Authenticator
	api       *httpapi.API
	listeners *listeners
	links     *links          // nil: the node stands alone
	life      context.Context //nolint:containedctx // of Run, for figures, which are asked for without one

	ready chan struct{}
	ending
}

// ending is how a node ends.
type ending struct {
	restarting chan struct{}
	askRestart sync.Once
	left       sync.WaitGroup // what a stop by force leaves behind
}

// upkeep holds the parts that change the copies of this node without a client's request.
type upkeep struct {
	repair     *repair.Repair
	resharder  *reshard.Resharder
	rebalancer *rebalance.Rebalancer // nil: the node stands alone
}

// functions holds the parts that run the functions of design documents and keep their
// indexes.
type functions struct {
	scripts  *script.Engine
	designs  *designdocs.Cache
	indexes  *index.Manager     // of this node's copies
	views    *view.Views        // those of views
	searches *search.Indexes    // those of full text
	wanted   *indexes.Indexes   // what design documents want
	queries  *clusterview.Views // of databases
}

// New opens the data directory and builds every part; nothing runs yet. A node
// that was built must be run, or closed with Close.
func New(ctx context.Context, cfg Config) (*Node, error) {
	n := &Node{cfg: cfg, ready: make(chan struct{}), ending: ending{restarting: make(chan struct{})}}
	if err := n.configure(ctx); err != nil {
		return nil, err
	}
	if err := n.tryPorts(ctx); err != nil {
		return nil, errors.Join(err, n.logger.close())
	}
	var err error
	n.files = divide(descriptorLimit())
	o := engineOptions(cfg, n.config.Load(), n.files, n.log)
	o.Compression = n.compression
	n.engine, err = storage.NewEngine(o)
	if err != nil {
		return nil, errors.Join(err, n.logger.close())
	}
	n.files.say(n.log)
	if err := n.build(ctx); err != nil {
		return nil, errors.Join(err, n.links.close(), n.engine.Close(), n.logger.close())
	}
	return n, nil
}

// configure reads the settings and opens the log.
func (n *Node) configure(ctx context.Context) error {
	flags, err := n.cfg.flags()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(n.cfg.DataDir)
	if err != nil {
		return fmt.Errorf("find the data directory: %w", err)
	}
	options := config.Options{
		Files: n.cfg.files(), Environ: n.cfg.Environ, Flags: flags, DataDir: dir, Logger: n.cfg.Logger,
		Hash: func(password string) (string, error) {
			s := n.config.Load().ChttpdAuth
			return auth.HashAdmin(ctx, password, s.PasswordScheme, s.PBKDF2PRF, s.Iterations)
		},
		Verify: func(stored, password string) bool { return auth.VerifyAdmin(ctx, stored, password) },
	}
	first, err := config.New(options)
	if err != nil {
		return err
	}
	if err := n.decideAlone(first.Load(), flags); err != nil {
		return err
	}
	if n.logger, err = n.cfg.openLog(first.Load().Log); err != nil {
		return err
	}
	n.log = n.logger.Logger
	// Once more, now that there is a log that can say which values it ignores.
	options.Logger = n.log.Named("config")
	if n.config, err = config.New(options); err != nil {
		return errors.Join(err, n.logger.close())
	}
	n.logger.follow(n.config)
	return nil
}

// decideAlone settles whether the node stands alone, and its name. A node that
// belongs to a cluster goes on belonging to it.
func (n *Node) decideAlone(s *config.Snapshot, flags config.Values) error {
	if n.name = s.Cluster.NodeName; n.name == "" {
		n.name = defaultName
	}
	others, err := belongs(n.cfg.fileSystem(), n.cfg.DataDir, n.name)
	switch {
	case err != nil:
		return err
	case !alone(s):
	case len(others) == 0:
		put(flags, "couchdb", "single_node", "true")
	case s.CouchDB.SingleNode:
		return fmt.Errorf("[couchdb] single_node is true, and the node belongs to a cluster with %s", strings.Join(others, ", "))
	default:
		put(flags, "couchdb", "single_node", "false")
	}
	return nil
}

// alone reports whether nothing in the configuration speaks of other nodes: then
// the node is a server by itself and needs no set-up.
func alone(s *config.Snapshot) bool {
	if _, said := s.Get("couchdb", "single_node"); said {
		return s.CouchDB.SingleNode
	}
	for _, key := range []string{"seedlist", "secret", "port", "bind_address", "advertise"} {
		if value, _ := s.Get("cluster", key); value != "" {
			return false
		}
	}
	return true
}

// build makes the floors above storage.
func (n *Node) build(ctx context.Context) (err error) {
	s := n.config.Load()
	heavy := query.NewGate(cmp.Or(n.cfg.Processors, runtime.GOMAXPROCS(0)))
	n.local = shard.New(shard.Options{
		Engine: n.engine, Logger: n.log.Named("shard"), Validator: n.rules, CompileSelector: compileSelector(heavy), Heavy: heavy,
		CompileFunction: n.filter, OnUpdate: n.updated, OnDesignDoc: n.designChanged, OnDrop: n.copyDropped,
	})
	n.scripts = script.New(script.Options{
		Logger: n.log.Named("script"), Processors: n.cfg.Processors, Timeout: func() time.Duration { return n.config.Load().CouchDB.OSProcessTimeout },
		Eval: func() bool { return n.config.Load().Limits.AllowEval },
	})
	n.indexes = index.New(index.Options{Engine: n.engine, Shards: n.local, Logger: n.log.Named("indexes"), Memory: s.Limits.MaxIndexMemory})
	n.views = view.New(view.Options{Indexes: n.indexes, Shards: n.local, Scripts: n.scripts, Logger: n.log.Named("indexes"), Limit: n.reduceLimit})
	n.searches = search.New(n.indexes, indexer.New(n.scripts))
	if !s.CouchDB.SingleNode {
		if n.links, err = n.newLinks(ctx); err != nil {
			return err
		}
	}
	if n.meta, err = meta.New(n.metaOptions()); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	n.newDesigns()
	options := cluster.Options{
		NodeName: n.name, Meta: n.meta, Config: n.config, Local: n.local, Indexes: n.indexes, Views: n.views, Searches: n.searches, Logger: n.log.Named("cluster"),
		DesignWritten: n.designs.Written,
	}
	if err := n.newRepair(); err != nil {
		return err
	}
	if options.Repair = n.repair; n.links != nil {
		options.Peers = n.links.pool
	}
	if n.coord, err = cluster.New(options); err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	n.auth = auth.New(auth.Options{Config: n.config, Users: userStore{n.coord}, Logger: n.log.Named("auth"), Processors: n.cfg.Processors})
	n.queries, err = clusterview.New(clusterview.Options{Coordinator: n.coord, Config: n.config, Designs: n.designs, Indexes: n.views, Logger: n.log.Named("views")})
	if err != nil {
		return fmt.Errorf("views: %w", err)
	}
	n.wanted, err = indexes.New(indexes.Options{Coordinator: n.coord, Designs: n.designs, Manager: n.indexes, Logger: n.log.Named("indexes")})
	if err != nil {
		return fmt.Errorf("indexes: %w", err)
	}
	if err := n.newResharder(); err != nil {
		return err
	}
	deps := httpapi.Deps{
		Coordinator: n.coord, Views: n.queries, Indexes: n.wanted, Meta: n.meta, Config: n.config, Auth: n.auth, Logger: n.log.Named("http"),
		Designs: n.designs, Scripts: n.scripts, Heavy: n.local.Heavy(),
		Version: n.cfg.Version, Restart: n.Restart, Dial: n.dial, Figures: n.figures, Tasks: n.tasks, Reshard: n.resharder.Table(),
		Limits: httpapi.Limits{Connections: n.files.connections, BodyMemory: machineMemory(os.ReadFile) / bodyShare},
	}
	if n.links != nil {
		if err := n.newRebalancer(); err != nil {
			return err
		}
		deps.Cluster, deps.Rebalance = n.links, n.rebalancer
	}
	if n.api, err = httpapi.New(deps); err != nil { //nolint:contextcheck // each request carries its own
		return fmt.Errorf("HTTP interface: %w", err)
	}
	n.newReplication()
	n.listeners = newListeners(n.api, n.config, n.cfg.Listener, n.log)
	if n.links != nil {
		n.links.serve()
	}
	return nil
}

func (n *Node) metaOptions() meta.Options {
	o := meta.Options{
		Dir: metaDir(n.cfg.DataDir), Stores: n.cfg.Meta, Self: meta.Node{Name: n.name}, Bootstrap: true,
		Config: n.config, Logger: n.log.Named("meta"), DiskFull: n.engine.DiskFull, Found: n.bootstrap,
	}
	if n.cfg.MetaInMemory {
		o.Dir = ""
	}
	if o.Dir != "" && o.Stores == nil {
		o.CopyDir = copyDir(n.cfg.DataDir)
	}
	if n.links != nil {
		n.links.describe(&o)
	}
	return o
}

// defaultName is the name of a node that was given none: it stands alone, so
// no other node has to find it.
const defaultName = "divan@127.0.0.1"

// Ready returns a channel that is closed once the node answers requests.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Addr returns the address of the HTTP interface; nil before Ready.
func (n *Node) Addr() net.Addr { return n.listeners.Addr() }

// Config returns the node's configuration.
func (n *Node) Config() *config.Holder { return n.config }

// Reclaimable returns how many bytes of requests' bodies were given back since it
// was last asked.
func (n *Node) Reclaimable() int64 { return n.api.Memory.Reclaimable() }

// Addresses returns where the node listens, as the configuration says.
func (n *Node) Addresses() (out []string) {
	for _, p := range places(n.config.Load()) {
		out = append(out, p.kind.String()+" "+p.address)
	}
	return out
}

// Databases returns how many there are, the system's own included.
func (n *Node) Databases() int { return n.meta.Databases().Len() }

// Renew opens the file of the log anew, which may have been renamed, and reads the
// certificates again. Certificates for other nodes are read at each connection.
func (n *Node) Renew() {
	if err := n.logger.reopen(); err != nil {
		n.log.Error("the log stays where it is", zap.Error(err))
	}
	n.listeners.look()
	n.log.Info("the log is open anew, certificates are read again")
}

// Restart makes Run return ErrRestart after a graceful stop. It returns at
// once.
func (n *Node) Restart() { n.askRestart.Do(func() { close(n.restarting) }) }

// ErrRestart is returned by Run when the node was asked to start anew: the caller builds a
// new node with the same Config.
var ErrRestart = errors.New("the node was asked to restart")

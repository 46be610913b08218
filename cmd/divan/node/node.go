package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
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
	base   *base
	files  descriptors
	engine *storage.Engine
	local  *shard.Local
	hooks  *hooks // of local
	functions
	replication
	meta     *meta.Meta
	metadata *metadata // runs meta
	coord    *cluster.Coordinator
	upkeep
	auth      *auth.Authenticator
	api       *httpapi.API
	report    *report
	listeners *listeners
	links     *links // nil: the node stands alone
	stack     *stack

	ready      chan struct{}
	restarting chan struct{}
	askRestart sync.Once
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
	b := &base{cfg: cfg}
	if err := b.configure(ctx); err != nil {
		return nil, err
	}
	if err := b.tryPorts(ctx); err != nil {
		return nil, errors.Join(err, b.logger.close())
	}
	n := &Node{
		base: b, files: divide(descriptorLimit()), hooks: &hooks{}, report: &report{}, ready: make(chan struct{}), restarting: make(chan struct{}),
	}
	var err error
	o := engineOptions(cfg, n.base.config.Load(), n.files, n.base.log)
	o.Compression = n.base.compression
	n.engine, err = storage.NewEngine(o)
	if err != nil {
		return nil, errors.Join(err, n.base.logger.close())
	}
	n.files.say(n.base.log)
	if err := n.build(ctx); err != nil {
		return nil, errors.Join(err, n.links.close(), n.engine.Close(), n.base.logger.close())
	}
	return n, nil
}

// build makes the floors above storage.
func (n *Node) build(ctx context.Context) (err error) {
	s := n.base.config.Load()
	heavy := query.NewGate(cmp.Or(n.base.cfg.Processors, runtime.GOMAXPROCS(0)))
	n.local = shard.New(shard.Options{
		Engine: n.engine, Logger: n.base.log.Named("shard"), Validator: n.hooks.rules, CompileSelector: compileSelector(heavy), Heavy: heavy,
		CompileFunction: n.hooks.filter, OnUpdate: n.hooks.updated, OnDesignDoc: n.hooks.designChanged, OnDrop: n.hooks.copyDropped,
	})
	n.newIndexes()
	if !s.CouchDB.SingleNode {
		if n.links, err = newLinks(ctx, n.base, n.load); err != nil {
			return err
		}
	}
	if err := n.newMeta(); err != nil {
		return err
	}
	n.newDesigns()
	options := cluster.Options{
		NodeName: n.base.name, Meta: n.meta, Config: n.base.config, Local: n.local, Indexes: n.indexes, Views: n.views, Searches: n.searches, Logger: n.base.log.Named("cluster"),
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
	n.auth = auth.New(auth.Options{Config: n.base.config, Users: userStore{n.coord}, Logger: n.base.log.Named("auth"), Processors: n.base.cfg.Processors})
	n.queries, err = clusterview.New(clusterview.Options{Coordinator: n.coord, Config: n.base.config, Designs: n.designs, Indexes: n.views, Logger: n.base.log.Named("views")})
	if err != nil {
		return fmt.Errorf("views: %w", err)
	}
	n.wanted, err = indexes.New(indexes.Options{Coordinator: n.coord, Designs: n.designs, Manager: n.indexes, Logger: n.base.log.Named("indexes")})
	if err != nil {
		return fmt.Errorf("indexes: %w", err)
	}
	if err := n.newResharder(); err != nil {
		return err
	}
	deps := httpapi.Deps{
		Coordinator: n.coord, Views: n.queries, Indexes: n.wanted, Meta: n.meta, Config: n.base.config, Auth: n.auth, Logger: n.base.log.Named("http"),
		Designs: n.designs, Scripts: n.scripts, Heavy: n.local.Heavy(),
		Version: n.base.cfg.Version, Restart: n.Restart, Dial: n.base.dial, Figures: n.report.figures, Tasks: n.report.tasks, Reshard: n.resharder.Table(),
		Limits: httpapi.Limits{Connections: n.files.connections, BodyMemory: machineMemory(os.ReadFile) / bodyShare},
	}
	if n.links != nil {
		if err := n.newRebalancer(); err != nil {
			return err
		}
		deps.Cluster, deps.Rebalance = clusterView{n.links.invitations, n.links}, n.rebalancer
	}
	if n.api, err = httpapi.New(deps); err != nil { //nolint:contextcheck // each request carries its own
		return fmt.Errorf("HTTP interface: %w", err)
	}
	n.newReplication()
	n.listeners = newListeners(n.api, n.base.config, n.base.cfg.Listener, n.base.log)
	if n.links != nil {
		n.links.serve(n.copiesForOthers(), n.services())
	}
	n.bind()
	return nil
}

// newIndexes builds what runs the functions of design documents, and the indexes of the copies
// of this node.
func (n *Node) newIndexes() {
	s := n.base.config
	n.scripts = script.New(script.Options{
		Logger: n.base.log.Named("script"), Processors: n.base.cfg.Processors, Timeout: func() time.Duration { return s.Load().CouchDB.OSProcessTimeout },
		Eval: func() bool { return s.Load().Limits.AllowEval },
	})
	log := n.base.log.Named("indexes")
	n.indexes = index.New(index.Options{Engine: n.engine, Shards: n.local, Logger: log, Memory: s.Load().Limits.MaxIndexMemory})
	n.views = view.New(view.Options{Indexes: n.indexes, Shards: n.local, Scripts: n.scripts, Logger: log, Limit: n.base.reduceLimit})
	n.searches = search.New(n.indexes, indexer.New(n.scripts))
}

// newMeta opens the metadata.
func (n *Node) newMeta() (err error) {
	n.metadata = &metadata{base: n.base, engine: n.engine, links: n.links}
	if n.meta, err = n.metadata.open(); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	if n.links != nil {
		n.links.members.meta = n.meta
	}
	return nil
}

// bind gives the parts that were built first what was built after them.
func (n *Node) bind() {
	*n.hooks = hooks{designs: n.designs, indexes: n.indexes, wanted: n.wanted, coord: n.coord, repair: n.repair}
	*n.report = report{
		name: n.base.name, engine: n.engine, local: n.local, scripts: n.scripts, indexes: n.indexes, meta: n.meta,
		repair: n.repair, resharder: n.resharder, rebalancer: n.rebalancer, perUser: n.perUser, lines: n.base.logger.lines,
	}
	n.stack = &stack{parts: n.parts(), within: n.base.cfg.StopWithin, log: n.base.log}
}

// load returns how many requests are under way, and where HTTP is served; nil: nowhere yet.
func (n *Node) load() (requests int, addr net.Addr) { return n.api.Active(), n.Addr() }

// Ready returns a channel that is closed once the node answers requests.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Addr returns the address of the HTTP interface; nil before Ready.
func (n *Node) Addr() net.Addr { return n.listeners.Addr() }

// Config returns the node's configuration.
func (n *Node) Config() *config.Holder { return n.base.config }

// Reclaimable returns how many bytes of requests' bodies were given back since it
// was last asked.
func (n *Node) Reclaimable() int64 { return n.api.Memory.Reclaimable() }

// Addresses returns where the node listens, as the configuration says.
func (n *Node) Addresses() (out []string) {
	for _, p := range places(n.base.config.Load()) {
		out = append(out, p.kind.String()+" "+p.address)
	}
	return out
}

// Databases returns how many there are, the system's own included.
func (n *Node) Databases() int { return n.meta.Databases().Len() }

// Renew opens the file of the log anew, which may have been renamed, and reads the
// certificates again. Certificates for other nodes are read at each connection.
func (n *Node) Renew() {
	if err := n.base.logger.reopen(); err != nil {
		n.base.log.Error("the log stays where it is", zap.Error(err))
	}
	n.listeners.look()
	n.base.log.Info("the log is open anew, certificates are read again")
}

// Restart makes Run return ErrRestart after a graceful stop. It returns at
// once.
func (n *Node) Restart() { n.askRestart.Do(func() { close(n.restarting) }) }

// ErrRestart is returned by Run when the node was asked to start anew: the caller builds a
// new node with the same Config.
var ErrRestart = errors.New("the node was asked to restart")

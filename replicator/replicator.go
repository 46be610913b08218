package replicator

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/replicator/local"
	"divan/replicator/ownership"
	"divan/replicator/scheduler"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/memory"
)

// Options configures a Replicator. All are required, but for Dial.
type Options struct {
	Coordinator *cluster.Coordinator
	Meta        *meta.Meta
	Config      *config.Holder
	Owners      *ownership.Table
	Local       *local.Opener // of databases of this cluster
	// Identify tells whose credentials the headers of a request have; account is whose
	// replication makes it, see spec.Spec.Account.
	Identify func(ctx context.Context, account string, h http.Header) (shard.User, error)
	// Listening returns where the HTTP interface of this node listens; nil as long
	// as it does not.
	Listening func() net.Addr
	// Others asks all other nodes for what is at a path below /_node/{node}, and
	// returns what those say that have something there.
	Others func(ctx context.Context, path string) [][]byte
	// Send has another node run a continuous replication.
	Send      func(ctx context.Context, node string, q *Request) error
	UserAgent string
	// Memory bounds the memory of the node that replications may take.
	Memory *memory.Shares
	Logger *zap.Logger
	// Dial connects to other servers; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Replicator runs the replications of this node. It is safe for concurrent use.
//
// LOCKS: mu guards the documents; the runner has its own, which is taken while mu
// is held, never the other way round. Nothing is read or written while one is
// held.
type Replicator struct {
	o      Options
	log    *zap.Logger
	runner *scheduler.Runner
	wake   chan struct{} // has one token when the resolver is to look
	adrift chan *Request // to be handed over
	stats  counters

	connections connections

	mu struct {
		sync.Mutex
		docs     map[docKey]*document
		watching map[string]*watcher // by replicator database
	}
}

// New returns a replicator; nothing runs before Run.
func New(o Options) *Replicator {
	r := &Replicator{o: o, log: o.Logger, wake: make(chan struct{}, 1), adrift: make(chan *Request, maxAdrift)}
	r.mu.docs = map[docKey]*document{}
	r.mu.watching = map[string]*watcher{}
	r.runner = scheduler.NewRunner(scheduler.RunnerOptions{
		Settings: r.settings, Jitter: func() time.Duration { return r.config().StartupJitter }, Describe: describe,
	})
	return r
}

// Run runs replications until ctx ends, and waits until they have stopped.
func (r *Replicator) Run(ctx context.Context) error {
	cancel := r.o.Config.Subscribe(func(_, _ *config.Snapshot) { r.runner.Changed() })
	defer cancel()
	var running sync.WaitGroup
	defer r.hangUp()
	defer running.Wait()
	running.Go(func() { _ = r.runner.Run(ctx) }) // it has no error
	running.Go(func() { r.resolve(ctx) })
	running.Go(func() { r.followOwners(ctx) })
	running.Go(func() { r.handOver(ctx) })
	if err := r.o.Meta.WaitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	r.watchAll(ctx)
	return nil
}

func (r *Replicator) config() *config.Replicator { return &r.o.Config.Load().Replicator }

// settings are those of the scheduler.
func (r *Replicator) settings() scheduler.Settings {
	c := r.config()
	return scheduler.Settings{
		MaxJobs: c.MaxJobs, MaxChurn: c.MaxChurn, MaxHistory: c.MaxHistory, Interval: c.Interval, HealthThreshold: c.HealthThreshold,
		Sharing: scheduler.Sharing{UsageCoeff: c.Shares.UsageCoeff, PriorityCoeff: c.Shares.PriorityCoeff, Shares: c.Shares.Of},
	}
}

// defaults returns the values of what a user's request may leave out.
func (r *Replicator) defaults(u shard.User) spec.Defaults {
	t := &r.config().Transfer
	return spec.Defaults{User: u, Options: spec.Options{
		UseCheckpoints: t.UseCheckpoints, CheckpointInterval: t.CheckpointInterval, UseBulkGet: t.UseBulkGet,
		Workers: t.Workers, BatchSize: t.BatchSize, Connections: t.Connections, ConnectionTimeout: t.ConnectionTimeout, Retries: t.Retries,
	}}
}

// uuid is that of the cluster, which is part of the ids of replications.
func (r *Replicator) uuid() string { return r.o.Config.Load().CouchDB.UUID }

package replicator

import (
	"context"
	"net"
	"net/http"
	"sync"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/replicator/local"
	"divan/replicator/ownership"
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

// Replicator runs the replications of this node. Its parts are safe for concurrent
// use.
type Replicator struct {
	Jobs      *Jobs
	Requests  *Requests
	Documents *Documents

	config   *config.Holder
	meta     *meta.Meta
	owners   *ownership.Table
	opener   *opener
	watchers *watchers
	stats    *counters
}

// New returns a replicator; nothing runs before Run.
func New(o Options) *Replicator {
	stats, set := &counters{}, settings{o.Config}
	open := newOpener(&o, &stats.network)
	jobs := newJobs(&o, open, &stats.runs)
	docs := newDocuments(&o, open, jobs, &stateWriter{
		coordinator: o.Coordinator, owners: o.Owners, config: set, stats: stats, log: o.Logger,
	})
	return &Replicator{
		Jobs: jobs, Requests: newRequests(&o, open, jobs), Documents: docs,
		config: o.Config, meta: o.Meta, owners: o.Owners, opener: open, watchers: newWatchers(&o, docs, stats), stats: stats,
	}
}

// Run runs replications until ctx ends, and waits until they have stopped.
func (r *Replicator) Run(ctx context.Context) error {
	cancel := r.config.Subscribe(func(_, _ *config.Snapshot) { r.Jobs.runner.Changed() })
	defer cancel()
	var running sync.WaitGroup
	defer r.opener.hangUp()
	defer running.Wait()
	running.Go(func() { _ = r.Jobs.runner.Run(ctx) }) // it has no error
	running.Go(func() { r.Documents.resolve(ctx) })
	running.Go(func() { r.followOwners(ctx) })
	running.Go(func() { r.Requests.handOver(ctx) })
	if err := r.meta.WaitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	r.watchers.watchAll(ctx)
	return nil
}

// followOwners stops what belongs to other nodes now, and has documents read
// again when this node got slots, until ctx ends.
func (r *Replicator) followOwners(ctx context.Context) {
	var terms [meta.SlotCount]uint64 // of the slots of this node; 0: another one's
	for {
		changed := r.owners.Changed()
		more := false
		for slot := range terms {
			term, mine := r.owners.Mine(slot)
			if !mine {
				term = 0
			}
			more = more || term != 0 && term != terms[slot]
			terms[slot] = term
		}
		r.Documents.stopLost(&terms)
		r.Requests.stopLost(&terms)
		if more {
			r.watchers.readAgain()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

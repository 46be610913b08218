package replicator

import (
	"context"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"divan/cluster/meta"
	"divan/storage/fault"
	"divan/storage/pause"
)

// stopLost stops the replications of requests that are not this node's any more.
func (r *Requests) stopLost(terms *[meta.SlotCount]uint64) {
	for _, s := range r.jobs.runner.Jobs() {
		if j := jobOf(s); j.doc == nil && terms[j.slot] != j.term {
			r.lose(j)
		}
	}
}

// lose stops a job of a request that belongs to another node now. Who waits for
// its result asks that one; one that is continuous is handed over.
func (r *Requests) lose(j *job) {
	if !r.jobs.stop(j, errMoved()) || !j.spec.Continuous {
		return
	}
	r.setAdrift(j.request)
}

func (r *Requests) setAdrift(q *Request) {
	select {
	case r.adrift <- q:
	default:
		r.log.Error("a replication has no node to run on", zap.String("replication", q.ID))
	}
}

// maxAdrift bounds the replications that wait to be handed over.
const maxAdrift = 10_000

// How many replications are handed over at once, and how long one may take.
const (
	givers      = 8
	giveTimeout = 30 * time.Second
)

// handOver gives replications of requests that this node may not run any more to
// the nodes that may, until ctx ends. One that is refused there is given up.
func (r *Requests) handOver(ctx context.Context) {
	var giving errgroup.Group
	giving.SetLimit(givers)
	defer func() { _ = giving.Wait() }() // it has no error
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-r.adrift:
			giving.Go(func() error {
				r.handOne(ctx, q)
				return nil
			})
		}
	}
}

// handOne hands a replication over, or puts it back.
func (r *Requests) handOne(ctx context.Context, q *Request) {
	limited, cancel := context.WithTimeout(ctx, giveTimeout)
	defer cancel()
	err := r.give(limited, q)
	switch {
	case err == nil || ctx.Err() != nil:
	case fault.Is(err, fault.BadRequest), fault.Is(err, fault.Conflict):
		r.log.Error("a replication is refused by the node that it belongs to", zap.String("replication", q.ID), zap.Error(err))
	default:
		r.log.Info("a replication is not handed over yet", zap.String("replication", q.ID), zap.Error(err))
		_ = pause.For(ctx, time.Second) // what is put back is not looked at when ctx has ended
		r.setAdrift(q)
	}
}

// give has the node run a replication that it belongs to. fault.BadRequest or
// fault.Conflict: it does not take it.
func (r *Requests) give(ctx context.Context, q *Request) error {
	node, err := r.Node(ctx, q)
	if err != nil {
		return err
	}
	if node == r.meta.Self() {
		_, err = r.Start(ctx, q)
		return err
	}
	return r.send(ctx, node, q)
}

package replicator

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"divan/replicator/ownership"
	"divan/replicator/protocol"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/fault"
	"divan/storage/pause"
)

// Request is a request of POST /_replicate.
type Request struct {
	ID     string // of the replication
	Cancel bool
	User   shard.User
	Body   []byte // as it came

	spec *spec.Spec // nil: it is cancelled by its id
	id   spec.ID
}

// Continuous reports whether there is no result to wait for.
func (q *Request) Continuous() bool { return q.spec != nil && q.spec.Continuous }

// Request reads the body of POST /_replicate.
func (r *Replicator) Request(ctx context.Context, body []byte, u shard.User) (*Request, error) {
	q := &Request{User: u, Body: body}
	var err error
	if q.Cancel, q.ID, err = spec.ParseCancel(body); err != nil {
		return nil, err
	}
	if q.Cancel && q.ID != "" {
		q.ID = strings.ReplaceAll(q.ID, " ", "+")
		return q, nil
	}
	if q.spec, err = spec.Parse(body, r.defaults(u)); err != nil {
		return nil, err
	}
	code, err := r.filterCode(ctx, q.spec)
	if err != nil {
		return nil, err
	}
	q.id = q.spec.ID(r.uuid(), code)
	q.ID = q.id.String()
	return q, nil
}

// CodeMoved is the error of a replication that belongs to another node now.
const CodeMoved = "replication_moved"

func errMoved() error {
	return &fault.Error{
		Kind: fault.Unavailable, Code: CodeMoved, Reason: "No node of the cluster can run this replication now. Try again.", Err: ownership.ErrLost,
	}
}

// How long a request waits until a slot has an owner, and until the owner hears of it.
const (
	ownerTimeout = 20 * time.Second
	mineTimeout  = 3 * time.Second
)

// Node returns the node that runs what was asked for. While slots move it waits.
func (r *Replicator) Node(ctx context.Context, q *Request) (node string, err error) {
	slot := ownership.Slot(q.ID)
	return node, r.untilOwned(ctx, ownerTimeout, func() bool {
		owner, ok := r.o.Owners.Owner(slot)
		node = owner.Node
		return ok
	})
}

// untilOwned waits until a condition about owners holds.
func (r *Replicator) untilOwned(ctx context.Context, longest time.Duration, holds func() bool) error {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	for {
		changed := r.o.Owners.Changed()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return errMoved()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Start has this node run a replication, or finds it running, and waits for the
// result of one that is not continuous. It goes on when ctx ends.
func (r *Replicator) Start(ctx context.Context, q *Request) (*protocol.Result, error) {
	slot := ownership.Slot(q.ID)
	var term uint64
	err := r.untilOwned(ctx, mineTimeout, func() (mine bool) {
		term, mine = r.o.Owners.Mine(slot)
		return mine
	})
	if err != nil {
		return nil, err
	}
	j := r.newJob(q.spec, q.id, slot, term, nil)
	j.request = q
	if j, err = r.addOrJoin(j); err != nil {
		return nil, err
	}
	if now, still := r.o.Owners.Mine(slot); j.doc == nil && (!still || now != term) {
		r.lose(j) // who looks for those that are lost may have passed by
	}
	if q.Continuous() {
		return nil, nil //nolint:nilnil // there is no result
	}
	return j.wait(ctx)
}

// addOrJoin has a job of a request run, unless there is one already that does the
// same: that one is returned then. One of the same account with other passwords
// or proxies makes room.
func (r *Replicator) addOrJoin(j *job) (*job, error) {
	for {
		there := jobOf(r.runner.Add(&j.Job))
		switch {
		case there == nil:
			return j, nil
		case there.doc != nil && j.spec.Continuous:
			return there, nil
		case there.doc != nil:
			return nil, fault.Newf(fault.Conflict, "The document %s of %s runs this replication.", there.doc.key.id, there.doc.key.db)
		case there.spec.Same(j.spec):
			return there, nil
		case there.spec.User.Name != j.spec.User.Name || there.spec.User.Anonymous != j.spec.User.Anonymous:
			return nil, fault.New(fault.Conflict, "Another account runs this replication.")
		}
		r.stop(there, fault.New(fault.Conflict, "A later request has replaced this replication."))
	}
}

// lose stops a job of a request that belongs to another node now. Who waits for
// its result asks that one; one that is continuous is handed over.
func (r *Replicator) lose(j *job) {
	if !r.stop(j, errMoved()) || !j.spec.Continuous {
		return
	}
	r.setAdrift(j.request)
}

func (r *Replicator) setAdrift(q *Request) {
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
func (r *Replicator) handOver(ctx context.Context) {
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
func (r *Replicator) handOne(ctx context.Context, q *Request) {
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
func (r *Replicator) give(ctx context.Context, q *Request) error {
	node, err := r.Node(ctx, q)
	if err != nil {
		return err
	}
	if node == r.o.Meta.Self() {
		_, err = r.Start(ctx, q)
		return err
	}
	return r.o.Send(ctx, node, q)
}

// Cancel ends a replication of a request; fault.NotFound when there is none.
func (r *Replicator) Cancel(q *Request) error {
	j := jobOf(r.runner.Get(q.ID))
	if j == nil || j.doc != nil {
		return fault.New(fault.NotFound, "missing")
	}
	if !q.User.Admin() && (q.User.Anonymous || q.User.Name != j.spec.User.Name) {
		return fault.New(fault.Unauthorized, "You are not a server admin.")
	}
	r.stop(j, fault.New(fault.BadRequest, "The replication was cancelled."))
	return nil
}

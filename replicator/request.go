package replicator

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/replicator/ownership"
	"divan/replicator/protocol"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/fault"
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

// Requests are the requests that this node runs replications for, and those that it
// hands over to other nodes. It is safe for concurrent use.
type Requests struct {
	jobs   *Jobs
	opener *opener
	config settings
	meta   *meta.Meta
	owners *ownership.Table
	send   func(ctx context.Context, node string, q *Request) error // see Options.Send
	adrift chan *Request                                            // to be handed over
	log    *zap.Logger
}

func newRequests(o *Options, open *opener, jobs *Jobs) *Requests {
	return &Requests{
		jobs: jobs, opener: open, config: settings{o.Config}, meta: o.Meta, owners: o.Owners, send: o.Send,
		adrift: make(chan *Request, maxAdrift), log: o.Logger,
	}
}

// Parse reads the body of POST /_replicate.
func (r *Requests) Parse(ctx context.Context, body []byte, u shard.User) (*Request, error) {
	q := &Request{User: u, Body: body}
	var err error
	if q.Cancel, q.ID, err = spec.ParseCancel(body); err != nil {
		return nil, err
	}
	if q.Cancel && q.ID != "" {
		q.ID = strings.ReplaceAll(q.ID, " ", "+")
		return q, nil
	}
	if q.spec, err = spec.Parse(body, r.config.defaults(u)); err != nil {
		return nil, err
	}
	code, err := r.opener.filterCode(ctx, q.spec)
	if err != nil {
		return nil, err
	}
	q.id = q.spec.ID(r.config.uuid(), code)
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
func (r *Requests) Node(ctx context.Context, q *Request) (node string, err error) {
	slot := ownership.Slot(q.ID)
	return node, r.untilOwned(ctx, ownerTimeout, func() bool {
		owner, ok := r.owners.Owner(slot)
		node = owner.Node
		return ok
	})
}

// untilOwned waits until a condition about owners holds.
func (r *Requests) untilOwned(ctx context.Context, longest time.Duration, holds func() bool) error {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	for {
		changed := r.owners.Changed()
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
func (r *Requests) Start(ctx context.Context, q *Request) (*protocol.Result, error) {
	slot := ownership.Slot(q.ID)
	var term uint64
	err := r.untilOwned(ctx, mineTimeout, func() (mine bool) {
		term, mine = r.owners.Mine(slot)
		return mine
	})
	if err != nil {
		return nil, err
	}
	j, err := r.addOrJoin(r.newJob(q, slot, term))
	if err != nil {
		return nil, err
	}
	if now, still := r.owners.Mine(slot); j.doc == nil && (!still || now != term) {
		r.lose(j) // who looks for those that are lost may have passed by
	}
	if q.Continuous() {
		return nil, nil //nolint:nilnil // there is no result
	}
	return j.wait(ctx)
}

// newJob returns the job of a request, which is not registered yet.
func (r *Requests) newJob(q *Request, slot int, term uint64) *job {
	j := newJob(q.spec, q.id, slot, term)
	j.request, j.Transient = q, true
	j.Run = func(ctx context.Context) error { return r.jobs.run(ctx, j, j.begin()) }
	j.Ended = func(_ context.Context, err error) { j.end(err) }
	return j
}

// addOrJoin has a job of a request run, unless there is one already that does the
// same: that one is returned then. One of the same account with other passwords
// or proxies makes space.
func (r *Requests) addOrJoin(j *job) (*job, error) {
	for {
		there := r.jobs.add(j)
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
		r.jobs.stop(there, fault.New(fault.Conflict, "A later request has replaced this replication."))
	}
}

// Cancel ends a replication of a request; fault.NotFound when there is none.
func (r *Requests) Cancel(q *Request) error {
	j := r.jobs.get(q.ID)
	if j == nil || j.doc != nil {
		return fault.New(fault.NotFound, "missing")
	}
	if !q.User.Admin() && (q.User.Anonymous || q.User.Name != j.spec.User.Name) {
		return fault.New(fault.Unauthorized, "You are not a server admin.")
	}
	r.jobs.stop(j, fault.New(fault.BadRequest, "The replication was cancelled."))
	return nil
}

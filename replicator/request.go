package replicator

import (
	"context"
	"strings"

	"divan/replicator/ownership"
	"divan/replicator/protocol"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/fault"
)

// Request is what POST /_replicate asks for.
type Request struct {
	ID     string // of the replication
	Cancel bool
	User   shard.User

	spec *spec.Spec // nil: it is cancelled by its id
	id   spec.ID
}

// Continuous reports whether there is no result to wait for.
func (q *Request) Continuous() bool { return q.spec != nil && q.spec.Continuous }

// Request reads the body of POST /_replicate.
func (r *Replicator) Request(ctx context.Context, body []byte, u shard.User) (*Request, error) {
	q := &Request{User: u}
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

// Node returns the node that runs what was asked for.
func (r *Replicator) Node(q *Request) (string, error) {
	owner, ok := r.o.Owners.Owner(ownership.Slot(q.ID))
	if !ok {
		return "", errNobody()
	}
	return owner.Node, nil
}

func errNobody() error {
	return fault.New(fault.Unavailable, "No node of the cluster can run this replication now. Try again.")
}

// Start has this node run a replication, or finds it running, and waits for the
// result of one that is not continuous. It goes on when ctx ends.
func (r *Replicator) Start(ctx context.Context, q *Request) (*protocol.Result, error) {
	slot := ownership.Slot(q.ID)
	term, mine := r.o.Owners.Mine(slot)
	if !mine {
		return nil, errNobody()
	}
	j := r.newJob(q.spec, q.id, slot, term, nil)
	if there := jobOf(r.runner.Add(&j.Job)); there != nil {
		if j = there; j.doc != nil && !q.Continuous() {
			return nil, fault.Newf(fault.Conflict, "The document %s of %s runs this replication.", j.doc.key.id, j.doc.key.db)
		}
	}
	if _, still := r.o.Owners.Mine(slot); !still {
		r.stop(j, ownership.ErrLost) // who looks for those that are lost may have passed by
	}
	if q.Continuous() {
		return nil, nil //nolint:nilnil // there is no result
	}
	return j.wait(ctx)
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

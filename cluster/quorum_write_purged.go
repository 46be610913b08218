package cluster

import (
	"context"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// settlePurged deals with revisions that a copy did not take over because they
// have been purged there. Either the purge has not reached the copy that
// decided the edit, or the edit brings a revision back and was decided by a
// copy that had done the purge. Only the deciding copy tells: both copies do
// the purges of each other, and if it still has the revision then, the other
// one gets it from there.
//
// If it has not, the edit is nowhere, or will soon be. Whether the purge was
// asked for before or after it cannot be told: the error is errPurgedAway, so
// that a client that still waits is not told of an edit that nobody has.
func (r *quorumWrite) settlePurged(ctx context.Context, t fanout.Target, chosen []int, errs []error) []error {
	var from map[int][]int // by deciding copy: places in chosen
	for k, i := range chosen {
		if fault.Is(errs[k], fault.Purged) && !isLocal(r.req.Edits[i].ID) && r.by[i] != decidedBefore {
			if from == nil {
				from = make(map[int][]int)
			}
			from[r.by[i]] = append(from[r.by[i]], k)
		}
	}
	for at, places := range from {
		ids := make([]string, len(places))
		revs := make([]shard.IDRevs, len(places))
		for n, k := range places {
			i := chosen[k]
			ids[n] = r.req.Edits[i].ID
			revs[n] = shard.IDRevs{ID: ids[n], Revs: []doc.Rev{r.results[i].Rev}}
		}
		lacking, err := r.settle(ctx, at, t, ids, revs)
		if err != nil {
			r.db.c.log.Debug("purged edit not settled", zap.String("copy", t.Name), zap.String("node", t.Node), zap.Error(err))
			continue
		}
		for n, k := range places {
			errs[k] = nil
			if len(lacking[n].Missing) > 0 {
				errs[k] = errPurgedAway()
			}
		}
	}
	return errs
}

// settle brings a copy what the deciding one has of some documents, and tells
// which of some revisions it lacks all the same.
func (r *quorumWrite) settle(ctx context.Context, at int, t fanout.Target, ids []string, revs []shard.IDRevs) ([]shard.IDMissing, error) {
	if err := r.db.copyDocs(ctx, r.Copies[at], t, ids); err != nil {
		return nil, err
	}
	rep := r.db.c.replica(t)
	if rep.Away() {
		return nil, fanout.NodeDown(t.Node)
	}
	return replica.Missing.On(ctx, rep, replica.MissingRequest{Copy: t.Name, IDs: revs})
}

// errPurgedAway says that a purge which a copy had not heard of when it decided
// an edit has taken that away again. Asked once more, the copy knows it and
// keeps the edit.
func errPurgedAway() error {
	return purgedAway{fault.New(fault.Unavailable, "The revision was purged while it was written. Try again.")}
}

type purgedAway struct{ error }

func (e purgedAway) Unwrap() error { return e.error }

package cluster

import (
	"context"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/repair"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// reconsiderAt has a copy look again at edits that it refused as conflicts, once it has got
// what it lacks of them.
func (r *quorumWrite) reconsiderAt(ctx context.Context, at int, refused []int) {
	siblings := repair.Siblings{
		Copies: make([]repair.End, len(r.route.Copies)), Limits: r.db.limits(),
		Patience: r.db.latency.writes.Patience(fanout.WritePatience), Log: r.db.log,
	}
	for i, t := range r.route.Copies {
		siblings.Copies[i] = r.db.endOf(t)
	}
	got := siblings.Refresh(ctx, at, pick(r.req.Edits, refused))
	for _, err := range got.Errs {
		r.db.noteRefusal(err)
	}
	for _, f := range got.Failed {
		r.outdated(f.Err, pick(refused, f.Edits))
		r.db.missed(r.route.Copies[at])
	}
	if len(got.Again) > 0 {
		r.decideAgain(ctx, at, pick(refused, got.Again))
	}
}

// decideAgain has a copy decide edits that it refused before.
func (r *quorumWrite) decideAgain(ctx context.Context, at int, again []int) {
	rep := r.db.replica(r.route.Copies[at])
	if rep.Away() {
		return
	}
	req := r.asSent(again)
	req.Copy, req.Insist = r.route.Copies[at].Name, true
	answers, err := replica.Decide.On(ctx, rep, req)
	r.db.noteRefusal(err)
	if fault.Is(err, fault.MissingStub) {
		r.whole = err
		return
	}
	if err == nil {
		for _, i := range again {
			r.edits[i].Reconsider()
		}
	}
	for k, i := range again {
		switch {
		case err != nil: // it may have done it
			r.edits[i].Decide(0, err)
		case answers[k].Err == nil:
			r.results[i], r.edits[i].by, r.edits[i].refused = answers[k], at, -1
		default:
			r.edits[i].Decide(0, answers[k].Err)
		}
	}
}

// outdated takes the refusals of edits back that could not be looked at again because a
// copy knows a newer map: they are decided by that.
func (r *quorumWrite) outdated(err error, edits []int) {
	r.db.noteRefusal(err)
	if fault.Is(err, fault.StaleMap) {
		for _, i := range edits {
			r.edits[i].Reconsider()
			r.edits[i].Decide(0, err)
			r.edits[i].refused = -1
		}
	}
}

// settlePurged deals with revisions that a copy did not take over because they
// have been purged there (repair.Copier.SettlePurged), by the copies that decided their
// edits. The error of one that is gone is errPurgedAway, so that a client that still waits
// is not told of an edit that no copy has.
func (r *quorumWrite) settlePurged(ctx context.Context, t ring.Replica, chosen []int, refused []error) {
	var from map[int][]int // by deciding copy: places in chosen
	for k, i := range chosen {
		if fault.Is(refused[k], fault.Purged) && !isLocal(r.req.Edits[i].ID) && r.edits[i].by != decidedBefore {
			if from == nil {
				from = make(map[int][]int)
			}
			from[r.edits[i].by] = append(from[r.edits[i].by], k)
		}
	}
	for at, places := range from {
		revs := make([]shard.IDRevs, len(places))
		for n, k := range places {
			revs[n] = shard.IDRevs{ID: r.req.Edits[chosen[k]].ID, Revs: []doc.Rev{r.results[chosen[k]].Rev}}
		}
		gone, err := r.db.copier(r.route.Copies[at], t).SettlePurged(ctx, revs)
		if err != nil {
			r.db.log.Debug("purged edit not settled", zap.String("copy", t.Name), zap.String("node", t.Node), zap.Error(err))
			continue
		}
		for n, k := range places {
			refused[k] = nil
			if gone[n] {
				refused[k] = errPurgedAway()
			}
		}
	}
}

// errPurgedAway says that a purge which a copy had not heard of when it decided
// an edit has taken that away again. Asked once more, the copy knows it and
// keeps the edit.
func errPurgedAway() error {
	return purgedAway{fault.New(fault.Unavailable, "The revision was purged while it was written. Try again.")}
}

type purgedAway struct{ error }

func (e purgedAway) Unwrap() error { return e.error }

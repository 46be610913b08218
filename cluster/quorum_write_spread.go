package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/fault"
)

// asDecided returns the request that makes another copy take over what the
// deciding one made of the chosen edits: revisions to merge, without a check
// and without asking validation functions again.
func (r *quorumWrite) asDecided(chosen []int) shard.UpdateRequest {
	req := r.req
	req.NewEdits, req.Trusted, req.NoPath = false, true, true
	req.Edits = make([]shard.Edit, len(chosen))
	for k, i := range chosen {
		e := r.req.Edits[i]
		if !isLocal(e.ID) { // those are counted from the client's revision on every copy
			e.Path = r.results[i].Path
		}
		e.Atts = settleAttachments(e.Atts, &r.results[i], r.req.NewEdits)
		req.Edits[k] = e
	}
	return req
}

func isLocal(id string) bool { return strings.HasPrefix(id, "_local/") }

// settleAttachments names the position at which new content was added, which
// the deciding copy works out for itself, and what stubs stand for there: the
// ancestor that another copy finds may have other content under that name.
func settleAttachments(atts []shard.EditAttachment, decided *shard.EditResult, interactive bool) []shard.EditAttachment {
	if len(atts) == 0 || !interactive && len(decided.Kept) == 0 {
		return atts
	}
	out := make([]shard.EditAttachment, len(atts))
	kept := decided.Kept
	for i, a := range atts {
		switch {
		case a.Stub && len(kept) > 0:
			a.Attachment, a.HasRevPos = kept[0], true
			kept = kept[1:]
		case !a.Stub && !a.HasRevPos && interactive:
			a.RevPos, a.HasRevPos = decided.Rev.Pos, true
		}
		out[i] = a
	}
	return out
}

// followed is what one copy said to the revisions it was to take over.
type followed struct {
	own     bool // the copy of this node
	joining bool // it is being filled
	chosen  []int
	errs    []error
}

// spread sends what was decided to all other copies at once, also to those
// that were asked to decide and did not answer, and counts until every edit is
// settled. Whoever does not take it is noted for repair.
//
// The copy of this node is waited for even when enough others have the edits:
// listings and feeds read one copy, this one, and a client that has written
// through this node would miss its own writes there.
func (r *quorumWrite) spread(ctx context.Context) {
	for i := range r.by {
		if r.by[i] >= 0 { // what the decision took does not count any more
			r.counts[i] = r.counts[i].Restart()
			if r.by[i] != decidedBefore {
				r.counts[i].Decide(nil)
			}
		}
	}
	all := r.Copies
	if len(r.joining) > 0 {
		all = slices.Concat(r.Copies, r.joining)
	}
	inbox := make(chan followed, len(all)) // room for all, so that no straggler waits for a reader
	asked, own := 0, false
	for at, t := range all {
		here := t.Node == r.db.c.node
		chosen := r.those(func(i int) bool { return r.by[i] >= 0 && r.by[i] != at })
		if len(chosen) == 0 {
			continue
		}
		rep := r.db.c.replica(t)
		req := r.asDecided(chosen)
		req.Copy = t.Name
		run := func(ctx context.Context) {
			inbox <- followed{own: here, joining: t.Joining, chosen: chosen, errs: r.settlePurged(ctx, t, chosen, r.db.follow(ctx, rep, t, req))}
		}
		switch {
		case rep.Away():
			r.db.c.missed(t)
			r.count(followed{joining: t.Joining, chosen: chosen, errs: same(fanout.NodeDown(t.Node), len(chosen))})
		case !r.db.c.detach(ctx, run):
			r.db.c.missed(t)
			r.count(followed{joining: t.Joining, chosen: chosen, errs: same(fanout.Closed(), len(chosen))})
		default:
			asked++
			own = own || here
		}
	}
	if !r.req.Delayed {
		r.gather(ctx, inbox, asked, own)
	}
}

// gather counts the answers of that many copies until every edit is settled and
// the copy of this node, if it is among them, has answered.
func (r *quorumWrite) gather(ctx context.Context, inbox <-chan followed, asked int, own bool) {
	var late <-chan time.Time
	for ; asked > 0; asked-- {
		if r.settled() {
			if !own {
				return
			}
			if late == nil {
				timer := time.NewTimer(fanout.MostPatience)
				defer timer.Stop()
				late = timer.C
			}
		}
		select {
		case a := <-inbox:
			r.count(a)
			own = own && !a.own
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

// follow has a copy merge revisions and notes it for repair when it does not
// take them all. A stub that it cannot resolve, because it is behind, refuses
// only the edit it belongs to.
func (d *DB) follow(ctx context.Context, rep replica.Copy, t fanout.Target, req shard.UpdateRequest) []error {
	answers, err := replica.Update.On(ctx, rep, req)
	errs := make([]error, len(req.Edits))
	failed := false
	for i := range errs {
		switch {
		case err == nil:
			errs[i] = answers[i].Err
		case fault.Is(err, fault.MissingStub) && len(req.Edits) > 1:
			one := req
			one.Edits = req.Edits[i : i+1]
			var a []shard.EditResult
			if a, errs[i] = replica.Update.On(ctx, rep, one); errs[i] == nil {
				errs[i] = a[0].Err
			}
		default:
			errs[i] = err
		}
		failed = failed || errs[i] != nil
	}
	if failed {
		d.c.missed(t)
	}
	return errs
}

func same(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (r *quorumWrite) count(a followed) {
	for k, i := range a.chosen {
		var away purgedAway
		switch {
		case a.errs[k] == nil && a.joining:
			r.counts[i].StoreJoining()
		case a.errs[k] == nil:
			r.counts[i].Store()
		case errors.As(a.errs[k], &away):
			r.counts[i].Withdraw(a.errs[k])
		default:
			r.db.noteRefusal(a.errs[k])
			if a.joining {
				r.counts[i].LoseJoining()
			} else {
				r.counts[i].Lose(a.errs[k])
			}
		}
	}
}

func (r *quorumWrite) settled() bool {
	for i := range r.counts {
		if o, _ := r.counts[i].Outcome(); o == quorum.Pending {
			return false
		}
	}
	return true
}

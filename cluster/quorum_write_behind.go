package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// reconsiderAt has a copy look again at edits that it refused.
func (r *quorumWrite) reconsiderAt(ctx context.Context, at int, refused []int) {
	suspects := r.unknownAt(ctx, at, refused)
	if len(suspects) == 0 {
		return
	}
	again := r.refresh(ctx, at, suspects)
	if len(again) == 0 {
		return
	}
	rep := r.db.replica(r.route.Copies[at])
	if rep.Away() {
		return
	}
	req := r.asSent(again)
	req.Copy, req.Insist = r.route.Copies[at].Name, true
	answers, err := replica.Update.On(ctx, rep, req)
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

// unknownAt returns those of the refused edits for which the copy that refused
// them does not know the revision that the client named, and those that name
// none and would create a document.
func (r *quorumWrite) unknownAt(ctx context.Context, at int, refused []int) (out []int) {
	var named []int
	for _, i := range refused {
		switch e := &r.req.Edits[i]; {
		case !e.Parent.IsZero():
			named = append(named, i)
		case !e.Deleted:
			out = append(out, i)
		}
	}
	if len(named) == 0 {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
	defer cancel()
	answers, err := r.lacking(ctx, r.route.Copies[at], named, r.parent)
	for k, i := range named {
		if err == nil && len(answers[k].Missing) > 0 {
			out = append(out, i)
		}
	}
	return out
}

// lacking asks a copy which revisions of some edits it does not know.
func (r *quorumWrite) lacking(ctx context.Context, t fanout.Target, edits []int, rev func(i int) doc.Rev) ([]shard.IDMissing, error) {
	rep := r.db.replica(t)
	if rep.Away() {
		return nil, fanout.NodeDown(t.Node)
	}
	revs := make([]shard.IDRevs, len(edits))
	for k, i := range edits {
		revs[k] = shard.IDRevs{ID: r.req.Edits[i].ID, Revs: []doc.Rev{rev(i)}}
	}
	return replica.Missing.On(ctx, rep, replica.MissingRequest{Copy: t.Name, IDs: revs})
}

// parent returns the revision that the client named.
func (r *quorumWrite) parent(i int) doc.Rev { return r.req.Edits[i].Parent }

// ids returns the documents of some edits.
func (r *quorumWrite) ids(edits []int) []string {
	out := make([]string, len(edits))
	for k, i := range edits {
		out[k] = r.req.Edits[i].ID
	}
	return out
}

// refresh asks the other copies, all at once, about edits that were refused by
// a copy which may be behind, brings it what it lacks, and returns the edits
// for which there was something to bring, in their order.
func (r *quorumWrite) refresh(ctx context.Context, at int, suspects []int) []int {
	ahead := r.askAhead(ctx, at, suspects)
	seen := make(map[int]bool, len(suspects))
	var again []int
	for other := range ahead {
		var mine []int
		for _, i := range ahead[other] {
			if !seen[i] {
				seen[i] = true
				mine = append(mine, i)
			}
		}
		if len(mine) == 0 {
			continue
		}
		if err := r.db.copyDocs(ctx, r.route.Copies[other], r.route.Copies[at], r.ids(mine)); err != nil {
			r.outdated(err, mine)
			r.db.log.Debug("copy that is behind not refreshed", zap.String("copy", r.route.Copies[at].Name), zap.Error(err))
			r.db.missed(r.route.Copies[at])
			continue
		}
		again = append(again, mine...)
	}
	slices.Sort(again) // edits of one document are decided in the order given
	return again
}

// askAhead asks all copies but one for the edits of which they know more, and returns
// these by copy. One that does not answer soon is waited for only as long as what the others
// know could be less than what a majority was given, and not for long: when too few copies
// can be asked, the refusal of one that may be behind is the best that is known.
func (r *quorumWrite) askAhead(ctx context.Context, at int, suspects []int) [][]int {
	type answer struct {
		other int
		ahead []int
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, fanout.MostPatience)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	inbox := make(chan answer, len(r.route.Copies))
	pending := 0
	for other, t := range r.route.Copies {
		rep := r.db.replica(t)
		if other == at || rep.Away() {
			continue
		}
		pending++
		asking.Go(func() {
			ahead, err := r.aheadAt(ctx, rep, t, suspects)
			inbox <- answer{other, ahead, err}
		})
	}
	soon := time.NewTimer(r.db.latency.writes.Patience(fanout.WritePatience))
	defer soon.Stop()
	ahead := make([][]int, len(r.route.Copies))
	// The copy that refused is one that has answered. Of so many, each majority has one.
	known, enough, late := 1, len(r.route.Copies)-quorum.Majority(len(r.route.Copies))+1, false
	for pending > 0 && (!late || known < enough) {
		select {
		case a := <-inbox:
			pending--
			ahead[a.other] = a.ahead
			if a.err == nil {
				known++
			}
		case <-soon.C:
			late = true
		}
	}
	return ahead
}

// aheadAt returns those of some edits for which a copy knows the revision that
// the client named, or that the document is deleted. With an error there may be more.
func (r *quorumWrite) aheadAt(ctx context.Context, rep replica.Copy, t fanout.Target, suspects []int) (out []int, failure error) {
	var named, unnamed []int
	for _, i := range suspects {
		if r.parent(i).IsZero() {
			unnamed = append(unnamed, i)
		} else {
			named = append(named, i)
		}
	}
	if len(named) > 0 {
		answers, err := r.lacking(ctx, t, named, r.parent)
		r.db.noteRefusal(err)
		for k := range answers {
			if err == nil && len(answers[k].Missing) == 0 {
				out = append(out, named[k])
			}
		}
		failure = err
	}
	if len(unnamed) > 0 {
		rows, err := replica.DocsByID.On(ctx, rep, replica.DocsByIDRequest{Copy: t.Name, IDs: r.ids(unnamed)})
		r.db.noteRefusal(err)
		for k := range rows {
			if err == nil && rows[k].Deleted {
				out = append(out, unnamed[k])
			}
		}
		failure = errors.Join(failure, err)
	}
	return out, failure
}

// settlePurged deals with revisions that a copy did not take over because they
// have been purged there. Either the purge has not reached the copy that
// decided the edit, or the edit brings a revision back and was decided by a
// copy that had done the purge. Only the deciding copy tells: both copies do
// the purges of each other, and if it still has the revision then, the other
// one gets it from there.
//
// If it has not, the edit is nowhere, or will soon be. Whether the purge was asked for before or
// after it cannot be told: the error is errPurgedAway, so that a client that still waits is not
// told of an edit that no copy has.
func (r *quorumWrite) settlePurged(ctx context.Context, t fanout.Target, chosen []int, answers []shard.EditResult) {
	var from map[int][]int // by deciding copy: places in chosen
	for k, i := range chosen {
		if fault.Is(answers[k].Err, fault.Purged) && !isLocal(r.req.Edits[i].ID) && r.edits[i].by != decidedBefore {
			if from == nil {
				from = make(map[int][]int)
			}
			from[r.edits[i].by] = append(from[r.edits[i].by], k)
		}
	}
	for at, places := range from {
		mine := pick(chosen, places)
		var lacking []shard.IDMissing
		err := r.db.copyDocs(ctx, r.route.Copies[at], t, r.ids(mine))
		if err == nil {
			lacking, err = r.lacking(ctx, t, mine, func(i int) doc.Rev { return r.results[i].Rev })
		}
		if err != nil {
			r.db.log.Debug("purged edit not settled", zap.String("copy", t.Name), zap.String("node", t.Node), zap.Error(err))
			continue
		}
		for n, k := range places {
			answers[k].Err = nil
			if len(lacking[n].Missing) > 0 {
				answers[k].Err = errPurgedAway()
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

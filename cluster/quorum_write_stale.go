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

// reconsider looks at the edits that were refused as conflicts: the copy that
// refused may be behind. It is when it does not know the revision that the
// client named and another copy does, or when it still has a document that is
// deleted elsewhere and the client means to create. Then it gets what it lacks
// from the other copy and decides again, once.
//
// A conflict with a revision that the deciding copy knows, the usual one,
// costs one question to that copy.
func (r *quorumWrite) reconsider(ctx context.Context) {
	for at := range r.Copies {
		refused := r.those(func(i int) bool {
			return r.refused[i] == at && !isLocal(r.req.Edits[i].ID) && fault.Is(r.counts[i].Refusal(), fault.Conflict)
		})
		if len(refused) > 0 && len(r.Copies) > 1 {
			r.reconsiderAt(ctx, at, refused)
		}
	}
}

func (r *quorumWrite) reconsiderAt(ctx context.Context, at int, refused []int) {
	suspects := r.unknownAt(ctx, at, refused)
	if len(suspects) == 0 {
		return
	}
	again := r.refresh(ctx, at, suspects)
	if len(again) == 0 {
		return
	}
	rep := r.db.c.replica(r.Copies[at])
	if rep.Away() {
		return
	}
	req := r.asSent(again)
	req.Copy, req.Insist = r.Copies[at].Name, true
	answers, err := replica.Update.On(ctx, rep, req)
	r.db.noteRefusal(err)
	if fault.Is(err, fault.MissingStub) {
		r.whole = err
		return
	}
	if err == nil {
		for _, i := range again {
			r.counts[i].Reconsider()
		}
	}
	for k, i := range again {
		switch {
		case err != nil: // it may have done it
			r.counts[i].Decide(err)
		case answers[k].Err == nil:
			r.results[i], r.by[i], r.refused[i] = answers[k], at, -1
		default:
			r.counts[i].Decide(answers[k].Err)
		}
	}
}

// outdated takes the refusals of edits back that could not be looked at again because a
// copy knows a newer map: they are decided by that.
func (r *quorumWrite) outdated(err error, edits []int) {
	r.db.noteRefusal(err)
	if fault.Is(err, fault.StaleMap) {
		for _, i := range edits {
			r.counts[i].Reconsider()
			r.counts[i].Decide(err)
			r.refused[i] = -1
		}
	}
}

// unknownAt returns those of the refused edits for which the copy that refused
// them does not know the revision that the client named, and those that name
// none and would create a document.
func (r *quorumWrite) unknownAt(ctx context.Context, at int, refused []int) []int {
	var named []int
	var out []int
	var ask []shard.IDRevs
	for _, i := range refused {
		e := &r.req.Edits[i]
		switch {
		case !e.Parent.IsZero():
			named = append(named, i)
			ask = append(ask, shard.IDRevs{ID: e.ID, Revs: []doc.Rev{e.Parent}})
		case !e.Deleted:
			out = append(out, i)
		}
	}
	t := r.Copies[at]
	rep := r.db.c.replica(t)
	if len(ask) == 0 || rep.Away() {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
	defer cancel()
	answers, err := replica.Missing.On(ctx, rep, replica.MissingRequest{Copy: t.Name, IDs: ask})
	if err != nil {
		return out
	}
	for k, i := range named {
		if len(answers[k].Missing) > 0 {
			out = append(out, i)
		}
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
		var ids []string
		var mine []int
		for _, i := range ahead[other] {
			if !seen[i] {
				seen[i] = true
				mine, ids = append(mine, i), append(ids, r.req.Edits[i].ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if err := r.db.copyDocs(ctx, r.Copies[other], r.Copies[at], ids); err != nil {
			r.outdated(err, mine)
			r.db.c.log.Debug("copy that is behind not refreshed", zap.String("copy", r.Copies[at].Name), zap.Error(err))
			r.db.c.missed(r.Copies[at])
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
	inbox := make(chan answer, len(r.Copies))
	pending := 0
	for other, t := range r.Copies {
		rep := r.db.c.replica(t)
		if other == at || rep.Away() {
			continue
		}
		pending++
		asking.Go(func() {
			ahead, err := r.aheadAt(ctx, rep, t, suspects)
			inbox <- answer{other, ahead, err}
		})
	}
	soon := time.NewTimer(r.db.c.latency.writes.Patience(fanout.WritePatience))
	defer soon.Stop()
	ahead := make([][]int, len(r.Copies))
	// The copy that refused is one that has answered. Of so many, each majority has one.
	known, enough, late := 1, len(r.Copies)-quorum.Majority(len(r.Copies))+1, false
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
	var revs []shard.IDRevs
	var ids []string
	for _, i := range suspects {
		e := &r.req.Edits[i]
		if e.Parent.IsZero() {
			unnamed, ids = append(unnamed, i), append(ids, e.ID)
		} else {
			named, revs = append(named, i), append(revs, shard.IDRevs{ID: e.ID, Revs: []doc.Rev{e.Parent}})
		}
	}
	if len(revs) > 0 {
		answers, err := replica.Missing.On(ctx, rep, replica.MissingRequest{Copy: t.Name, IDs: revs})
		r.db.noteRefusal(err)
		for k := range answers {
			if err == nil && len(answers[k].Missing) == 0 {
				out = append(out, named[k])
			}
		}
		failure = err
	}
	if len(ids) > 0 {
		rows, err := replica.DocsByID.On(ctx, rep, replica.DocsByIDRequest{Copy: t.Name, IDs: ids})
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

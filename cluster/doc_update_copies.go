package cluster

import (
	"context"
	"strings"

	"divan/cluster/quorum"
	"divan/shard"
)

// writing is the state of the edits of one stretch on their way to several
// copies.
type writing struct {
	db      *DB
	stretch *stretch
	req     shard.UpdateRequest // Edits: as the client sent them
	counts  []quorum.Write
	results []shard.EditResult
	by      []int // the copy that decided each edit; -1: none
}

// writeCopies has the first live copy decide and the others follow. It returns
// as soon as every edit is settled; a copy that is slower than that still gets
// its edits, on a goroutine that the coordinator waits for when it closes.
func (d *DB) writeCopies(ctx context.Context, s *stretch, w int, req shard.UpdateRequest) ([]shard.EditResult, error) {
	n := len(req.Edits)
	run := &writing{
		db: d, stretch: s, req: req,
		counts: make([]quorum.Write, n), results: make([]shard.EditResult, n), by: make([]int, n),
	}
	for i := range n {
		run.counts[i] = quorum.NewWrite(len(s.copies), w)
		run.by[i] = -1
	}
	if err := run.decide(ctx); err != nil {
		return nil, err
	}
	run.spread(ctx)
	return run.outcome()
}

// decide asks one copy after the other until each edit has been decided. An
// error refuses them all.
func (r *writing) decide(ctx context.Context) error {
	open := make([]int, len(r.req.Edits)) // edits that nobody has decided
	for i := range open {
		open[i] = i
	}
	for at := range r.stretch.copies {
		if len(open) == 0 {
			break
		}
		answers, err := r.send(ctx, at, r.asSent(open))
		if err != nil && quorum.Usable(err) && !isNoCopy(err) {
			return err
		}
		rest := open[:0]
		for k, i := range open {
			if err != nil {
				r.counts[i].Lose(err)
				rest = append(rest, i)
				continue
			}
			r.counts[i].Decide(answers[k].Err)
			if answers[k].Err != nil && !quorum.Usable(answers[k].Err) {
				rest = append(rest, i)
				continue
			}
			r.results[i], r.by[i] = answers[k], at
		}
		open = rest
	}
	return nil
}

// asSent returns the request with the chosen edits as they came.
func (r *writing) asSent(chosen []int) shard.UpdateRequest {
	req := r.req
	if len(chosen) < len(r.req.Edits) {
		req.Edits = make([]shard.Edit, len(chosen))
		for k, i := range chosen {
			req.Edits[k] = r.req.Edits[i]
		}
	}
	return req
}

// asDecided returns the request that makes another copy take over what the
// deciding one made of the chosen edits: revisions to merge, without a check
// and without asking validation functions again.
func (r *writing) asDecided(chosen []int) shard.UpdateRequest {
	req := r.req
	req.NewEdits, req.Trusted = false, true
	req.Edits = make([]shard.Edit, len(chosen))
	for k, i := range chosen {
		e := r.req.Edits[i]
		if !strings.HasPrefix(e.ID, "_local/") { // those are counted from the client's revision on every copy
			e.Path = r.results[i].Path
		}
		e.Atts = settleAttachments(e.Atts, r.results[i].Rev.Pos, r.req.NewEdits)
		req.Edits[k] = e
	}
	return req
}

// settleAttachments names the position at which new content was added, which
// the deciding copy works out for itself.
func settleAttachments(atts []shard.EditAttachment, pos uint64, interactive bool) []shard.EditAttachment {
	if len(atts) == 0 || !interactive {
		return atts
	}
	out := make([]shard.EditAttachment, len(atts))
	for i, a := range atts {
		if !a.Stub && !a.HasRevPos {
			a.RevPos, a.HasRevPos = pos, true
		}
		out[i] = a
	}
	return out
}

// send gives one copy a request.
func (r *writing) send(ctx context.Context, at int, req shard.UpdateRequest) ([]shard.EditResult, error) {
	t := r.stretch.copies[at]
	rep := r.db.c.replica(t.node)
	if rep == nil {
		return nil, errNodeDown(t.node)
	}
	req.Copy = t.name
	return rep.Update(ctx, req)
}

// followed is what one copy said to the revisions it was to take over.
type followed struct {
	chosen  []int
	answers []shard.EditResult
	err     error
}

// spread sends what was decided to the copies behind the deciding one, all at
// once, and counts until every edit is settled. Copies before it are lost for
// this edit: they did not answer.
func (r *writing) spread(ctx context.Context) {
	inbox := make(chan followed, len(r.stretch.copies)) // room for all, so that no straggler waits for a reader
	asked := 0
	for at := 1; at < len(r.stretch.copies); at++ {
		chosen := r.behind(at)
		if len(chosen) == 0 {
			continue
		}
		req := r.asDecided(chosen)
		run := func(ctx context.Context) {
			answers, err := r.send(ctx, at, req)
			inbox <- followed{chosen: chosen, answers: answers, err: err}
		}
		if !r.db.c.detach(ctx, run) {
			r.count(followed{chosen: chosen, err: errClosed()})
			continue
		}
		asked++
	}
	for ; asked > 0 && !r.req.Delayed && !r.settled(); asked-- {
		select {
		case a := <-inbox:
			r.count(a)
		case <-ctx.Done():
			return
		}
	}
}

// behind returns the edits that an earlier copy has accepted.
func (r *writing) behind(at int) []int {
	var out []int
	for i, by := range r.by {
		if by >= 0 && by < at && r.results[i].Err == nil {
			out = append(out, i)
		}
	}
	return out
}

func (r *writing) count(a followed) {
	for k, i := range a.chosen {
		switch {
		case a.err != nil:
			r.counts[i].Lose(a.err)
		case a.answers[k].Err != nil:
			r.counts[i].Lose(a.answers[k].Err)
		default:
			r.counts[i].Store()
		}
	}
}

func (r *writing) settled() bool {
	for i := range r.counts {
		if o, _ := r.counts[i].Outcome(); o == quorum.Pending {
			return false
		}
	}
	return true
}

// outcome turns the counts into answers. An edit whose copies were still at
// work when the request ended has been accepted by one.
func (r *writing) outcome() ([]shard.EditResult, error) {
	failed := 0
	var cause error
	for i := range r.results {
		o, err := r.counts[i].Outcome()
		r.results[i].Err = err
		r.results[i].Accepted = o == quorum.Accepted || o == quorum.Pending
		if o == quorum.Failed {
			failed, cause = failed+1, err
		}
	}
	if failed == len(r.results) {
		return nil, cause
	}
	return r.results, nil
}

package cluster

import (
	"context"
	"slices"
	"time"

	"divan/cluster/quorum"
	"divan/shard"
	"divan/storage/fault"
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
	refused []int // the copy that refused it; -1: none
	waits   []int // copies that are deciding it
	whole   error // a refusal of the whole request by a copy, or that it has no such copy

	next    int // the copy that is asked to decide next
	pending int // copies that are deciding
	inbox   chan decided
}

// decided is what one copy said to the edits it was to decide.
type decided struct {
	at      int
	chosen  []int
	answers []shard.EditResult
	err     error
}

// writeCopies has the first live copy decide and the others follow. It returns
// as soon as every edit is settled; a copy that is slower than that still gets
// its edits, on a goroutine that the coordinator waits for when it closes.
func (d *DB) writeCopies(ctx context.Context, s *stretch, w int, req shard.UpdateRequest) ([]shard.EditResult, error) {
	n := len(req.Edits)
	ctx, cancel := d.c.deadline(ctx)
	defer cancel()
	marks := make([]int, 3*n)
	run := &writing{
		db: d, stretch: s, req: req,
		counts: make([]quorum.Write, n), results: make([]shard.EditResult, n),
		by: marks[:n:n], refused: marks[n : 2*n : 2*n], waits: marks[2*n:],
		inbox: make(chan decided, len(s.copies)),
	}
	for i := range n {
		run.counts[i] = quorum.NewWrite(len(s.copies), w)
		run.by[i], run.refused[i] = -1, -1
	}
	run.decide(ctx)
	if req.NewEdits {
		run.reconsider(ctx)
	}
	run.spread(ctx)
	return run.outcome()
}

// decide asks one copy after the other until each edit has been decided.
//
// A copy that takes long is not waited for: the next one decides as well. Two
// copies that accept an edit make the same revision of it, because revision
// ids are deterministic. A refusal counts only when every copy that was asked
// has answered: one that is slow may accept, and a client that was told of a
// conflict must not find its edit later. So hedging makes acceptances fast and
// leaves refusals as slow as the slowest copy that was asked. What it may cost
// is a branch, when another edit of the same document reaches the slow copy
// first: both edits were accepted, then, and both are kept.
func (r *writing) decide(ctx context.Context) {
	r.askNext(ctx, r.undecided())
	if r.pending > 0 {
		r.await(ctx)
	}
	for i := range r.by {
		if r.by[i] < 0 {
			r.counts[i].Fail()
		}
	}
}

// await takes the answers of other nodes until every edit is settled.
func (r *writing) await(ctx context.Context) {
	hedge := time.NewTimer(r.db.c.writes.patience(writePatience))
	defer hedge.Stop()
	for r.pending > 0 && r.unsettled() {
		select {
		case a := <-r.inbox:
			r.pending--
			if again := r.take(a); len(again) > 0 {
				r.insist(ctx, a.at, again)
			}
			if open := r.unasked(); len(open) > 0 {
				r.askNext(ctx, open)
			}
		case <-hedge.C:
			if open := r.undecided(); len(open) > 0 && r.askNext(ctx, open) {
				hedge.Reset(r.db.c.writes.patience(writePatience))
			}
		case <-ctx.Done():
			r.abandon(ctx.Err())
			return
		}
	}
}

// askNext has the next copy that can be reached decide some edits; false when
// there is none left. A copy of this node answers at once, and the one after
// it is asked for what it could not decide.
func (r *writing) askNext(ctx context.Context, open []int) bool {
	for len(open) > 0 && r.next < len(r.stretch.copies) {
		at := r.next
		r.next++
		t := r.stretch.copies[at]
		rep := r.db.c.replica(t.node)
		if rep == nil {
			r.absent(open, errAway(t.node))
			continue
		}
		req := r.asSent(open)
		req.Copy = t.name
		for _, i := range open {
			r.waits[i]++
		}
		if t.node == r.db.c.node {
			r.askHere(ctx, rep, at, req, open)
			open = r.unasked()
			continue
		}
		return r.askThere(ctx, rep, at, req, open)
	}
	return false
}

// askHere has the copy of this node decide.
func (r *writing) askHere(ctx context.Context, rep replica, at int, req shard.UpdateRequest, open []int) {
	answers, err := rep.Update(ctx, req)
	if again := r.take(decided{at: at, chosen: open, answers: answers, err: err}); len(again) > 0 {
		r.insist(ctx, at, again)
	}
}

// askThere has a copy of another node decide; false when this node is closing.
func (r *writing) askThere(ctx context.Context, rep replica, at int, req shard.UpdateRequest, open []int) bool {
	ok := r.db.c.spawn(func() {
		begun := time.Now()
		answers, err := rep.Update(ctx, req)
		if err == nil {
			r.db.c.writes.note(time.Since(begun))
		}
		r.inbox <- decided{at: at, chosen: open, answers: answers, err: err}
	})
	if !ok {
		r.take(decided{at: at, chosen: open, err: errClosed()})
		return false
	}
	r.pending++
	return true
}

// insist has a copy decide edits once more that it took for late ones, because
// it has purged the revisions that they make: the client still waits for them.
// Without the question, a copy that was slow could do what another one had
// done in its place and bring back what has been purged since.
func (r *writing) insist(ctx context.Context, at int, open []int) {
	rep := r.db.c.replica(r.stretch.copies[at].node)
	if rep == nil {
		r.absent(open, errAway(r.stretch.copies[at].node))
		return
	}
	req := r.asSent(open)
	req.Copy, req.Insist = r.stretch.copies[at].name, true
	for _, i := range open {
		r.waits[i]++
	}
	if r.stretch.copies[at].node == r.db.c.node {
		r.askHere(ctx, rep, at, req, open)
	} else {
		r.askThere(ctx, rep, at, req, open)
	}
}

// errAway says that a node was not even asked, so that it surely has done
// nothing.
func errAway(node string) error {
	return fault.Newf(fault.Unavailable, "Node %s cannot be reached.", node)
}

// absent counts a copy out that was not asked.
func (r *writing) absent(open []int, err error) {
	for _, i := range open {
		r.counts[i].Decide(err)
	}
}

// take notes what a copy has decided, and returns the edits that nobody has
// decided and that the copy holds for late ones.
func (r *writing) take(a decided) (late []int) {
	if fault.Is(a.err, fault.NoCopy) || fault.Is(a.err, fault.MissingStub) {
		r.db.noteLack(a.err)
		// It has done nothing. A copy that is behind does not know what a stub
		// stands for; another one may.
		r.whole = quorum.Telling(r.whole, a.err)
		a.err = fault.Wrap(fault.Unavailable, "The copy cannot take the edits.", a.err)
	}
	for k, i := range a.chosen {
		r.waits[i]--
		err := a.err
		if err == nil {
			err = a.answers[k].Err
		}
		switch {
		case fault.Is(err, fault.Purged) && r.by[i] < 0:
			late = append(late, i)
		case err == nil && r.by[i] < 0:
			r.results[i], r.by[i] = a.answers[k], a.at
			r.counts[i].Decide(nil)
		case err == nil || r.by[i] >= 0:
			// It gets what the first one has decided, which for an edit that
			// it has accepted, too, is what it has already.
		default:
			if quorum.Usable(err) {
				r.refused[i] = a.at
			}
			r.counts[i].Decide(err)
		}
	}
	return late
}

// abandon counts the copies that are still deciding as silent: the time is
// over.
func (r *writing) abandon(err error) {
	for i, n := range r.waits {
		if n > 0 && r.by[i] < 0 {
			r.counts[i].Decide(err)
		}
	}
}

// undecided returns the edits that no copy has accepted or refused.
func (r *writing) undecided() []int {
	return r.those(func(i int) bool { return r.by[i] < 0 && r.refused[i] < 0 })
}

// unasked returns those of them that no copy is deciding.
func (r *writing) unasked() []int {
	return r.those(func(i int) bool { return r.by[i] < 0 && r.refused[i] < 0 && r.waits[i] == 0 })
}

func (r *writing) those(which func(i int) bool) []int {
	var out []int
	for i := range r.by {
		if which(i) {
			if out == nil {
				out = make([]int, 0, len(r.by)-i)
			}
			out = append(out, i)
		}
	}
	return out
}

// unsettled reports whether some edit still waits for a copy that decides it.
func (r *writing) unsettled() bool {
	for i := range r.by {
		if r.by[i] < 0 && r.waits[i] > 0 {
			return true
		}
	}
	return false
}

// asSent returns the request with the chosen edits as they came. The answers
// are in the order of chosen.
func (r *writing) asSent(chosen []int) shard.UpdateRequest {
	req := r.req
	if len(chosen) < len(r.req.Edits) || !slices.IsSorted(chosen) {
		req.Edits = make([]shard.Edit, len(chosen))
		for k, i := range chosen {
			req.Edits[k] = r.req.Edits[i]
		}
	}
	return req
}

// outcome turns the counts into answers. An edit whose copies were still at
// work when the request ended has been accepted by one.
func (r *writing) outcome() ([]shard.EditResult, error) {
	failed := 0
	var cause, doubt error
	for i := range r.results {
		o, err := r.counts[i].Outcome()
		r.results[i].Err = r.db.phrase(err)
		r.results[i].Accepted = o == quorum.Accepted || (o == quorum.Pending && r.by[i] >= 0)
		if o == quorum.Failed {
			failed, cause = failed+1, err
		}
		doubt = quorum.Telling(doubt, r.counts[i].Doubt())
	}
	switch {
	case failed < len(r.results):
		return r.results, nil
	case r.whole != nil && doubt != nil: // another copy may have done what one refused as a whole
		return nil, doubt
	case r.whole != nil:
		return nil, r.whole
	default:
		return nil, cause
	}
}

package cluster

import (
	"context"
	"errors"
	"math"
	"slices"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/fault"
)

// quorumWrite is the edits of one range on their way to several copies. As a
// hedged request it is the copies' deciding on them.
type quorumWrite struct {
	fanout.HedgedRequest[shard.UpdateRequest, []shard.EditResult]
	db      *DB
	req     shard.UpdateRequest // Edits: as the client sent them
	counts  []quorum.Write
	results []shard.EditResult
	by      []int   // the copy that decided each edit; -1: none
	refused []int   // the copy that refused it; -1: none
	waits   []int   // copies that are deciding it
	asked   [][]int // by copy: the edits that it is deciding
	late    []int   // edits that a copy takes for late ones, to be asked once more
	whole   error   // a refusal of the whole request by a copy, or that it has no such copy
	joining []fanout.Target
}

// decidedBefore stands in quorumWrite.by for a copy of an older map.
const decidedBefore = math.MaxInt

// writeCopies has the first live copy decide and the others follow. It returns
// as soon as every edit is settled; a copy that is slower than that still gets
// its edits, on a goroutine that the coordinator waits for when it closes. Edits with
// a revision in decided were decided already, by a copy of an older map: all copies follow.
func (d *DB) writeCopies(ctx context.Context, s *route, w int, req shard.UpdateRequest, decided []shard.EditResult) (out written) {
	n := len(req.Edits)
	ctx, cancel := d.c.deadline(ctx)
	defer cancel()
	marks := make([]int, 3*n)
	run := &quorumWrite{
		HedgedRequest: fanout.HedgedRequest[shard.UpdateRequest, []shard.EditResult]{
			Database: d.Asking(), Copies: s.copies, Latency: &d.c.latency.writes, Patience: d.c.latency.writes.Patience(fanout.WritePatience),
			Call: decideAt,
		},
		db: d, req: req, counts: make([]quorum.Write, n), results: make([]shard.EditResult, n),
		by: marks[:n:n], refused: marks[n : 2*n : 2*n], waits: marks[2*n:],
		asked: make([][]int, len(s.copies)), joining: s.joining,
	}
	run.Decider = run
	for i := range n {
		run.counts[i] = quorum.NewWrite(len(s.copies), len(s.joining), w)
		run.by[i], run.refused[i] = -1, -1
		if decided != nil && !decided[i].Rev.IsZero() {
			run.results[i], run.by[i] = decided[i], decidedBefore
		}
	}
	run.decide(ctx)
	if req.NewEdits {
		run.reconsider(ctx)
	}
	run.spread(ctx)
	out.open = run.brief()
	out.results, out.err = run.outcome()
	return out
}

// brief returns the edits that fewer copies have than should, and that may be brought to
// others: those that were decided, and those that no copy can have done unseen. That a
// copy may have done another edit of the request does not matter.
func (r *quorumWrite) brief() []int {
	return r.those(func(i int) bool {
		o, err := r.counts[i].Outcome()
		if r.by[i] >= 0 {
			return o == quorum.Pending || o == quorum.Accepted || o == quorum.Failed && !errors.As(err, new(purgedAway))
		}
		return o == quorum.Failed && r.counts[i].Doubt() == nil
	})
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
func (r *quorumWrite) decide(ctx context.Context) {
	if len(r.undecided()) == 0 {
		return
	}
	if err := r.Run(ctx, 1); err != nil {
		r.abandon(err)
	}
	for i := range r.by {
		if r.by[i] < 0 {
			r.counts[i].Fail()
		}
	}
}

// Request implements fanout.Decider. A copy is asked for the edits that nobody is
// deciding, or when that takes too long, for all that are undecided.
//
// Edits that it took for late ones, because it has purged the revisions that
// they make, it has to decide once more and insist on: the client still waits
// for them. Without asking again, a copy that was slow could do what another one
// had done in its place and bring back what has been purged since.
func (r *quorumWrite) Request(at int, t fanout.Target) (req shard.UpdateRequest, ok bool) {
	open, insist := r.late, len(r.late) > 0
	r.late = nil
	if !insist {
		open = r.open()
	}
	if len(open) == 0 {
		return req, false
	}
	req = r.asSent(open)
	req.Copy, req.Insist = t.Name, insist
	r.asked[at] = open
	for _, i := range open {
		r.waits[i]++
	}
	return req, true
}

// decideAt has a copy decide edits.
func decideAt(ctx context.Context, rep replica.Copy, req shard.UpdateRequest) ([]shard.EditResult, error) {
	return replica.Update.On(ctx, rep, req)
}

// errAway says that a node was not even asked, so that it surely has done
// nothing.
func errAway(node string) error {
	return fault.Newf(fault.Unavailable, "Node %s cannot be reached.", node)
}

// Take implements fanout.Decider: it notes what a copy has decided.
func (r *quorumWrite) Take(a fanout.Answer[[]shard.EditResult], _ int) quorum.Step {
	if a.Unreached {
		r.absent(a.At)
	} else {
		r.decided(a)
	}
	switch {
	case len(r.late) > 0:
		return quorum.Again
	case r.Left() && len(r.unasked()) > 0:
		return quorum.Another
	case !r.unsettled():
		return quorum.Enough
	default:
		return quorum.Wait
	}
}

// absent counts a copy out that was not asked.
func (r *quorumWrite) absent(at int) {
	open := r.late
	if r.late = nil; len(open) == 0 {
		open = r.open()
	}
	for _, i := range open {
		r.counts[i].Decide(errAway(r.Copies[at].Node))
	}
}

// decided takes in what a copy said to the edits that it was to decide.
func (r *quorumWrite) decided(a fanout.Answer[[]shard.EditResult]) {
	if fault.Is(a.Err, fault.NoCopy) || fault.Is(a.Err, fault.MissingStub) {
		// It has done nothing. A copy that is behind does not know what a stub
		// stands for; another one may.
		r.whole = quorum.Telling(r.whole, a.Err)
		a.Err = fault.Wrap(fault.Unavailable, "The copy cannot take the edits.", a.Err)
	}
	for k, i := range r.asked[a.At] {
		r.waits[i]--
		err := a.Err
		if err == nil {
			err = a.Got[k].Err
		}
		switch {
		case fault.Is(err, fault.Purged) && r.by[i] < 0:
			r.late = append(r.late, i)
		case err == nil && r.by[i] < 0:
			r.results[i], r.by[i] = a.Got[k], a.At
			r.counts[i].Decide(nil)
		case err == nil || r.by[i] >= 0:
			// It gets what the first one has decided, which for an edit that
			// it has accepted, too, is what it has already.
		default:
			if quorum.Usable(err) {
				r.refused[i] = a.At
			}
			r.counts[i].Decide(err)
		}
	}
}

// abandon counts the copies that are still deciding as silent: the time is
// over.
func (r *quorumWrite) abandon(err error) {
	for i, n := range r.waits {
		if n > 0 && r.by[i] < 0 {
			r.counts[i].Decide(err)
		}
	}
}

// open returns the edits that the next copy is to decide.
func (r *quorumWrite) open() []int {
	if open := r.unasked(); len(open) > 0 {
		return open
	}
	return r.undecided()
}

// undecided returns the edits that no copy has accepted or refused.
func (r *quorumWrite) undecided() []int {
	return r.those(func(i int) bool { return r.by[i] < 0 && r.refused[i] < 0 })
}

// unasked returns those of them that no copy is deciding.
func (r *quorumWrite) unasked() []int {
	return r.those(func(i int) bool { return r.by[i] < 0 && r.refused[i] < 0 && r.waits[i] == 0 })
}

func (r *quorumWrite) those(which func(i int) bool) []int {
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
func (r *quorumWrite) unsettled() bool {
	for i := range r.by {
		if r.by[i] < 0 && r.waits[i] > 0 {
			return true
		}
	}
	return false
}

// asSent returns the request with the chosen edits as they came. The answers
// are in the order of chosen.
func (r *quorumWrite) asSent(chosen []int) shard.UpdateRequest {
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
func (r *quorumWrite) outcome() ([]shard.EditResult, error) {
	failed := 0
	var cause, doubt error
	for i := range r.results {
		o, err := r.counts[i].Outcome()
		if o == quorum.Refused && fault.Is(err, fault.Conflict) && fault.Is(r.whole, fault.MissingStub) {
			err = r.whole // by a copy that knows the revision of which the other one is behind
		}
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

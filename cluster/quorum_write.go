package cluster

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/cluster/routing"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// quorumWrite is the edits of one range on their way to several copies: one copy decides
// on them, then the others follow. Each of the two is a hedged request.
type quorumWrite struct {
	db      *replicaSet
	route   *routing.Route
	req     shard.DecideRequest // Edits: as the client sent them
	edits   []editState
	results []shard.EditResult
	whole   error // a refusal of the whole request by a copy, or that it has no such copy

	deciding  fanout.HedgedRequest[shard.DecideRequest, []shard.EditResult]
	late      []int // edits that a copy takes for late ones, to be asked once more
	following fanout.HedgedRequest[followRequest, []error]
	taken     []int        // the edits that the last copy is to take over,
	revs      []shard.Edit // and as what
	asked     [][]int      // by copy: the edits that it is deciding, then those that it is to take over
}

// editState is the state of one edit so far.
type editState struct {
	quorum.Write
	by      int // the copy that decided it; -1: none
	refused int // the copy that refused it; -1: none
	waits   int // copies that are deciding it
}

// decidedBefore stands in editState.by for a copy of an older map.
const decidedBefore = math.MaxInt

// writeCopies has the first live copy decide and the others follow. It returns
// as soon as every edit is settled; a copy that is slower than that still gets
// its edits, on a goroutine that the coordinator waits for when it closes. Edits with
// a revision in decided were decided already, by a copy of an older map: all copies follow.
//
// What is tried again: a copy that takes an edit for a late one has to insist, and the next
// copy decides when one gives no usable answer or is slow (Take says both); a copy that
// refused decides once more when it was behind (reconsider); what is Open at the end is
// done by a newer map (write).
func (d *docWrites) writeCopies(ctx context.Context, s *routing.Route, w int, req shard.DecideRequest, decided []shard.EditResult) written {
	ctx, cancel := d.deadline(ctx)
	defer cancel()
	n := len(req.Edits)
	r := &quorumWrite{
		db: d.replicaSet, route: s, req: req, edits: make([]editState, n), results: make([]shard.EditResult, n),
		asked: make([][]int, len(s.Copies)+len(s.Joining)),
	}
	for i := range r.edits {
		r.edits[i] = editState{Write: quorum.NewWrite(len(s.Copies), len(s.Joining), w), by: -1, refused: -1}
		if s.PerNode != nil {
			r.edits[i].OnNodes(s.PerNode)
		}
		if decided != nil && !decided[i].Rev.IsZero() {
			r.results[i], r.edits[i].by = decided[i], decidedBefore
		}
	}
	r.decide(ctx)
	if req.NewEdits {
		r.reconsider(ctx)
	}
	r.spread(ctx)
	return r.outcome()
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
	writes := &r.db.latency.writes
	r.deciding = fanout.HedgedRequest[shard.DecideRequest, []shard.EditResult]{
		Database: r.db.Asking(), Copies: r.route.Copies, Decider: r, Call: decideAt,
		Latency: writes, Patience: writes.Patience(fanout.WritePatience),
	}
	late := r.deciding.Run(ctx, 1)
	for i := range r.edits {
		if e := &r.edits[i]; e.by < 0 {
			if late != nil && e.waits > 0 {
				e.Decide(0, late) // the copies that are still deciding are silent
			}
			e.Fail()
		}
	}
}

// Request implements fanout.Decider. A copy is asked for the edits that no copy is deciding, or
// when that takes too long, for all that are undecided.
//
// Edits that the copy took for late ones, because it has purged the revisions that they make, it
// has to decide once more and insist on: the client still waits for them. Without asking again, a
// copy that was slow could do what another one had done in its place and bring back what has been
// purged since.
func (r *quorumWrite) Request(at int, t ring.Replica) (req shard.DecideRequest, ok bool) {
	open, insist := r.late, len(r.late) > 0
	r.late = nil
	if !insist {
		if open = r.unasked(); len(open) == 0 {
			open = r.undecided()
		}
	}
	if len(open) == 0 {
		return req, false
	}
	req = r.asSent(open)
	req.Copy, req.Insist = t.Name, insist
	r.asked[at] = open
	for _, i := range open {
		r.edits[i].waits++
	}
	return req, true
}

// decideAt has a copy decide edits.
func decideAt(ctx context.Context, rep replica.Copy, req shard.DecideRequest) ([]shard.EditResult, error) {
	return replica.Decide.On(ctx, rep, req)
}

// Take implements fanout.Decider: it notes what a copy has decided.
func (r *quorumWrite) Take(a fanout.Answer[[]shard.EditResult], _ int) quorum.Step {
	switch {
	case a.Unreached: // so that it surely has done nothing
		a.Err = fault.Newf(fault.Unavailable, "Node %s cannot be reached.", r.route.Copies[a.At].Node)
	case fault.Is(a.Err, fault.NoCopy), fault.Is(a.Err, fault.MissingStub):
		// It has done nothing. A copy that is behind does not know what a stub
		// stands for; another one may.
		r.whole = quorum.Telling(r.whole, a.Err)
		a.Err = fault.Wrap(fault.Unavailable, "The copy cannot take the edits.", a.Err)
	}
	for k, i := range r.asked[a.At] {
		err := a.Err
		if err == nil {
			err = a.Got[k].Err
		}
		e := &r.edits[i]
		e.waits--
		switch {
		case e.by >= 0:
			// It gets the decision of the first copy, which it has already if it has accepted the
			// edit, too.
		case fault.Is(err, fault.Purged):
			r.late = append(r.late, i)
		case err == nil:
			r.results[i], e.by = a.Got[k], a.At
			e.Decide(r.route.NodeOf(a.At), nil)
		default:
			if quorum.Usable(err) {
				e.refused = a.At
			}
			e.Decide(r.route.NodeOf(a.At), err)
		}
	}
	switch {
	case len(r.late) > 0:
		return quorum.Again
	case r.deciding.Left() && len(r.unasked()) > 0:
		return quorum.Another
	case r.unsettled():
		return quorum.Wait
	default:
		return quorum.Enough
	}
}

// undecided returns the edits that no copy has accepted or refused.
func (r *quorumWrite) undecided() []int {
	return r.those(func(i int) bool { return r.edits[i].by < 0 && r.edits[i].refused < 0 })
}

// unasked returns those of them that no copy is deciding.
func (r *quorumWrite) unasked() []int {
	return r.those(func(i int) bool { return r.edits[i].by < 0 && r.edits[i].refused < 0 && r.edits[i].waits == 0 })
}

func (r *quorumWrite) those(which func(i int) bool) []int {
	var out []int
	for i := range r.edits {
		if which(i) {
			if out == nil {
				out = make([]int, 0, len(r.edits)-i)
			}
			out = append(out, i)
		}
	}
	return out
}

// unsettled reports whether some edit still waits for a copy that decides it.
func (r *quorumWrite) unsettled() bool {
	return slices.ContainsFunc(r.edits, func(e editState) bool { return e.by < 0 && e.waits > 0 })
}

// asSent returns the request with the chosen edits as they came. The answers
// are in the order of chosen.
func (r *quorumWrite) asSent(chosen []int) shard.DecideRequest {
	req := r.req
	if len(chosen) < len(r.req.Edits) || !slices.IsSorted(chosen) {
		req.Edits = pick(r.req.Edits, chosen)
	}
	return req
}

// reconsider looks at the edits that were refused as conflicts: the copy that
// refused may be behind (repair.Siblings.Refresh). Then it decides again, once.
func (r *quorumWrite) reconsider(ctx context.Context) {
	for at := range r.route.Copies {
		refused := r.those(func(i int) bool {
			return r.edits[i].refused == at && !isLocal(r.req.Edits[i].ID) && fault.Is(r.edits[i].Refusal(), fault.Conflict)
		})
		if len(refused) > 0 && len(r.route.Copies) > 1 {
			r.reconsiderAt(ctx, at, refused)
		}
	}
}

// followRequest is the revisions that a copy is to take over.
type followRequest struct {
	shard.FollowRequest
	run *quorumWrite
	at  int // the copy
}

// followers are the copies of a quorumWrite in its second part, as what decides on it.
type followers quorumWrite

// spread sends the decided edits to all other copies at once, also to copies that were asked to
// decide and did not answer, and counts until every edit is settled. A copy that does not take the
// edits is noted for repair.
//
// The copy of this node is waited for even when enough others have the edits:
// listings and feeds read one copy, this one, and a client that has written
// through this node would miss its own writes there.
func (r *quorumWrite) spread(ctx context.Context) {
	for i := range r.edits {
		if e := &r.edits[i]; e.by >= 0 { // what the decision took does not count any more
			e.Write = e.Restart()
			if e.by != decidedBefore {
				e.Decide(r.route.NodeOf(e.by), nil)
			}
		}
	}
	f := &r.following
	f.Database, f.Copies, f.Decider, f.Call, f.Detached = r.db.Asking(), r.route.All(), (*followers)(r), follow, true
	f.Start(ctx, len(f.Copies))
	if r.req.Delayed || !r.settled() && f.Wait(ctx) != nil {
		return
	}
	if f.OwnPending() {
		f.Limit = fanout.MostPatience
		_ = f.Wait(ctx) // it was settled before
	}
}

// Request implements fanout.Decider.
func (f *followers) Request(at int, t ring.Replica) (req followRequest, ok bool) {
	r := (*quorumWrite)(f)
	chosen := r.those(func(i int) bool { return r.edits[i].by >= 0 && r.edits[i].by != at })
	if r.asked[at] = chosen; len(chosen) == 0 {
		return req, false
	}
	if !slices.Equal(chosen, r.taken) {
		r.taken, r.revs = chosen, r.asDecided(chosen)
	}
	return followRequest{shard.FollowRequest{Copy: t.Name, Edits: r.revs, RevsLimit: r.req.Limits.Revs}, r, at}, true
}

// Take implements fanout.Decider: it counts which of them have the edits.
func (f *followers) Take(a fanout.Answer[[]error], _ int) quorum.Step {
	r, t := (*quorumWrite)(f), f.following.Copies[a.At]
	if a.Err != nil { // it was not asked
		r.db.missed(t)
	}
	for k, i := range r.asked[a.At] {
		err := a.Err
		if err == nil {
			err = a.Got[k]
		}
		if err != nil && errors.As(err, new(purgedAway)) {
			r.edits[i].Withdraw(err)
			continue
		}
		r.db.noteRefusal(err)
		r.edits[i].Follow(r.route.NodeOf(a.At), t.State == ring.StateJoining, err)
	}
	if !r.settled() || f.following.OwnPending() && f.following.Limit > 0 {
		return quorum.Wait
	}
	return quorum.Enough
}

// asDecided returns the chosen edits as another copy takes them over: revisions to merge,
// without a check and without asking validation functions again.
func (r *quorumWrite) asDecided(chosen []int) []shard.Edit {
	edits := make([]shard.Edit, len(chosen))
	for k, i := range chosen {
		e := r.req.Edits[i]
		if !isLocal(e.ID) { // those are counted from the client's revision on every copy
			if path := r.results[i].Path; len(path.IDs) >= len(e.Path.IDs) {
				e.Path = path
			} // else the limit of revisions has cut off what joins it to what the other copies have
		}
		e.Atts = settleAttachments(e.Atts, &r.results[i], r.req.NewEdits)
		edits[k] = e
	}
	return edits
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

// follow has a copy merge revisions and notes it for repair when it does not
// take them all. A stub that it cannot resolve, because it is behind, refuses
// only the edit it belongs to. The error is that of the edits.
func follow(ctx context.Context, rep replica.Copy, req followRequest) ([]error, error) {
	r, t := req.run, req.run.following.Copies[req.at]
	refused, err := replica.Follow.On(ctx, rep, req.FollowRequest)
	if err != nil {
		refused = make([]error, len(req.Edits))
	}
	failed := err != nil
	for i := range refused {
		if refused[i] == nil {
			refused[i] = err
		}
		if fault.Is(err, fault.MissingStub) && len(req.Edits) > 1 {
			one := req.FollowRequest
			one.Edits = req.Edits[i : i+1]
			var alone []error
			if alone, refused[i] = replica.Follow.On(ctx, rep, one); refused[i] == nil {
				refused[i] = alone[0]
			}
		}
		failed = failed || refused[i] != nil
	}
	if failed {
		r.db.missed(t)
		r.settlePurged(ctx, t, r.asked[req.at], refused)
	}
	return refused, nil
}

func (r *quorumWrite) settled() bool {
	return !slices.ContainsFunc(r.edits, func(e editState) bool {
		o, _ := e.Outcome()
		return o == quorum.Pending
	})
}

// outcome turns the counts into answers. An edit whose copies were still at
// work when the request ended has been accepted by one.
func (r *quorumWrite) outcome() (out written) {
	failed := 0
	var cause, doubt error
	for i := range r.results {
		e := &r.edits[i]
		if e.Open() {
			out.open = append(out.open, i)
		}
		o, err := e.Outcome()
		if o == quorum.Refused && fault.Is(err, fault.Conflict) && fault.Is(r.whole, fault.MissingStub) {
			err = r.whole // by a copy that knows the revision of which the other one is behind
		}
		r.results[i].Err = r.db.phrase(err)
		r.results[i].Accepted = o == quorum.Accepted || (o == quorum.Pending && e.by >= 0)
		if o == quorum.Failed {
			failed, cause = failed+1, err
		}
		doubt = quorum.Telling(doubt, e.Doubt())
	}
	switch {
	case failed < len(r.results):
		out.results = r.results
	case r.whole != nil && doubt != nil: // another copy may have done what one refused as a whole
		out.err = doubt
	case r.whole != nil:
		out.err = r.whole
	default:
		out.err = cause
	}
	return out
}

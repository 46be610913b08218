package cluster

import (
	"context"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/cluster/routing"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// quorumRead asks several copies for the winner of a document: the first one,
// that of this node if there is one, for all of it, the others only which
// revision that is. Ancestors are asked for when the answers differ.
//
// Result selection: quorum.Read. Contexts: that of copies that have not answered
// ends with the read; Close of the coordinator waits for them.
type quorumRead struct {
	fanout.HedgedRequest[shard.OpenRequest, *shard.Doc]
	db     *docReads
	req    shard.OpenRequest
	q      *quorum.Read
	full   *shard.Doc // of the copy that was asked for all of it
	fullAt int        // -1: none
	heard  []int      // copies that gave a usable answer
	noCopy bool       // a node has said that it does not hold its copy
}

// openCopies returns the winner of a document as the newest of r copies knows
// it. Copies that turn out to be behind are repaired in the background; when
// revisions of different copies do not descend from each other, the first copy
// gets all of them before it is read again.
func (d *docReads) openCopies(ctx context.Context, s *routing.Route, r reading, req shard.OpenRequest) (got *shard.Doc, err error) {
	d.byNewestMapOf(ctx, s, req.ID, func(d *DB, s *routing.Route) (done bool) {
		before := d.stale.Load()
		got, err = d.openByMap(ctx, s, r, req)
		return d.stale.Load() == before
	})
	return got, err
}

// reading tells how many copies have to answer, and whether fewer are an error when others cannot.
type reading struct {
	copies int // below 1: more than half
	strict bool
}

// openByMap is openCopies for the copies of one map.
func (d *docReads) openByMap(ctx context.Context, s *routing.Route, r reading, req shard.OpenRequest) (*shard.Doc, error) {
	ctx, cancel := d.deadline(ctx)
	defer cancel()
	if r.copies < 1 {
		r.copies = fanout.Majority(s.Near)
	}
	o := &quorumRead{
		HedgedRequest: fanout.HedgedRequest[shard.OpenRequest, *shard.Doc]{
			Database: d.Asking(), Copies: s.Near, Latency: &d.latency.reads, Patience: d.latency.reads.Patience(fanout.ReadPatience),
			Call: func(ctx context.Context, rep replica.Copy, req shard.OpenRequest) (*shard.Doc, error) {
				return replica.Open.On(ctx, rep, req)
			},
		},
		db: d, req: req, q: quorum.NewRead(len(s.Near), r.copies), fullAt: -1, heard: make([]int, 0, len(s.Near)),
	}
	o.Decider = o
	got, err := o.open(ctx)
	if r.strict && len(o.heard) < r.copies && (err == nil || isNotFound(err)) {
		err = fault.New(fault.Unavailable, "Too few copies of the document can answer.")
	}
	if err != nil {
		return nil, d.phrase(err)
	}
	if got.Deleted && !req.AllowDeleted {
		return nil, errDeleted()
	}
	return got, nil
}

func (o *quorumRead) open(ctx context.Context) (*shard.Doc, error) {
	if o.Copies[0].Node == o.db.node {
		o.fullAt = 0 // asked last of the first ones, so that the others are at work
	}
	verdict, from, err := o.heardUntil(o.Run(ctx, o.q.Need()))
	if verdict == quorum.Diverged {
		verdict, from, err = o.relate(ctx)
	}
	switch verdict {
	case quorum.Agreed:
		return o.whole(ctx, from)
	case quorum.Newest:
		o.db.repairs.later(ctx, o.db.replicaSet, o.req.ID, o.targets())
		return o.whole(ctx, from)
	case quorum.Diverged:
		return o.merge(ctx, from)
	case quorum.Unread:
		if o.noCopy && (fault.Is(err, fault.NodeDown) || fault.Is(err, fault.Unavailable)) { // no copy said more than that
			return nil, errDropped()
		}
		return nil, err
	default:
		return nil, err
	}
}

// heardUntil gives what was heard. When the time was over before there was a
// verdict, late says so: one copy that has answered is enough, then.
func (o *quorumRead) heardUntil(late error) (quorum.Verdict, int, error) {
	if late != nil && len(o.heard) == 0 {
		return quorum.Unread, 0, late
	}
	for {
		verdict, from, err := o.q.Verdict()
		if verdict != quorum.Asking {
			return verdict, from, err
		}
		o.q.Refused(late)
	}
}

// Request implements fanout.Decider. Tombstones always count, because a deletion may
// be what is newer.
func (o *quorumRead) Request(at int, t ring.Replica) (shard.OpenRequest, bool) {
	if o.fullAt < 0 {
		o.fullAt = at
	}
	if at == o.fullAt {
		return o.wholeRequest(t), true
	}
	return shard.OpenRequest{Copy: t.Name, ID: o.req.ID, HeadOnly: true, RevOnly: true, AllowDeleted: true}, true
}

// Take implements fanout.Decider.
func (o *quorumRead) Take(a fanout.Answer[*shard.Doc], pending int) quorum.Step {
	if a.Unreached && a.At == o.fullAt {
		o.fullAt = -1 // the next one is asked for all of it
	}
	switch {
	case a.Err == nil:
		o.heard = append(o.heard, a.At)
		if a.At == o.fullAt {
			o.full = a.Got
		}
		only := doc.Path{Start: a.Got.Rev.Pos, IDs: []string{a.Got.Rev.ID}}
		o.q.Found(a.At, quorum.Answer{Path: only, Deleted: a.Got.Deleted})
		return o.q.Step(pending)
	case fault.Is(a.Err, fault.NoCopy):
		o.noCopy = true
		a.Err = fanout.NodeDown(o.Copies[a.At].Node) // says nothing about the document
	case isNotFound(a.Err):
		o.heard = append(o.heard, a.At)
	}
	o.q.Refused(a.Err)
	return o.q.Step(pending)
}

func (o *quorumRead) wholeRequest(t ring.Replica) shard.OpenRequest {
	req := o.req
	req.Copy, req.AllowDeleted = t.Name, true
	return req
}

// relate asks the copies that gave an answer how their revisions descend from
// each other.
func (o *quorumRead) relate(ctx context.Context) (quorum.Verdict, int, error) {
	answers := make([]fanout.Answer[*shard.Doc], len(o.heard))
	_ = fanout.Each(len(o.heard), func(i int) error { // failures are counted below
		t := o.Copies[o.heard[i]]
		answers[i] = fanout.Answer[*shard.Doc]{At: o.heard[i], Err: fanout.NodeDown(t.Node)}
		if rep := o.db.replica(t); !rep.Away() {
			answers[i].Got, answers[i].Err = replica.Open.On(ctx, rep, shard.OpenRequest{
				Copy: t.Name, ID: o.req.ID, Revs: true, HeadOnly: true, AllowDeleted: true,
			})
		}
		return nil
	})
	q := quorum.NewRead(len(o.heard), len(o.heard))
	for _, a := range answers {
		if a.Err != nil {
			o.db.noteRefusal(a.Err)
			q.Refused(a.Err)
			continue
		}
		q.Found(a.At, quorum.Answer{Path: a.Got.Revisions, Deleted: a.Got.Deleted})
		if a.At == o.fullAt && o.full != nil && o.full.Rev != a.Got.Rev {
			o.fullAt = -1 // there is a newer one by now
		}
	}
	return q.Verdict()
}

// whole returns what was chosen with everything that was asked for. Should the
// copy that has it be gone by now, the best that is at hand must do.
func (o *quorumRead) whole(ctx context.Context, from int) (*shard.Doc, error) {
	if from == o.fullAt {
		return o.full, nil
	}
	t := o.Copies[from]
	rep := o.db.replica(t)
	err := fanout.NodeDown(t.Node)
	if !rep.Away() {
		var got *shard.Doc
		if got, err = replica.Open.On(ctx, rep, o.wholeRequest(t)); err == nil {
			return got, nil
		}
		o.db.noteRefusal(err)
	}
	if o.full != nil {
		return o.full, nil
	}
	return nil, err
}

// merge brings everything that the other copies have to the one that was asked
// for all of it, and reads there again: its tree then tells the winner. When
// that does not work, the winner among the answers is the answer.
func (o *quorumRead) merge(ctx context.Context, from int) (*shard.Doc, error) {
	defer o.db.repairs.later(ctx, o.db.replicaSet, o.req.ID, o.targets())
	to := o.heard[0]
	if o.full != nil && o.fullAt >= 0 {
		to = o.fullAt
	}
	into := o.Copies[to]
	for _, at := range o.heard {
		if at == to {
			continue
		}
		if err := o.db.copyDocs(ctx, o.Copies[at], into, []string{o.req.ID}); err != nil {
			o.db.noteRefusal(err)
			return o.whole(ctx, from)
		}
	}
	rep := o.db.replica(into)
	if rep.Away() {
		return o.whole(ctx, from)
	}
	got, err := replica.Open.On(ctx, rep, o.wholeRequest(into))
	if err != nil {
		o.db.noteRefusal(err)
		return o.whole(ctx, from)
	}
	return got, nil
}

// targets returns the copies that gave a usable answer.
func (o *quorumRead) targets() []ring.Replica {
	out := make([]ring.Replica, len(o.heard))
	for i, at := range o.heard {
		out[i] = o.Copies[at]
	}
	return out
}

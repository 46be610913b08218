package cluster

import (
	"context"
	"time"

	"divan/cluster/quorum"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// opening asks several copies for the winner of a document: the first one, that
// of this node if there is one, for all of it, the others only which revision
// that is. Ancestors are asked for when the answers differ.
//
// Result selection: quorum.Read. Contexts: when the verdict is known, the
// context of copies that have not answered ends; Close of the coordinator
// waits for them.
type opening struct {
	db      *DB
	stretch *stretch
	req     shard.OpenRequest
	q       *quorum.Read
	full    *shard.Doc // of the copy that was asked for all of it
	fullAt  int
	heard   []int // copies that gave a usable answer
	lacking bool  // a node has said that it does not hold its copy
	next    int   // in stretch.near: the copy that is asked next
	pending int
	inbox   chan opened
}

// opened is what one copy answered.
type opened struct {
	at  int // in stretch.near
	doc *shard.Doc
	err error
}

// openCopies returns the winner of a document as the newest of r copies knows
// it. Copies that turn out to be behind are repaired in the background; when
// revisions of different copies do not descend from each other, the first copy
// gets all of them before it is read again.
func (d *DB) openCopies(ctx context.Context, s *stretch, r int, req shard.OpenRequest) (*shard.Doc, error) {
	ctx, cancel := d.c.deadline(ctx)
	defer cancel()
	o := &opening{
		db: d, stretch: s, req: req, q: quorum.NewRead(len(s.near), r),
		fullAt: -1, heard: make([]int, 0, len(s.near)), inbox: make(chan opened, len(s.near)),
	}
	got, err := o.run(ctx)
	if err != nil {
		return nil, d.phrase(err)
	}
	if got.Deleted && !req.AllowDeleted {
		return nil, errDeleted()
	}
	return got, nil
}

func (o *opening) run(ctx context.Context) (*shard.Doc, error) {
	own := o.stretch.near[0].node == o.db.c.node
	if own {
		o.next, o.fullAt = 1, 0
	}
	for wanted := o.q.Need(); wanted > o.started(own); {
		if !o.launch(ctx) {
			break
		}
	}
	if own {
		t := o.stretch.near[0]
		got, err := o.db.c.local.Open(ctx, o.request(0, t))
		o.take(ctx, opened{at: 0, doc: got, err: err})
	}
	verdict, from, err := o.await(ctx)
	if verdict == quorum.Diverged {
		verdict, from, err = o.relate(ctx)
	}
	switch verdict {
	case quorum.Agreed:
		return o.whole(ctx, from)
	case quorum.Newest:
		o.db.repairLater(ctx, o.req.ID, o.targets())
		return o.whole(ctx, from)
	case quorum.Diverged:
		return o.merge(ctx, from)
	case quorum.Unread:
		if o.lacking && (fault.Is(err, fault.NodeDown) || fault.Is(err, fault.Unavailable)) { // nobody said more than that
			return nil, errDropped()
		}
		return nil, err
	default:
		return nil, err
	}
}

// started returns how many copies are asked already.
func (o *opening) started(own bool) int {
	if own {
		return o.pending + 1
	}
	return o.pending
}

// await takes answers until there is a verdict, and asks further copies when
// one fails or is slow.
func (o *opening) await(ctx context.Context) (quorum.Verdict, int, error) {
	verdict, from, err := o.q.Verdict()
	if verdict != quorum.Asking {
		return verdict, from, err
	}
	patience := o.db.c.reads.patience(readPatience)
	hedge := time.NewTimer(patience)
	defer hedge.Stop()
	for verdict == quorum.Asking {
		select {
		case a := <-o.inbox:
			o.pending--
			o.take(ctx, a)
		case <-hedge.C:
			if o.launch(ctx) {
				hedge.Reset(patience)
			}
		case <-ctx.Done():
			return o.late(ctx.Err())
		}
		verdict, from, err = o.q.Verdict()
	}
	return verdict, from, err
}

// late gives what was heard until the time was over, which is something as
// long as one copy has answered.
func (o *opening) late(err error) (quorum.Verdict, int, error) {
	if len(o.heard) == 0 {
		return quorum.Unread, 0, err
	}
	for verdict, from, why := o.q.Verdict(); ; verdict, from, why = o.q.Verdict() {
		if verdict != quorum.Asking {
			return verdict, from, why
		}
		o.q.Refused(err)
	}
}

// launch asks the next copy that can be reached; false when there is none.
func (o *opening) launch(ctx context.Context) bool {
	for o.next < len(o.stretch.near) {
		at := o.next
		o.next++
		t := o.stretch.near[at]
		rep := o.db.c.replica(t.node)
		if rep == nil {
			o.q.Refused(errNodeDown(t.node))
			continue
		}
		if o.fullAt < 0 {
			o.fullAt = at
		}
		req := o.request(at, t)
		ok := o.db.c.spawn(func() {
			begun := time.Now()
			got, err := rep.Open(ctx, req)
			if err == nil {
				o.db.c.reads.note(time.Since(begun))
			}
			o.inbox <- opened{at: at, doc: got, err: err}
		})
		if !ok {
			o.q.Refused(errClosed())
			return false
		}
		o.pending++
		return true
	}
	return false
}

// request returns what a copy is asked: tombstones always, because a deletion
// may be what is newer.
func (o *opening) request(at int, t target) shard.OpenRequest {
	if at == o.fullAt {
		return o.wholeRequest(t)
	}
	return shard.OpenRequest{Copy: t.name, ID: o.req.ID, HeadOnly: true, RevOnly: true, AllowDeleted: true}
}

func (o *opening) wholeRequest(t target) shard.OpenRequest {
	req := o.req
	req.Copy, req.AllowDeleted = t.name, true
	return req
}

// relate asks the copies that gave an answer how their revisions descend from
// each other.
func (o *opening) relate(ctx context.Context) (quorum.Verdict, int, error) {
	answers := make([]opened, len(o.heard))
	_ = each(len(o.heard), func(i int) error { // failures are counted below
		t := o.stretch.near[o.heard[i]]
		answers[i] = opened{at: o.heard[i], err: errNodeDown(t.node)}
		if rep := o.db.c.replica(t.node); rep != nil {
			answers[i].doc, answers[i].err = rep.Open(ctx, shard.OpenRequest{
				Copy: t.name, ID: o.req.ID, Revs: true, HeadOnly: true, AllowDeleted: true,
			})
		}
		return nil
	})
	q := quorum.NewRead(len(o.heard), len(o.heard))
	for _, a := range answers {
		if a.err != nil {
			q.Refused(a.err)
			continue
		}
		q.Found(a.at, quorum.Answer{Path: a.doc.Revisions, Deleted: a.doc.Deleted})
		if a.at == o.fullAt && o.full != nil && o.full.Rev != a.doc.Rev {
			o.fullAt = -1 // there is a newer one by now
		}
	}
	return q.Verdict()
}

// take counts an answer. When a copy cannot answer, another one is asked at
// once.
func (o *opening) take(ctx context.Context, a opened) {
	switch {
	case a.err == nil:
		o.heard = append(o.heard, a.at)
		if a.at == o.fullAt {
			o.full = a.doc
		}
		only := doc.Path{Start: a.doc.Rev.Pos, IDs: []string{a.doc.Rev.ID}}
		o.q.Found(a.at, quorum.Answer{Path: only, Deleted: a.doc.Deleted})
		return
	case fault.Is(a.err, fault.NoCopy):
		o.db.noteLack(a.err)
		o.lacking = true
		a.err = errNodeDown(o.stretch.near[a.at].node) // says nothing about the document
	case isNotFound(a.err):
		o.heard = append(o.heard, a.at)
	}
	o.q.Refused(a.err)
	if o.q.Need() > o.pending {
		o.launch(ctx)
	}
}

// whole returns what was chosen with everything that was asked for. Should the
// copy that has it be gone by now, the best that is at hand must do.
func (o *opening) whole(ctx context.Context, from int) (*shard.Doc, error) {
	if from == o.fullAt {
		return o.full, nil
	}
	t := o.stretch.near[from]
	rep := o.db.c.replica(t.node)
	err := errNodeDown(t.node)
	if rep != nil {
		var got *shard.Doc
		if got, err = rep.Open(ctx, o.wholeRequest(t)); err == nil {
			return got, nil
		}
	}
	if o.full != nil {
		return o.full, nil
	}
	return nil, err
}

// merge brings everything that the other copies have to the one that was asked
// for all of it, and reads there again: its tree then tells the winner. When
// that does not work, the winner among the answers is the answer.
func (o *opening) merge(ctx context.Context, from int) (*shard.Doc, error) {
	defer o.db.repairLater(ctx, o.req.ID, o.targets())
	to := o.heard[0]
	if o.full != nil && o.fullAt >= 0 {
		to = o.fullAt
	}
	into := o.stretch.near[to]
	for _, at := range o.heard {
		if at == to {
			continue
		}
		if err := o.db.copyDocs(ctx, o.stretch.near[at], into, []string{o.req.ID}); err != nil {
			return o.whole(ctx, from)
		}
	}
	rep := o.db.c.replica(into.node)
	if rep == nil {
		return o.whole(ctx, from)
	}
	got, err := rep.Open(ctx, o.wholeRequest(into))
	if err != nil {
		return o.whole(ctx, from)
	}
	return got, nil
}

// targets returns the copies that gave a usable answer.
func (o *opening) targets() []target {
	out := make([]target, len(o.heard))
	for i, at := range o.heard {
		out[i] = o.stretch.near[at]
	}
	return out
}

package cluster

import (
	"context"

	"divan/cluster/quorum"
	"divan/cluster/sequence"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
)

// ChangeRow is one row of a feed. Its sequence is that of the feed when the
// row is current: Feed.AppendSeq.
type ChangeRow struct {
	ID      string
	Leaves  []doc.Rev  // the winner first; one entry unless ChangesQuery.AllLeaves
	Deleted bool       // the winner is a tombstone
	Doc     *shard.Doc // the winner of now; nil unless asked for
}

// Feed is a changes feed over all shards, each in the order of its sequence,
// interleaved:
//
//	for {
//		for feed.Next() { use(feed.Row(), feed.AppendSeq(buf)) }
//		if feed.Err() != nil || normal { break }
//		if feed.Wait(ctx) != nil { break }
//	}
//	feed.Close()
//
// It belongs to one goroutine.
type Feed struct {
	db    *replicaSet
	ctx   context.Context // of the request
	query ChangesQuery
	parts []*changePart
	at    sequence.Vector // where a client that has seen all rows up to now goes on
	row   ChangeRow
	turn  int // the part whose rows come next
	quota int // rows it may give before the next part's turn
	chunk int // rows a part may give in one turn
	left  int // rows until the limit; negative: none
	err   error

	wake  chan struct{} // a watched copy has moved, or a node has come or gone
	epoch uint64        // of presence, when the copies began to be watched
	asked *question     // where the copies are; nil: not asked, or answered
}

// Changes opens a feed from q.Since on, or backwards from the end. Ranges
// whose copy is not the one that the sequence names start again from where
// both are known to be the same, in doubt from the beginning: a feed may
// repeat changes, but never misses one (semantics.md section 7.2). The same
// holds when a copy breaks off and the feed goes on from another one.
func (d *DB) Changes(ctx context.Context, q ChangesQuery) (*Feed, error) {
	picked, err := d.covered()
	if err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = 1 // api.md section 20, row 15
	}
	f := &Feed{db: d.replicaSet, ctx: ctx, query: q, left: q.Limit, chunk: 64, parts: make([]*changePart, len(picked))}
	if q.Limit > 0 {
		f.chunk = min(max(q.Limit/len(picked), 1), f.chunk)
	}
	f.quota = f.chunk
	err = d.onEach(picked, func(i int) error {
		f.parts[i] = f.newPart(i, f.choices(ctx, picked[i]), quorum.Share(0, q.Limit, len(picked)))
		return f.parts[i].Start()
	})
	if err != nil {
		f.Close()
		return nil, d.explain(ctx, err)
	}
	marks := make([]sequence.Mark, len(picked))
	for i, p := range f.parts {
		marks[i] = p.Head.mark
	}
	f.at = sequence.NewVector(marks)
	return f, nil
}

// filter returns the filter as a copy of that range needs it: it holds none of
// the other documents that a list names.
func (f *Feed) filter(r ring.Range) shard.Filter {
	filter := f.query.Filter
	if filter.Kind != shard.FilterDocIDs || len(f.parts) == 1 {
		return filter
	}
	var mine []string
	for _, id := range filter.IDs {
		if r.Contains(ring.Hash(id, f.db.meta.Partitioned)) {
			mine = append(mine, id)
		}
	}
	filter.IDs = mine
	return filter
}

// Next moves to the next row. It returns false when the rows that are there
// now are exhausted, at the limit, and after an error.
func (f *Feed) Next() bool {
	if f.err != nil || f.left == 0 {
		return false
	}
	for idle := 0; idle < len(f.parts); {
		p := f.parts[f.turn]
		if p.row < len(p.rows) && f.quota > 0 {
			f.give(p)
			return true
		}
		if p.row == len(p.rows) && p.Reading() {
			if f.err = f.db.explain(f.ctx, f.refill(p)); f.err != nil && !f.openAgain() {
				return false
			}
			continue
		}
		idle++
		if p.row < len(p.rows) {
			idle = 0 // only its turn is over
		}
		f.turn, f.quota = (f.turn+1)%len(f.parts), f.chunk
	}
	return false
}

// give makes a part's next row the current one.
func (f *Feed) give(p *changePart) {
	c := &p.rows[p.row]
	p.row++
	p.shown = true
	f.quota--
	if f.left > 0 {
		f.left--
	}
	f.row = ChangeRow{ID: c.ID, Leaves: c.Leaves, Deleted: c.Deleted, Doc: c.Doc}
	f.at.Set(f.turn, c.Seq)
}

// refill reads the next batch of a part whose rows have all been given out. It
// may be empty, when a filter lets nothing through.
func (f *Feed) refill(p *changePart) error {
	if p.rows != nil {
		f.looked(p.upto)
	}
	b, err := p.Next()
	if err != nil {
		return err
	}
	if b == nil { // all read, and the last batch was given out
		p.rest()
		return nil
	}
	p.row, p.rows, p.upto = 0, b.Rows, b.Upto
	if len(b.Rows) > 0 {
		return nil
	}
	f.looked(b.Upto)
	return nil
}

// looked notes up to where the part whose turn it is has been looked at. Backwards that
// shows only when a function is the filter, as in CouchDB.
func (f *Feed) looked(upto uint64) {
	if kind := f.query.Filter.Kind; !f.query.Descending || upto > 0 && (kind == shard.FilterFunction || kind == shard.FilterView) {
		f.at.Set(f.turn, upto)
	}
}

// Row returns the current row. It and what it refers to are valid until the
// next call of Next.
func (f *Feed) Row() *ChangeRow { return &f.row }

// AppendSeq appends the sequence of the current row; after Next has returned
// false, LastSeq.
func (f *Feed) AppendSeq(dst []byte) []byte { return f.at.AppendTo(dst) }

// LastSeq returns the sequence to go on from: that of the last row when the
// limit ended the feed, otherwise that of everything that was looked at, rows
// that a filter held back included.
func (f *Feed) LastSeq() string { return string(f.at.AppendTo(nil)) }

// Err returns what ended the feed early: fault.NotFound "Database does not
// exist." when the database was deleted meanwhile, an error of the context, or
// one of a copy. It is nil at the end of what there is.
func (f *Feed) Err() error { return f.err }

// Pending returns how many changes come after the current row in the direction
// of the feed, filters not applied. Those of a copy of another node that cannot
// tell any more are left out; when a copy of this node fails it is 0, with the
// reason in Err.
func (f *Feed) Pending() uint64 {
	var sum uint64
	for i, p := range f.parts {
		if !p.Reading() {
			continue
		}
		after := f.at.Marks[i].Seq
		if f.query.Descending && !p.shown {
			after++ // the newest change itself is still to come
		}
		n, err := p.Head.pending(after)
		if err != nil && p.target().Node != f.db.node {
			continue
		}
		if err != nil {
			f.err = f.db.phrase(err) // of a copy of this node
			return 0
		}
		sum += n
	}
	return sum
}

// Close ends the feed and waits for its goroutines. It must be called.
func (f *Feed) Close() {
	f.unask()
	for _, p := range f.parts {
		if p != nil {
			p.Close()
			p.unwatch()
		}
	}
	if f.wake != nil {
		f.db.here.Forget(f.wake)
	}
}

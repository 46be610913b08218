package shard

import (
	"context"
	"fmt"

	"divan/storage"
	"divan/storage/doc"
)

// scanLimit is how many changes one call of ChangeStream.Next looks at before
// it returns, even without a row: the sender of the feed can then send a
// heartbeat while a filter rejects everything (semantics.md section 7.3).
const scanLimit = 4096

// slowLimit is the same for functions in JavaScript.
const slowLimit = 512

// ChangeBatch holds rows of a ChangeStream. It is meant to be used again:
// everything in it but strings is valid until the next call of Next with it.
type ChangeBatch struct {
	Rows []Change
	// Upto is the sequence up to which (descending: down to which) changes
	// have been looked at. A feed whose rows were all given out may go on from
	// here.
	Upto uint64

	arena  arena
	leaves []doc.Rev
	ends   []int // where each row's leaves end
}

// ChangeStream lists changes in the order they happened, all of one snapshot. It
// is used by one goroutine and holds that snapshot until it is closed.
type ChangeStream struct {
	Seq  uint64   // of the snapshot: the last sequence there is
	UUID [16]byte // of the copy
	// Origins are the copies that this one continues, the newest first.
	Origins []storage.Origin

	ctx    context.Context // of the request
	req    ChangesRequest
	snap   *storage.Snapshot
	from   changeSource
	filter changeFilter
	some   bool // from stands on a change that has not been looked at
	init   bool // from has been positioned

	waiting candidates
}

// changeSource is where changes come from: the sequence keyspace, or a list of
// documents looked up by id.
type changeSource interface {
	First() bool
	Next() bool
	Change() *storage.Change
	Err() error
	Close() error
}

// Changes opens a feed of what is there now; close it. To go on when there is
// more, Watch the copy first. Errors of the filter (an unknown operator in a
// selector) are *fault.Error.
func (l *Local) Changes(ctx context.Context, req ChangesRequest) (*ChangeStream, error) {
	filter, err := l.filters.changeFilter(ctx, &req)
	if err != nil {
		return nil, err
	}
	snap, uuid, err := l.states.snapshot(ctx, req.Copy)
	if err != nil {
		return nil, err
	}
	s := &ChangeStream{ctx: ctx, req: req, snap: snap, filter: filter, Seq: snap.Seq(), UUID: uuid, Origins: snap.Origins()}
	if s.from, err = s.source(); err != nil {
		_ = snap.Close()
		return nil, fmt.Errorf("changes of %s: %w", req.Copy, err)
	}
	return s, nil
}

// Next fills the batch with the next rows that pass the filter. more is false
// when there are none after it. A batch may be empty although there is more.
// It fails when the request's context ends.
func (s *ChangeStream) Next(b *ChangeBatch) (more bool, err error) {
	size := batchSize(s.req.Limit)
	b.reset(size+matchDocs, s.req.IncludeDocs) // what passes a matcher may be more than is wanted
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	if !s.init {
		s.init = true
		s.some = s.from.First()
	}
	if err := s.fill(b, size); err != nil {
		return false, err
	}
	if err := s.from.Err(); err != nil {
		return false, fmt.Errorf("changes of %s: %w", s.req.Copy, err)
	}
	b.finish()
	if !s.some && !s.req.Desc {
		b.Upto = max(s.Seq, s.req.Since) // everything has been looked at
	}
	return s.some, nil
}

// fill looks at changes until the batch is full, or many have been looked at.
func (s *ChangeStream) fill(b *ChangeBatch, size int) error {
	most, matched := scanLimit, s.filter.match != nil
	if s.filter.kind == FilterFunction || s.filter.kind == FilterView {
		most = slowLimit
	}
	s.waiting.reset()
	for looked := 0; s.some && looked < most && len(b.Rows) < size && !b.arena.full(); s.some = s.from.Next() {
		if looked%askContext == 0 { // a filter may take long
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		c := s.from.Change()
		looked++
		b.Upto = c.Seq
		var err error
		switch {
		case !matched:
			err = s.take(b, c)
		default:
			if err = s.waiting.add(s, c); err == nil && s.waiting.full() {
				err = s.matchChanges(b)
			}
		}
		if err != nil {
			return err
		}
	}
	return s.matchChanges(b)
}

// askContext is after how many changes it is asked whether the request's context
// has ended.
const askContext = 64

// take adds a change to the batch when the filter lets it through.
func (s *ChangeStream) take(b *ChangeBatch, c *storage.Change) error {
	from := len(b.leaves)
	s.filter.pass(s, b, c)
	return s.add(b, c, from)
}

// add makes a row of a change whose leaves to be shown are in the batch from there on;
// none when there are none.
func (s *ChangeStream) add(b *ChangeBatch, c *storage.Change, from int) error {
	if len(b.leaves) == from {
		return nil
	}
	b.ends = append(b.ends, len(b.leaves))
	b.arena.addID(c.ID)
	b.Rows = append(b.Rows, Change{Seq: c.Seq, Deleted: c.Deleted})
	if !s.req.IncludeDocs {
		return nil
	}
	return s.addDoc(b, c)
}

// addDoc adds the winner of the row added last.
func (s *ChangeStream) addDoc(b *ChangeBatch, c *storage.Change) error {
	id := string(c.ID)
	var h doc.Head
	ok, err := s.snap.Head(id, &h)
	if err == nil && !ok {
		err = errNoStoredContent()
	}
	if err != nil {
		return fmt.Errorf("read document %q: %w", id, err)
	}
	d, err := b.arena.addDoc(s.snap, id, h.Winner, h.Deleted, h.Inline)
	if err != nil {
		return err
	}
	b.Rows[len(b.Rows)-1].Doc = d
	if s.req.Conflicts {
		d.Conflicts = lost(c, false)
	}
	if s.req.DeletedConflicts {
		d.DeletedConflicts = lost(c, true)
	}
	return nil
}

// lost returns the leaves of a change that lost, best first: the deleted ones, or
// those that are not.
func lost(c *storage.Change, deleted bool) (revs []doc.Rev) {
	for i := range c.Leaves {
		if i > 0 && c.Leaves[i].Deleted == deleted {
			revs = append(revs, c.Leaves[i].Rev)
		}
	}
	return revs
}

func (b *ChangeBatch) reset(size int, docs bool) {
	b.arena.reset(size, docs)
	b.Rows, b.leaves, b.ends = b.Rows[:0], b.leaves[:0], b.ends[:0]
}

// finish gives the rows their ids and leaves and the documents their bodies.
func (b *ChangeBatch) finish() {
	b.arena.setBodies()
	from := 0
	b.arena.eachID(func(i int, id string) {
		r := &b.Rows[i]
		r.ID = id
		r.Leaves = b.leaves[from:b.ends[i]:b.ends[i]]
		from = b.ends[i]
		if r.Doc != nil {
			r.Doc.ID = id
		}
	})
}

// Pending counts the changes of this snapshot that come after a sequence in the
// direction of the feed, filters not applied.
func (s *ChangeStream) Pending(after uint64) (uint64, error) {
	n, err := s.pending(after)
	if err != nil {
		return 0, fmt.Errorf("changes of %s: %w", s.req.Copy, err)
	}
	return n, nil
}

func (s *ChangeStream) pending(after uint64) (uint64, error) {
	if !s.req.Desc {
		return s.snap.CountChanges(max(after, s.req.Since))
	}
	if after <= s.req.Since {
		return 0, nil
	}
	all, err := s.snap.CountChanges(s.req.Since)
	if err != nil {
		return 0, err
	}
	shown, err := s.snap.CountChanges(after - 1)
	return all - shown, err
}

// Close releases the snapshot. It may be called more than once.
func (s *ChangeStream) Close() {
	if s.from != nil {
		_ = s.from.Close() // read only: nothing to lose
		_ = s.snap.Close()
		s.from = nil
	}
}

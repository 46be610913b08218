package view

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"divan/shard"
	"divan/shard/index"
	"divan/storage"
	"divan/storage/fault"
)

// Stream is the answer to a query: rows of one snapshot of the index. It is used
// by one goroutine and holds the snapshot until it is closed.
type Stream struct {
	Head Head

	ctx   context.Context // of the request
	req   Request
	views *Views
	use   *index.Use
	snap  *storage.IndexSnapshot
	t     *tree
	sum   *summer

	prefix []byte // the partition, in front of sort keys
	spans  []span // what is left of the ranges, first the one being read
	number int    // of the range being read
	moved  bool   // the iterator stands where the reading goes on
	some   bool   // and there is a row, or a group
	groups grouping
	ahead  *ahead // nil: no rows with documents were asked for yet
}

// ahead is, with IncludeDocs, the batch whose rows are given out as their documents are read:
// those are bounded by their bytes.
type ahead struct {
	batch Batch
	given int // rows of batch that were given out
}

// span is a range of keys behind the tree; hi nil is the end.
type span struct{ lo, hi []byte }

// open reads the head and prepares reading.
func (s *Stream) open(x *viewIndex, at place) error {
	known, err := x.summaryOf(s.snap)
	if err != nil {
		return err
	}
	st := &known.st
	reducer := -1
	if s.req.Reduce {
		reducer = at.reducer
	}
	height := -1
	if st.blocks {
		height = st.trees[at.tree].height
	}
	s.sum = newSummer(s.snap, s.t, reducer, height)
	if old, ok := s.views.scratch.Get().(*scratch); ok {
		s.sum.scratch = old
	}
	if s.sum.tops, err = x.topsOf(known, s.snap, s.t); err != nil {
		return err
	}
	if s.req.Reduce {
		s.sum.function = s.t.reducers[reducer].bind(s.ctx)
	}
	whole := span{}
	if x.def.Partitioned && s.req.Partition != "" {
		s.prefix = appendEscaped(nil, s.req.Partition)
		whole = span{s.prefix, keyEnd(s.prefix)}
	}
	s.spans = append(s.spans, whole)
	if len(s.req.Ranges) > 0 {
		s.spans = s.spans[:0]
		for i := range s.req.Ranges {
			s.spans = append(s.spans, s.span(&s.req.Ranges[i], whole))
		}
	}
	s.Head = Head{Seq: known.pos.Seq, UUID: s.use.UUID(), Total: st.trees[at.tree].rows}
	if s.req.Reduce {
		return s.openGroups(at.tree, st)
	}
	if s.req.Uncounted {
		return nil
	}
	return s.count(whole)
}

// count fills in the numbers of the head.
func (s *Stream) count(whole span) (err error) {
	if s.prefix != nil {
		if s.Head.Total, err = s.sum.count(whole.lo, whole.hi); err != nil {
			return err
		}
	}
	switch first := s.spans[0]; {
	case !s.req.Desc && bytes.Equal(first.lo, whole.lo):
	case !s.req.Desc:
		s.Head.Offset, err = s.sum.count(whole.lo, first.lo)
		if s.sum.reached != nil && bytes.Equal(s.sum.reached, first.lo) {
			s.moved, s.some = true, s.sum.some && before(s.sum.rowIt.Key()[treePrefix:], first.hi)
		}
	case first.hi != nil && !bytes.Equal(first.hi, whole.hi):
		s.Head.Offset, err = s.sum.count(first.hi, whole.hi)
	}
	return err
}

// span turns a range of a request into keys.
func (s *Stream) span(r *KeyRange, whole span) span {
	out := whole
	if r.Lo.Key != nil {
		out.lo = s.bound(&r.Lo, r.Lo.Exclusive)
	}
	if r.Hi.Key != nil {
		out.hi = s.bound(&r.Hi, !r.Hi.Exclusive)
	}
	return out
}

// bound returns the key before the rows of a bound, or behind them.
func (s *Stream) bound(b *Bound, behind bool) []byte {
	key := append(append([]byte{}, s.prefix...), b.Key...)
	if b.HasID {
		key = appendEscaped(key, b.ID)
	}
	if behind {
		key = append(key, beyond)
	}
	return key
}

// Sizes of batches, as those of package shard.
const (
	batchRows  = 1024
	batchBytes = 1 << 20
)

// Next fills the batch with the next rows. more is false when there are none
// after it; the batch may then still hold rows. It fails when the context of the
// query ends.
func (s *Stream) Next(b *Batch) (more bool, err error) {
	if s.req.IncludeDocs {
		return s.nextWithDocs(b)
	}
	return s.fill(b)
}

func (s *Stream) fill(b *Batch) (more bool, err error) {
	b.reset()
	size := batchRows
	if s.req.Limit > 0 && s.req.Limit < size {
		size = s.req.Limit
	}
	if b.Rows == nil {
		b.reserve(s.expected(size))
	}
	for len(s.spans) > 0 && len(b.Rows) < size && len(b.bytes) < batchBytes && err == nil {
		if err = s.ctx.Err(); err != nil {
			break
		}
		if s.req.Reduce {
			err = s.group(b)
		} else {
			err = s.rows(b, size)
		}
	}
	if err != nil {
		if fault.Is(err, fault.Corruption) {
			s.use.Discard(err)
		}
		return false, fmt.Errorf("read view: %w", err)
	}
	b.finish()
	if s.req.Desc && !s.req.Reduce {
		b.straighten()
	}
	return len(s.spans) > 0, nil
}

// expected is how many of so many rows there will most likely be; 0: not known.
func (s *Stream) expected(rows int) int {
	switch {
	case s.groups.entries != nil && len(s.req.Ranges) == 0:
		return min(rows, s.groups.count)
	case rows < batchRows:
		return rows
	}
	return 0
}

// rows adds rows of the first range that is left.
func (s *Stream) rows(b *Batch, size int) error {
	if err := s.sum.openRows(); err != nil {
		return err
	}
	it, r := s.sum.rowIt, s.spans[0]
	if !s.moved {
		s.start(r)
	}
	for s.some {
		key := it.Key()[treePrefix:]
		if len(b.Rows) >= size || len(b.bytes) >= batchBytes {
			// Rows of one key and document stay together: who goes on elsewhere
			// behind the last row would miss the rest.
			if len(b.Rows) == 0 || !b.sameRow(key, s.prefix) {
				break
			}
		}
		value, err := it.Value()
		if err != nil {
			return err
		}
		row, err := decodeRowValue(value)
		if err != nil || row.sort > len(key) || row.sort < len(s.prefix) {
			return errRow()
		}
		b.add(s.number, key[len(s.prefix):row.sort], row.key, row.value)
		if b.ids, _, s.some = cutEscaped(b.ids, key[row.sort:]); !s.some {
			return errRow()
		}
		if s.req.Desc {
			s.some = it.Prev()
		} else {
			s.some = it.Next() && before(it.Key()[treePrefix:], r.hi)
		}
	}
	if !s.some {
		s.endRange()
	}
	return it.Err()
}

// start moves to the first row of a range.
func (s *Stream) start(r span) {
	it := s.sum.rowIt
	lo := append(append([]byte{}, s.sum.rowPrefix...), r.lo...)
	hi := keyEnd(s.sum.rowPrefix)
	if r.hi != nil {
		hi = append(append([]byte{}, s.sum.rowPrefix...), r.hi...)
	}
	s.moved = true
	if bytes.Compare(lo, hi) >= 0 {
		s.some = false
		return
	}
	it.SetBounds(lo, hi)
	if s.req.Desc {
		s.some = it.Last()
	} else {
		s.some = it.First()
	}
}

// endRange goes on with the next range.
func (s *Stream) endRange() {
	s.spans = s.spans[1:]
	s.number++
	s.moved = false
}

// nextWithDocs is Next for rows with their documents: as many as the documents of a batch
// leave space for.
func (s *Stream) nextWithDocs(b *Batch) (more bool, err error) {
	if s.ahead == nil {
		s.ahead = &ahead{}
	}
	all := &s.ahead.batch
	if s.ahead.given == len(all.Rows) {
		// Rows that were given out keep their texts: Next may be called for another batch meanwhile.
		s.ahead.given, *all = 0, Batch{}
		if _, err := s.fill(all); err != nil {
			return false, err
		}
	}
	rows := all.Rows[s.ahead.given:]
	var ids []string
	var of []together
	for i := 0; i < len(rows); {
		g := togetherFrom(rows, i)
		if i = g.end; g.first < g.end {
			ids, of = append(ids, rows[g.first].ID), append(of, g)
		}
	}
	docs, err := s.views.shards.DocsByID(s.ctx, s.req.Copy, ids, shard.ByIDOptions{
		IncludeDocs: true, Conflicts: s.req.Conflicts, MaxBytes: batchBytes,
	})
	if err != nil {
		return false, fmt.Errorf("documents of a view: %w", err)
	}
	for i := range docs {
		of[i].give(rows, docs[i].Doc)
	}
	n := len(rows)
	if len(docs) < len(of) {
		n = of[len(docs)].start
	}
	b.reset()
	b.Rows = append(b.Rows, rows[:n]...)
	clear(rows[:n])
	s.ahead.given += n
	return n < len(rows) || len(s.spans) > 0, nil
}

// Close gives the snapshot and the index back. It may be called more than once.
func (s *Stream) Close() {
	if s.snap != nil {
		s.closeSnapshot()
		s.use.Release()
	}
}

func (s *Stream) closeSnapshot() {
	if s.sum != nil {
		_ = s.sum.Close() // read only: nothing to lose
		s.sum.release(&s.views.scratch)
	}
	if s.groups.entries != nil {
		_ = s.groups.entries.Close() // likewise
	}
	s.snap.Close()
	s.snap = nil
}

// Batch holds rows of a Stream. It is meant to be used again: everything in it
// is valid until the next call of Next with it. Clone what outlives it.
type Batch struct {
	Rows  []Row
	bytes []byte
	parts []part
	ids   []byte
}

// part is where a row's texts end in Batch.bytes, one behind the other, and its
// id in Batch.ids.
type part struct{ sort, key, value, id int }

func (b *Batch) reset() {
	b.Rows, b.bytes, b.parts, b.ids = b.Rows[:0], b.bytes[:0], b.parts[:0], b.ids[:0]
}

// reserve makes space for so many rows.
func (b *Batch) reserve(rows int) {
	if rows == 0 {
		return
	}
	const text = 80 // bytes of a row
	b.Rows, b.parts = make([]Row, 0, rows), make([]part, 0, rows)
	b.bytes, b.ids = make([]byte, 0, text*rows), make([]byte, 0, text/4*rows)
}

// add adds a row; its id is all that is added to ids until the next row.
func (b *Batch) add(number int, sort, key, value []byte) {
	b.endID()
	p := part{}
	b.bytes = append(b.bytes, sort...)
	p.sort = len(b.bytes)
	b.bytes = append(b.bytes, key...)
	p.key = len(b.bytes)
	b.bytes = append(b.bytes, value...)
	p.value = len(b.bytes)
	b.parts = append(b.parts, p)
	b.Rows = append(b.Rows, Row{Range: int32(number)})
}

// sameRow reports whether a row has the key and the document of the last one.
func (b *Batch) sameRow(key, prefix []byte) bool {
	n := len(b.parts) - 1
	from, id := 0, 0
	if n > 0 {
		from, id = b.parts[n-1].value, b.parts[n-1].id
	}
	sort := b.bytes[from:b.parts[n].sort]
	rest, same := bytes.CutPrefix(key[len(prefix):], sort)
	if !same {
		return false
	}
	var buf [64]byte
	other, _, ok := cutEscaped(buf[:0], rest)
	return ok && bytes.Equal(other, b.ids[id:])
}

// straighten turns rows of one key and document round that were read backwards: they
// come in the order of their values in both directions, as in CouchDB. Such rows are
// never in two batches.
func (b *Batch) straighten() {
	for from, to := 0, 1; from < len(b.Rows); from, to = to, to+1 {
		first := &b.Rows[from]
		for to < len(b.Rows) && b.Rows[to].sameAs(first) {
			to++
		}
		slices.Reverse(b.Rows[from:to])
	}
}

// endID ends the id of the last row.
func (b *Batch) endID() {
	if n := len(b.parts); n > 0 {
		b.parts[n-1].id = len(b.ids)
	}
}

// finish gives the rows their texts.
func (b *Batch) finish() {
	b.endID()
	all, from, id := string(b.ids), 0, 0
	for i := range b.Rows {
		r, p := &b.Rows[i], b.parts[i]
		r.Sort, r.Key, r.Value = b.bytes[from:p.sort:p.sort], b.bytes[p.sort:p.key:p.key], b.bytes[p.key:p.value:p.value]
		r.ID = all[id:p.id]
		from, id = p.value, p.id
	}
}

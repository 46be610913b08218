package find

import (
	"bytes"

	"divan/shard"
	"divan/shard/query"
	"divan/shard/view"
)

// index reads the rows of an index, and the documents that they stand for.
type index struct {
	*Stream
	shards *shard.Local
	from   *view.Stream
	batch  view.Batch
	cover  *query.Cover // nil: documents are read

	rows []view.Row  // of the batch, that have not been looked at
	docs []shard.Row // the documents of the first of them
	next int         // how many documents are read at a time
	more bool        // batches follow
	text []byte
}

// Documents are read some at a time: few at first, as a few rows may be all that is
// wanted.
const (
	firstDocs = 32
	mostDocs  = 512
)

func (s *Stream) openIndex(shards *shard.Local, views *view.Views) (source, error) {
	x := s.req.Index
	req := view.Request{
		Copy: s.req.Copy, Signature: x.Signature, Definition: x.Definition, View: x.View, Design: x.Design,
		Update: x.Update, Partition: x.Partition, Desc: s.req.Desc, Ranges: s.keyRanges(), Uncounted: true,
	}
	i := &index{Stream: s, shards: shards, more: true, next: firstDocs}
	if s.req.Hint > 0 {
		req.Limit = max(s.req.Hint, firstDocs)
		i.next = min(s.req.Hint, mostDocs)
	}
	if len(x.Covering) > 0 {
		var err error
		if i.cover, err = query.NewCover(x.Covering); err != nil {
			return nil, err
		}
	}
	var err error
	if i.from, err = views.Query(s.ctx, req); err != nil {
		return nil, err
	}
	s.Seq = i.from.Head.Seq
	return i, nil
}

func (i *index) close() { i.from.Close() }

// keyRanges makes ranges of a view of those that are left behind the position where
// the reading goes on.
func (s *Stream) keyRanges() []view.KeyRange {
	after := s.req.After
	var out []view.KeyRange
	for _, r := range s.req.Ranges {
		one := view.KeyRange{Lo: view.Bound{Key: r.Lo}, Hi: view.Bound{Key: r.Hi}}
		if after != nil {
			at := view.Bound{Key: after.Sort, ID: after.ID, HasID: true, Exclusive: true}
			switch {
			case s.req.Desc && bytes.Compare(after.Sort, r.Lo) < 0, !s.req.Desc && r.Hi != nil && bytes.Compare(after.Sort, r.Hi) > 0:
				continue
			case s.req.Desc && (r.Hi == nil || bytes.Compare(after.Sort, r.Hi) <= 0):
				one.Hi = at
			case !s.req.Desc && bytes.Compare(after.Sort, r.Lo) >= 0:
				one.Lo = at
			}
		}
		out = append(out, one)
	}
	if len(out) == 0 { // nothing is left: what is read ends before it begins
		out = []view.KeyRange{{Lo: view.Bound{Key: []byte{0xff}}, Hi: view.Bound{Key: []byte{0}}}}
	}
	return out
}

// fill implements source.
func (i *index) fill(b *Batch) (more bool, err error) {
	for !b.full() {
		if len(i.rows) == 0 {
			if !i.more {
				return false, nil
			}
			if i.more, err = i.from.Next(&i.batch); err != nil {
				return false, err
			}
			i.rows, i.docs = i.batch.Rows, nil
			continue
		}
		if i.cover == nil && !i.req.Plain && len(i.docs) == 0 {
			if err := i.read(); err != nil {
				return false, err
			}
		}
		r := &i.rows[0]
		b.lastSort, b.lastID = append(b.lastSort[:0], r.Sort...), append(b.lastID[:0], r.ID...)
		b.Moved = true
		enough, err := i.look(b, r)
		if err != nil {
			return false, err
		}
		i.rows = i.rows[1:]
		if len(i.docs) > 0 {
			i.docs = i.docs[1:]
		}
		if enough {
			return false, nil
		}
	}
	return true, nil
}

// read reads the documents of the next rows, fewer when they are large.
func (i *index) read() error {
	ids := make([]string, min(len(i.rows), i.next))
	for n := range ids {
		ids[n] = i.rows[n].ID
	}
	i.next = min(2*i.next, mostDocs)
	var err error
	i.docs, err = i.shards.DocsByID(i.ctx, i.req.Copy, ids, shard.ByIDOptions{
		IncludeDocs: true, Conflicts: i.req.Conflicts, MaxBytes: maxBytes,
	})
	return err
}

// look adds the document of a row if it matches.
func (i *index) look(b *Batch, r *view.Row) (enough bool, err error) {
	b.Figures.Keys++
	from := len(b.bytes)
	b.bytes = append(b.bytes, r.Sort...)
	sort := len(b.bytes)
	ok := true
	switch {
	case i.req.Plain:
	case i.cover != nil:
		i.text = i.cover.Append(i.text[:0], r.ID, r.Key)
		if ok, err = i.match.matches(i.text); ok && !i.match.count {
			b.bytes = i.match.fields.Append(b.bytes, i.text)
		}
	default:
		b.Figures.Docs++
		d := i.docs[0].Doc
		if d == nil { // gone meanwhile
			ok = false
			break
		}
		b.bytes, ok, err = i.match.append(b.bytes, d.Body, func() (*shard.Doc, error) { return d, nil })
	}
	if err != nil || !ok || i.match.count && !i.req.Plain {
		b.bytes = b.bytes[:from]
	}
	if err != nil || !ok {
		return false, err
	}
	if !i.match.count {
		b.add(sort)
	}
	return i.matched(b), nil
}

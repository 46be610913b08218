package find

import (
	"context"
	"slices"

	"divan/shard"
	"divan/shard/query"
	"divan/shard/view"
	"divan/storage/fault"
)

// Stream is an answer, in the order of the index. It is used by one goroutine and
// holds one moment of the copy until it is closed.
type Stream struct {
	Seq uint64 // of the copy, that the answer reflects

	ctx   context.Context // of the request
	req   Request
	match matcher
	left  int // rows that may still be given out; negative: all
	first int // rows of the next batch at most; 0: the usual
	rows  source
}

// source is the input of a stream: fill adds to a batch until that is full, and
// reports whether there is more.
type source interface {
	fill(b *Batch) (more bool, err error)
	close()
}

// Open begins to answer a request; close the stream.
func Open(ctx context.Context, shards *shard.Local, views *view.Views, req Request) (*Stream, error) {
	s := &Stream{ctx: ctx, req: req, left: -1, first: req.Hint}
	if req.Limit > 0 {
		s.left = req.Limit
	}
	if err := s.match.init(query.NewWork(ctx, shards.Heavy()), &s.req); err != nil {
		return nil, err
	}
	if req.Desc {
		s.req.Ranges = slices.Clone(req.Ranges)
		slices.Reverse(s.req.Ranges)
	}
	if len(s.req.Ranges) == 0 {
		s.req.Ranges = []Range{{}}
	}
	var err error
	switch {
	case req.Index == nil:
		s.rows, err = s.openDocs(shards)
	case views == nil:
		err = fault.New(fault.Unavailable, "This node has no indexes.")
	default:
		s.rows, err = s.openIndex(shards, views)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Next fills the batch with the next rows. more is false when there are none after
// it; the batch may then still hold rows.
func (s *Stream) Next(b *Batch) (more bool, err error) {
	most := maxRows
	if s.first > 0 {
		most, s.first = min(most, s.first), 0
	}
	b.reset(most)
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	if s.left == 0 {
		return false, nil
	}
	more, err = s.rows.fill(b)
	b.finish()
	return more && s.left != 0, err
}

// Close lets go of what is read. It may be called more than once.
func (s *Stream) Close() { s.rows.close() }

// matched counts a match, and reports whether there are enough.
func (s *Stream) matched(b *Batch) (enough bool) {
	b.Figures.Matches++
	if s.req.Count {
		return false
	}
	if s.left > 0 {
		s.left--
	}
	return s.left == 0
}

// matcher decides about documents, and makes what is given out of them.
type matcher struct {
	selector *query.Selector
	work     *query.Work
	fields   *query.Fields // nil: everything
	plain    bool
	count    bool
	whole    bool // the selector looks at more than bodies
	wide     bool // so do the fields
	text     []byte
}

func (m *matcher) init(w *query.Work, req *Request) (err error) {
	m.work = w
	m.plain, m.count = req.Plain, req.Count
	if req.Parsed != nil {
		m.selector, m.fields = req.Parsed.Selector, req.Parsed.Fields
	} else if m.selector, err = query.Parse(req.Selector); err != nil {
		return err
	} else if len(req.Fields) > 0 {
		if m.fields, err = query.ParseFields(req.Fields); err != nil {
			return err
		}
	}
	m.whole, m.wide = m.selector.Special(), m.fields.Special()
	return nil
}

// matches reports whether a document matches.
func (m *matcher) matches(text []byte) (bool, error) { return m.selector.Match(m.work, text) }

// append appends what is wanted of a document that matches; ok is false when it does
// not. doc returns the whole document.
func (m *matcher) append(dst, body []byte, doc func() (*shard.Doc, error)) (out []byte, ok bool, err error) {
	made := false
	whole := func() error {
		if made {
			return nil
		}
		made = true
		d, err := doc()
		if err == nil {
			m.text = shard.AppendDoc(m.text[:0], d)
		}
		return err
	}
	text := body
	if m.whole {
		if err := whole(); err != nil {
			return dst, false, err
		}
		text = m.text
	}
	ok, err = m.matches(text)
	switch {
	case !ok || err != nil:
		return dst, false, err
	case m.count:
		return dst, true, nil
	case m.wide:
		if err := whole(); err != nil {
			return dst, false, err
		}
		text = m.text
	default:
		text = body
	}
	return m.fields.Append(dst, text), true, nil
}

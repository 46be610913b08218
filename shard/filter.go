package shard

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// directIDs is up to how many documents of a filter are looked up by id
// instead of being searched in the feed (semantics.md section 13).
const directIDs = 1000

// changeFilter is a Filter made ready.
type changeFilter struct {
	kind    FilterKind
	ids     map[string]struct{}
	matcher Matcher
}

// changeFilter checks and compiles the filter of a request.
func (l *Local) changeFilter(req *ChangesRequest) (changeFilter, error) {
	f := changeFilter{kind: req.Filter.Kind}
	switch f.kind {
	case FilterNone, FilterDesign:
	case FilterDocIDs:
		f.ids = make(map[string]struct{}, len(req.Filter.IDs))
		for _, id := range req.Filter.IDs {
			f.ids[id] = struct{}{}
		}
	case FilterSelector:
		if l.compile == nil {
			return f, fault.New(fault.BadRequest, "Selectors are not available here.")
		}
		m, err := l.compile(req.Filter.Selector)
		if err != nil {
			return f, err
		}
		f.matcher = m
	default:
		return f, fault.New(fault.BadRequest, "unknown builtin filter name")
	}
	return f, nil
}

// source chooses where the changes of the stream come from: named documents
// are looked up when they are few and the changes to search are more.
func (s *ChangeStream) source() (changeSource, error) {
	direct, err := s.direct()
	if err != nil {
		return nil, err
	}
	if !direct {
		return s.snap.Changes(storage.SeqRange{After: s.req.Since, Desc: s.req.Desc})
	}
	var list []storage.Change
	if s.filter.kind == FilterDesign {
		list, err = s.designChanges()
	} else {
		list, err = s.namedChanges()
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b storage.Change) int {
		if s.req.Desc {
			return cmp.Compare(b.Seq, a.Seq)
		}
		return cmp.Compare(a.Seq, b.Seq)
	})
	return &changeList{list: list, at: -1}, nil
}

// direct reports whether looking documents up beats searching.
func (s *ChangeStream) direct() (bool, error) {
	var n int
	switch s.filter.kind {
	case FilterDocIDs:
		n = len(s.filter.ids)
	case FilterDesign:
		sums, err := s.snap.Sums(designBounds())
		if err != nil {
			return false, err
		}
		n = int(sums.Live + sums.Deleted)
	case FilterNone, FilterSelector:
		return false, nil
	}
	if n > directIDs {
		return false, nil
	}
	changes, err := s.snap.CountChanges(s.req.Since)
	return uint64(n) < changes, err
}

// designBounds returns the ids of design documents as [lo, hi).
func designBounds() (lo, hi string) { return designPrefix, "_design0" }

func (s *ChangeStream) namedChanges() ([]storage.Change, error) {
	var list []storage.Change
	for id := range s.filter.ids {
		rec, ok, err := s.snap.Record(id)
		if err != nil {
			return nil, err
		}
		if ok && rec.Seq > s.req.Since {
			list = append(list, changeOf(&rec))
		}
	}
	return list, nil
}

func (s *ChangeStream) designChanges() ([]storage.Change, error) {
	lo, hi := designBounds()
	it, err := s.snap.Docs(storage.Range{Lo: lo, Hi: hi})
	if err != nil {
		return nil, err
	}
	defer func() { _ = it.Close() }() // read only: nothing to lose
	var list []storage.Change
	for ok := it.First(); ok; ok = it.Next() {
		if it.Head().Seq <= s.req.Since {
			continue
		}
		rec, err := it.Record()
		if err != nil {
			return nil, err
		}
		list = append(list, changeOf(&rec))
	}
	return list, it.Err()
}

// changeOf is the change that a record's sequence stands for.
func changeOf(rec *doc.Record) storage.Change {
	c := storage.Change{Seq: rec.Seq, ID: []byte(rec.ID), Deleted: rec.Deleted}
	for _, n := range rec.Tree.Leaves() {
		c.Leaves = append(c.Leaves, storage.Leaf{Rev: n.Rev, Deleted: n.Deleted})
	}
	return c
}

// changeList is a changeSource of changes at hand.
type changeList struct {
	list []storage.Change
	at   int
}

func (c *changeList) First() bool             { c.at = -1; return c.Next() }
func (c *changeList) Next() bool              { c.at++; return c.at < len(c.list) }
func (c *changeList) Change() *storage.Change { return &c.list[c.at] }
func (c *changeList) Err() error              { return nil }
func (c *changeList) Close() error            { return nil }

// pass adds those leaves of a change to the batch that are to be shown: with
// AllLeaves each that passes, otherwise the winner if it does.
func (f *changeFilter) pass(s *ChangeStream, b *ChangeBatch, c *storage.Change) error {
	switch f.kind {
	case FilterDocIDs:
		if _, ok := f.ids[string(c.ID)]; !ok {
			return nil
		}
	case FilterDesign:
		if !bytes.HasPrefix(c.ID, []byte(designPrefix)) {
			return nil
		}
	case FilterSelector:
		return f.selectLeaves(s, b, c)
	case FilterNone:
	}
	if !s.req.AllLeaves {
		b.leaves = append(b.leaves, c.Leaves[0].Rev)
		return nil
	}
	for i := range c.Leaves {
		b.leaves = append(b.leaves, c.Leaves[i].Rev)
	}
	return nil
}

// selectLeaves shows the selector the documents.
func (f *changeFilter) selectLeaves(s *ChangeStream, b *ChangeBatch, c *storage.Change) error {
	id := string(c.ID)
	var h doc.Head
	if _, err := s.snap.Head(id, &h); err != nil {
		return fmt.Errorf("read document %q: %w", id, err)
	}
	for i := range c.Leaves {
		if i > 0 && !s.req.AllLeaves {
			break
		}
		leaf := &c.Leaves[i]
		d := Doc{ID: id, Rev: leaf.Rev, Deleted: leaf.Deleted}
		var inline []byte
		if leaf.Rev == h.Winner {
			inline = h.Inline
		}
		if err := readContent(s.snap, &d, inline); err != nil {
			return err
		}
		b.buf = AppendDoc(b.buf[:0], &d)
		if f.matcher.Match(b.buf) {
			b.leaves = append(b.leaves, leaf.Rev)
		}
	}
	return nil
}

// AppendDoc appends the text of a document as functions, selectors and _find see
// it: with its attachments as stubs, and its conflicts when it has them.
func AppendDoc(dst []byte, d *Doc) []byte {
	dst = doc.AppendHead(dst, doc.Splice{ID: d.ID, Rev: d.Rev, Deleted: d.Deleted, Body: d.Body})
	if len(d.Atts) > 0 {
		dst = append(dst, `,"_attachments":{`...)
		for i := range d.Atts {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendStub(dst, &d.Atts[i])
		}
		dst = append(dst, '}')
	}
	if len(d.Conflicts) > 0 {
		dst = append(dst, `,"_conflicts":[`...)
		for i, rev := range d.Conflicts {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = rev.AppendJSON(dst)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendStub appends a member of _attachments (api.md section 10.3).
func appendStub(dst []byte, a *doc.Attachment) []byte {
	dst = doc.AppendString(dst, a.Name)
	dst = append(dst, `:{"content_type":`...)
	dst = doc.AppendString(dst, a.ContentType)
	dst = append(dst, `,"revpos":`...)
	dst = strconv.AppendUint(dst, a.RevPos, 10)
	dst = append(dst, `,"digest":"md5-`...)
	dst = base64.StdEncoding.AppendEncode(dst, a.Digest[:])
	dst = append(dst, `","length":`...)
	dst = strconv.AppendInt(dst, a.Length, 10)
	return append(dst, `,"stub":true}`...)
}

package shard

import (
	"bytes"
	"cmp"
	"context"
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
	kind  FilterKind
	ids   map[string]struct{}
	match BatchMatcher // nil: the documents are not looked at
}

// filters makes the filters of requests ready: each compiles one kind, nil when that is refused.
type filters struct {
	compile  func(selector []byte) (BatchMatcher, error)
	function func(ctx context.Context, f *Filter) (BatchMatcher, error)
}

// changeFilter checks and compiles the filter of a request.
func (c *filters) changeFilter(ctx context.Context, req *ChangesRequest) (f changeFilter, err error) {
	f = changeFilter{kind: req.Filter.Kind}
	switch f.kind {
	case FilterNone, FilterDesign:
	case FilterDocIDs:
		f.ids = make(map[string]struct{}, len(req.Filter.IDs))
		for _, id := range req.Filter.IDs {
			f.ids[id] = struct{}{}
		}
	case FilterSelector:
		if c.compile == nil {
			return f, fault.New(fault.BadRequest, "Selectors are not available here.")
		}
		if f.match, err = c.compile(req.Filter.Selector); err != nil {
			return f, err
		}
	case FilterFunction, FilterView:
		if c.function == nil {
			return f, fault.New(fault.BadRequest, "Functions are not available here.")
		}
		if f.match, err = c.function(ctx, &req.Filter); err != nil {
			return f, err
		}
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
	case FilterNone, FilterSelector, FilterFunction, FilterView:
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
		rec, ok, err := s.snap.Tip(id)
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
// AllLeaves each, otherwise the winner.
func (f *changeFilter) pass(s *ChangeStream, b *ChangeBatch, c *storage.Change) {
	switch f.kind {
	case FilterDocIDs:
		if _, ok := f.ids[string(c.ID)]; !ok {
			return
		}
	case FilterDesign:
		if !bytes.HasPrefix(c.ID, []byte(designPrefix)) {
			return
		}
	case FilterNone, FilterSelector, FilterFunction, FilterView:
	}
	for i := range c.Leaves {
		if i > 0 && !s.req.AllLeaves {
			break
		}
		b.leaves = append(b.leaves, c.Leaves[i].Rev)
	}
}

// Documents are shown to a matcher so many at a time, or bytes of them.
const (
	matchDocs  = 64
	matchBytes = 1 << 20
)

// candidates are changes whose leaves wait for the verdict of a matcher. Their memory
// is used again.
type candidates struct {
	changes []storage.Change
	n       int // of changes
	text    []byte
	ends    []int // where the text of each leaf that would be shown ends
	docs    [][]byte
}

// full reports whether they are as many as are shown at a time.
func (w *candidates) full() bool { return len(w.ends) >= matchDocs || len(w.text) >= matchBytes }

// reset forgets them.
func (w *candidates) reset() { w.n, w.text, w.ends = 0, w.text[:0], w.ends[:0] }

// texts returns the documents.
func (w *candidates) texts() [][]byte {
	w.docs = w.docs[:0]
	from := 0
	for _, to := range w.ends {
		w.docs = append(w.docs, w.text[from:to:to])
		from = to
	}
	return w.docs
}

// add adds a change, which belongs to its source.
func (w *candidates) add(s *ChangeStream, c *storage.Change) error {
	if w.n == len(w.changes) {
		w.changes = append(w.changes, storage.Change{})
	}
	own := &w.changes[w.n]
	w.n++
	own.Seq, own.Deleted, own.ID = c.Seq, c.Deleted, append(own.ID[:0], c.ID...)
	own.Leaves = append(own.Leaves[:0], c.Leaves...)
	id := string(c.ID)
	read := s.leafReader(id)
	for i := range own.Leaves {
		if i > 0 && !s.req.AllLeaves {
			break
		}
		d := Doc{ID: id, Rev: own.Leaves[i].Rev, Deleted: own.Leaves[i].Deleted}
		if !s.req.AllLeaves { // as in CouchDB: a leaf that is judged alone has none
			d.Conflicts = lost(own, false)
		}
		if err := read(&d); err != nil {
			return err
		}
		w.text = AppendDoc(w.text, &d)
		w.ends = append(w.ends, len(w.text))
	}
	return nil
}

// leafReader returns what reads leaves of a document: their contents, and what
// functions see besides, their histories.
func (s *ChangeStream) leafReader(id string) func(d *Doc) error {
	var err error
	var winner doc.Rev
	var inline []byte
	path := func(doc.Rev) doc.Path { return doc.Path{} }
	if s.filter.kind == FilterSelector {
		var h doc.Head
		_, err = s.snap.Head(id, &h)
		winner, inline = h.Winner, h.Inline
	} else {
		var rec doc.Record
		rec, _, err = s.snap.Record(id)
		winner, inline = rec.Winner, rec.Inline
		path = func(r doc.Rev) doc.Path { return rec.Tree.Path(r, 0) }
	}
	return func(d *Doc) error {
		if err != nil {
			return fmt.Errorf("read document %q: %w", id, err)
		}
		d.Revisions = path(d.Rev)
		if d.Rev == winner {
			return readContent(s.snap, d, inline)
		}
		return readContent(s.snap, d, nil)
	}
}

// matchChanges shows the candidates to the matcher and adds those that pass to the
// batch.
func (s *ChangeStream) matchChanges(b *ChangeBatch) error {
	w := &s.waiting
	if w.n == 0 {
		return nil
	}
	pass, err := s.filter.match(s.ctx, w.texts())
	if err != nil {
		return err
	}
	if len(pass) != len(w.ends) {
		return fmt.Errorf("a filter judged %d of %d documents", len(pass), len(w.ends))
	}
	for i := range w.changes[:w.n] {
		c := &w.changes[i]
		from := len(b.leaves)
		for k := range c.Leaves {
			if k > 0 && !s.req.AllLeaves {
				break
			}
			if pass[0] {
				b.leaves = append(b.leaves, c.Leaves[k].Rev)
			}
			pass = pass[1:]
		}
		if err := s.add(b, c, from); err != nil {
			return err
		}
	}
	w.reset()
	return nil
}

// AppendDoc appends the text of a document as functions and selectors see it, and
// _find shows it: with what is known of its history and its conflicts, and with its
// attachments as stubs.
func AppendDoc(dst []byte, d *Doc) []byte {
	dst = doc.AppendHead(dst, doc.Splice{ID: d.ID, Rev: d.Rev, Deleted: d.Deleted, Body: d.Body})
	if len(d.Revisions.IDs) > 0 {
		dst = append(dst, `,"_revisions":`...)
		dst = d.Revisions.AppendJSON(dst)
	}
	dst = appendRevs(dst, `,"_conflicts":`, d.Conflicts)
	dst = appendRevs(dst, `,"_deleted_conflicts":`, d.DeletedConflicts)
	if d.LocalSeq != 0 {
		dst = append(dst, `,"_local_seq":`...)
		dst = strconv.AppendUint(dst, d.LocalSeq, 10)
	}
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
	return append(dst, '}')
}

// appendRevs appends a member with revisions, if there are any.
func appendRevs(dst []byte, member string, revs []doc.Rev) []byte {
	if len(revs) == 0 {
		return dst
	}
	dst = append(append(dst, member...), '[')
	for i, rev := range revs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rev.AppendJSON(dst)
	}
	return append(dst, ']')
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

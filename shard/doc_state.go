package shard

import (
	"fmt"
	"slices"

	"divan/storage"
	"divan/storage/doc"
)

// docState is one document while edits are decided on it: the record as stored
// and what the edits so far made of it. It is used by one goroutine at a time:
// that of the request, then the writer's.
//
// The winner's content is kept inside the record when it is small
// (doc.InlineLimit). So a revision's content moves: into the record when it
// becomes the winner in the group that brings it, and from there to the bodies
// keyspace when another one wins while it is still in the tree. It never moves
// back, which would need a read.
type docState struct {
	id       string
	base     *doc.Record // as stored; nil: there is no such document
	tree     doc.Tree    // shares nothing with base
	older    olderRevs   // what base has beside its tree
	fresh    []freshRev  // contents that came with this group's edits, in order
	removed  []doc.Rev   // stored revisions that left the tree
	contents []content   // small attachments that came with this group's edits
	changed  bool        // the tree differs from base's
}

// freshRev is a revision whose content is not stored yet, or not where it has
// to be now.
type freshRev struct {
	rev     doc.Rev
	content doc.Revision // of one that came with an edit
	encoded []byte       // of one that was moved
	moved   bool         // it came out of the record: content is empty
}

// newDocState starts deciding on a document. base is not changed.
func newDocState(id string, base *doc.Record) *docState {
	s := &docState{id: id, base: base}
	if base != nil {
		s.tree = base.Tree.Clone()
		s.older.partial, s.older.below = base.Partial, base.Below
	}
	return s
}

// clone returns a state that goes its own way from here.
func (s *docState) clone() *docState {
	c := *s
	c.tree = s.tree.Clone()
	c.fresh = s.fresh[:len(s.fresh):len(s.fresh)]
	c.removed = s.removed[:len(s.removed):len(s.removed)]
	c.contents = s.contents[:len(s.contents):len(s.contents)]
	return &c
}

// add merges a revision with its content and cuts histories to limit
// revisions. It changes nothing when the revision and its path are known.
func (s *docState) add(p doc.Path, v doc.Revision, contents []content, limit int) {
	n := doc.Node{Rev: p.Rev(), Deleted: v.Deleted, Stored: true}
	n.External, n.Active = sizesOf(&v)
	switch s.merge(p, n, limit) {
	case doc.NewLeaf, doc.NewBranch, doc.Filled:
		s.forget(n.Rev)
		s.fresh = append(s.fresh, freshRev{rev: n.Rev, content: v})
		s.contents = append(s.contents, contents...)
	case doc.Known, doc.Joined:
	}
}

// sizesOf returns the bytes of a revision with its attachments: as clients see them, and as
// they are stored.
func sizesOf(v *doc.Revision) (external, active int64) {
	external, active = int64(len(v.Body)), int64(v.BinaryLen())
	for i := range v.Atts {
		external += v.Atts[i].Length
		active += v.Atts[i].StoredLength
	}
	return external, active
}

// forget drops the content of a revision that came with this group's edits,
// was cut off by a later one and now comes again.
func (s *docState) forget(r doc.Rev) {
	if slices.Contains(s.removed, r) {
		s.fresh = slices.DeleteFunc(slices.Clone(s.fresh), func(f freshRev) bool { return f.rev == r })
	}
}

// join merges the ancestors in p of a revision whose content is stored.
func (s *docState) join(p doc.Path, limit int) {
	s.merge(p, doc.Node{Rev: p.Rev()}, limit)
}

// revsLimit is the limit of revisions that holds when a request names one.
func revsLimit(limit int) int {
	if limit <= 0 {
		return DefaultRevsLimit
	}
	return limit
}

func (s *docState) merge(p doc.Path, n doc.Node, limit int) doc.Outcome {
	limit = revsLimit(limit)
	if s.older.partial {
		p = p.From(s.older.below.Tip)
	}
	outcome, removed := s.tree.Add(p, n, limit)
	if outcome != doc.Known {
		s.changed = true
		s.noteRemoved(removed)
		s.noteRemoved(s.older.cut(&s.tree, limit))
	}
	return outcome
}

func (s *docState) noteRemoved(removed []doc.Node) {
	for _, n := range removed {
		if n.Stored {
			s.removed = append(s.removed, n.Rev)
		}
	}
}

// revision returns the content of a revision that is at hand: new in this
// group, or inside the record. ok is false when it has to be looked up.
func (s *docState) revision(r doc.Rev) (v doc.Revision, ok bool, err error) {
	for i := len(s.fresh) - 1; i >= 0; i-- {
		if s.fresh[i].rev == r {
			return s.fresh[i].content, true, nil
		}
	}
	if s.base == nil || s.base.Winner != r || s.base.Inline == nil {
		return doc.Revision{}, false, nil
	}
	v, err = doc.DecodeRevision(s.base.Inline)
	if err != nil {
		return doc.Revision{}, false, fmt.Errorf("read %s of %q: %w", r, s.id, err)
	}
	return v, true, nil
}

// docWrites lists the writes for a changed document, except that the sequence
// is not known yet.
type docWrites struct {
	next *doc.Record // nil: the document is removed
	dels []doc.Rev   // from the bodies keyspace; to be done before puts
	puts []freshRev  // into the bodies keyspace
}

// writes works out the record and the moves of contents. The winner's content is encoded
// to space.
func (s *docState) writes(space *[]byte) docWrites {
	var out docWrites
	for _, r := range s.removed {
		if !s.inlineBase(r) {
			out.dels = append(out.dels, r)
		}
	}
	winner, ok := s.tree.Winner()
	if !ok {
		return out
	}
	next := &doc.Record{ID: s.id, Winner: winner.Rev, Deleted: winner.Deleted, Tree: s.tree}
	next.Below, next.Partial = s.older.below, s.older.partial
	next.External, next.Active = s.tree.LeafSizes()
	out.next = next
	isFresh := false // the base's winner came again in this group
	for i := range s.fresh {
		f := &s.fresh[i]
		isFresh = isFresh || s.inlineBase(f.rev)
		n, _, ok := s.tree.Find(f.rev)
		switch {
		case !ok || !n.Stored: // cut off again
		case f.rev == winner.Rev && f.content.BinaryLen() <= doc.InlineLimit:
			*space = f.content.AppendBinary((*space)[:0])
			next.Inline = *space
		default:
			out.puts = append(out.puts, *f)
		}
	}
	if s.base == nil || s.base.Inline == nil || isFresh {
		return out
	}
	if s.base.Winner == winner.Rev {
		next.Inline = s.base.Inline
		return out
	}
	if n, _, ok := s.tree.Find(s.base.Winner); ok && n.Stored {
		out.puts = append(out.puts, freshRev{rev: s.base.Winner, encoded: s.base.Inline, moved: true})
	}
	return out
}

// inlineBase reports whether the content of r is inside the stored record.
func (s *docState) inlineBase(r doc.Rev) bool {
	return s.base != nil && s.base.Inline != nil && s.base.Winner == r
}

// write puts what the group made of the document into the batch. It reports
// whether that took the sequence: also a document that is removed moves it, so
// that a reader that saw the copy before can tell that it has changed. space
// holds the encoded values.
func (s *docState) write(b *storage.Batch, seq uint64, space *[]byte) bool {
	out := s.writes(space)
	if out.next == nil && s.base == nil {
		return false // came and went within the group
	}
	for _, rev := range out.dels {
		b.DeleteRevision(s.id, rev)
	}
	for i := range out.puts {
		if p := &out.puts[i]; p.moved {
			b.PutRevisionText(s.id, p.rev, p.encoded)
		} else {
			b.PutRevision(s.id, p.rev, p.content)
		}
	}
	for i := range s.contents {
		b.PutAttachment(s.id, s.contents[i].key, s.contents[i].data)
	}
	if out.next == nil {
		b.Remove(s.base)
		b.Advance(seq)
		return true
	}
	out.next.Seq = seq
	b.Put(s.base, out.next)
	return true
}

// reader is the source of contents: a storage.Reader, or a snapshot.
type reader interface {
	Revision(id string, rev doc.Rev) (doc.Revision, bool, error)
}

// readDocState reads a document to decide on it. fresh says that it most likely does
// not exist.
func readDocState(from *storage.Reader, id string, fresh bool) (*docState, error) {
	look := from.Tip
	if fresh {
		look = from.ProbeTip
	}
	rec, ok, err := look(id)
	if err != nil {
		return nil, fmt.Errorf("read document %q: %w", id, err)
	}
	if !ok {
		return newDocState(id, nil), nil
	}
	return newDocState(id, &rec), nil
}

// readRevision reads content that the tree says is stored.
func readRevision(from reader, id string, rev doc.Rev) (doc.Revision, error) {
	v, ok, err := from.Revision(id, rev)
	switch {
	case err != nil:
		return doc.Revision{}, fmt.Errorf("read revision %s of %q: %w", rev, id, err)
	case !ok:
		return doc.Revision{}, fmt.Errorf("read revision %s of %q: %w", rev, id, errNoStoredContent())
	}
	return v, nil
}

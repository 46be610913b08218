package shard

import (
	"fmt"

	"divan/storage/doc"
)

// olderRevs is the part of a document's history that lies in blocks while edits are
// decided. Most edits concern the newest revision only, so that the tree of a docState is
// usually what the record has, one path, and the blocks stay where they are.
type olderRevs struct {
	partial bool      // the tree begins at below.Tip: what is older lies in blocks
	below   doc.Below // as stored; Floor rises while the limit cuts revisions off
	read    doc.Tree  // from below.Floor on or before: what has been read, of the first block or of all
}

// historySource reads what lies in blocks. After a change of the document the error may be
// fault.Corruption.
type historySource interface {
	// history returns all of it.
	history(id string, below doc.Below) (doc.Tree, error)
	// oldest returns what lies in the first block.
	oldest(id string, below doc.Below) (doc.Tree, error)
}

// prepare reads as much of the history as an edit needs. limit is that of revisions.
func (s *docState) prepare(e *Edit, interactive bool, limit int, from historySource) error {
	if !s.older.partial {
		return nil
	}
	newest, _ := s.tree.Winner()
	pos := newest.Rev.Pos
	fits := true
	limit = revsLimit(limit)
	if interactive {
		pos++
	} else {
		pos = max(pos, e.Path.Start)
		fits = s.fits(e.Path, pos, limit)
	}
	// What the limit cuts off: an edit that extends the path by one cuts one.
	below := s.older.below
	cut := int64(pos-below.Floor) + 1 - int64(limit)
	switch {
	case !fits, cut > 1, cut == 1 && below.Floor+1 >= below.Tip:
		return s.widen(from)
	case cut == 1 && !s.older.hasOldest():
		oldest, err := from.oldest(s.id, below)
		if err != nil {
			return fmt.Errorf("read the history of %q: %w", s.id, err)
		}
		s.older.read = oldest
	}
	return nil
}

// fits reports whether a path that a replicator names can be decided without what is in
// blocks: it is known and stored, or goes on from the newest revision, which is, and tells
// of no ancestor above the oldest one that the limit would leave. newest is the highest
// position then.
func (s *docState) fits(p doc.Path, newest uint64, limit int) bool {
	if len(p.IDs) == 0 || uint64(len(p.IDs)) > p.Start {
		return true // refused
	}
	leaf, _ := s.tree.Winner()
	at := 0
	if p.Start > leaf.Rev.Pos {
		ahead := p.Start - leaf.Rev.Pos
		if ahead >= uint64(len(p.IDs)) {
			return false
		}
		at = int(ahead)
	}
	n, _, known := s.tree.Find(doc.Rev{Pos: p.Start - uint64(at), ID: p.IDs[at]})
	if !known || !n.Stored {
		return false
	}
	floor := s.older.below.Floor
	if p.Start-uint64(len(p.IDs))+1 >= floor {
		return true
	}
	// An edit that is known cuts nothing off unless it tells something new.
	length := newest - floor + 1
	return length == uint64(limit) || length > uint64(limit) && p.Start > leaf.Rev.Pos
}

// widen adds what is in blocks to the tree.
func (s *docState) widen(from historySource) error {
	if !s.older.partial {
		return nil
	}
	err := s.readHistory(from)
	if err == nil {
		s.tree, err = s.older.below.Join(&s.older.read, &s.tree)
	}
	if err != nil {
		return fmt.Errorf("read the history of %q: %w", s.id, err)
	}
	s.older = olderRevs{below: s.older.below}
	return nil
}

// readHistory reads what is in blocks, once for all edits of a document: it is not changed.
func (s *docState) readHistory(from historySource) (err error) {
	if _, ok := s.older.read.At(s.older.below.Tip - 1); !ok {
		s.older.read, err = from.history(s.id, s.older.below)
	}
	return err
}

// path returns a revision and all its ancestors.
func (s *docState) path(r doc.Rev, from historySource) (doc.Path, error) {
	if !s.older.partial {
		return s.tree.Path(r, 0), nil
	}
	p := s.tree.Path(r, 0)
	if len(p.IDs) == 0 {
		return p, nil
	}
	err := s.readHistory(from)
	if err == nil {
		p.IDs, err = s.older.below.AppendIDs(p.IDs, &s.older.read)
	}
	if err != nil {
		return doc.Path{}, fmt.Errorf("read the history of %q: %w", s.id, err)
	}
	return p, nil
}

// hasOldest reports whether the revision that the limit cuts off next has been read.
func (o *olderRevs) hasOldest() bool {
	_, ok := o.read.At(o.below.Floor)
	return ok
}

// cut cuts the oldest revision off when the history is longer than the limit, and returns it.
// prepare has read it, and all of the history where more than one has to go.
func (o *olderRevs) cut(t *doc.Tree, limit int) []doc.Node {
	newest, ok := t.Winner()
	if !o.partial || !ok || newest.Rev.Pos-o.below.Floor < uint64(limit) {
		return nil
	}
	n, ok := o.read.At(o.below.Floor)
	if !ok {
		return nil
	}
	o.below.Floor++
	return []doc.Node{n}
}

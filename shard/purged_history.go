package shard

import (
	"slices"

	"divan/storage/doc"
)

// purgedHistory holds the known revisions that a purge removed on any copy, each with
// its ancestors. A copy that had not got a purged revision yet, but one of its
// ancestors, drops that ancestor: it ends where it would have ended had it got the
// revision first and the purge then. Knowledge only grows, and grows the same in any
// order in which copies tell each other.
//
// The ancestors of a revision follow from its name, so paths of different
// copies agree, but one may be cut off earlier than another.
type purgedHistory struct {
	revs []doc.Rev // as requested
	tree doc.Tree
}

// newPurgedHistory returns what an entry of the log, or a request, knows.
func newPurgedHistory(revs []doc.Rev, paths []doc.Path) *purgedHistory {
	l := &purgedHistory{revs: revs}
	for _, p := range paths {
		l.add(p)
	}
	return l
}

// add takes over a path and reports whether that told anything new.
func (l *purgedHistory) add(p doc.Path) bool {
	return l.tree.Merge(p, doc.Node{Rev: p.Rev()}) != doc.Known
}

// learn takes over paths and returns the revisions that were not known to be
// purged before, and were not requested.
func (l *purgedHistory) learn(paths []doc.Path) map[doc.Rev]struct{} {
	before := l.tree.Clone()
	grew := false
	for _, p := range paths {
		grew = l.add(p) || grew
	}
	if !grew {
		return nil
	}
	fresh := make(map[doc.Rev]struct{})
	for _, n := range l.tree.Nodes() {
		if _, _, known := before.Find(n.Rev); !known && !slices.Contains(l.revs, n.Rev) {
			fresh[n.Rev] = struct{}{}
		}
	}
	return fresh
}

// paths returns what is to be kept of it: a path that is nothing but a revision
// that was requested tells nothing.
func (l *purgedHistory) paths() []doc.Path {
	var out []doc.Path
	for _, n := range l.tree.Leaves() {
		p := l.tree.Path(n.Rev, 0)
		if len(p.IDs) > 1 || !slices.Contains(l.revs, n.Rev) {
			out = append(out, p)
		}
	}
	return out
}

// purge removes those of revs that are leaves, as purging does, and returns
// them. Their paths are added to l.
func (s *docState) purge(revs []doc.Rev, l *purgedHistory) []doc.Rev {
	for _, r := range revs {
		if _, leaf, ok := s.tree.Find(r); ok && leaf {
			l.add(s.tree.Path(r, 0))
		}
	}
	purged, removed := s.tree.Prune(revs)
	if len(purged) > 0 {
		s.changed = true
		s.noteRemoved(removed)
	}
	return purged
}

// purgeIf removes the leaves that gone holds for. A revision that others
// descend from is none, and stays.
func (s *docState) purgeIf(gone func(r doc.Rev) bool, l *purgedHistory) {
	var revs []doc.Rev
	for _, n := range s.tree.Leaves() {
		if gone(n.Rev) {
			revs = append(revs, n.Rev)
		}
	}
	s.purge(revs, l)
}

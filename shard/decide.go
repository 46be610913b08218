package shard

import (
	"divan/storage/doc"
	"divan/storage/fault"
)

// Texts of refusals, as CouchDB words them.
const (
	reasonConflict = "Document update conflict."
	reasonMissing  = "missing"
	reasonDeleted  = "deleted"
	reasonBadRev   = "Invalid rev format"
)

// decision is the verdict of a document's tree on an edit, before its body and
// attachments are looked at.
type decision struct {
	refused fault.Kind // not 0: the edit is refused and the rest is empty
	parent  doc.Rev    // interactive: what the new revision goes on top of; zero: it starts the document
	base    doc.Rev    // where stubs find their attachments and what validation sees as the old document; zero: nothing
	leaf    bool       // the revision becomes a leaf, so validation functions are asked
	stored  bool       // replicated: the content of this revision is here already
}

// refusal returns the answer to a refused edit.
func (v *decision) refusal() *fault.Error {
	if v.refused == fault.Conflict {
		return fault.New(fault.Conflict, reasonConflict)
	}
	return fault.New(v.refused, reasonBadRev)
}

// decideInteractive is the table of semantics.md section 2.5: what becomes of
// an edit on top of parent (zero: the client named none).
func decideInteractive(t *doc.Tree, parent doc.Rev, deleted bool) decision {
	winner, exists := t.Winner()
	switch {
	case !exists && parent.IsZero():
		return decision{leaf: true}
	case !exists:
		return decision{refused: fault.Conflict}
	case winner.Deleted:
		// Only a live body that names nothing brings a document back, and it
		// continues the winning tombstone. Neither stubs nor validation
		// functions see what was before (golden docs/11, attachments/03).
		if !parent.IsZero() || deleted {
			return decision{refused: fault.Conflict}
		}
		return decision{parent: winner.Rev, leaf: true}
	case parent.IsZero():
		return decision{refused: fault.Conflict}
	}
	// Any leaf may be continued, winner or not, live or deleted.
	if _, leaf, ok := t.Find(parent); !ok || !leaf {
		return decision{refused: fault.Conflict}
	}
	return decision{parent: parent, base: parent, leaf: true}
}

// decideReplicated is semantics.md section 2.6: nothing is a conflict. wantBase
// asks for the nearest stored ancestor, which costs a walk along the path.
func decideReplicated(t *doc.Tree, p doc.Path, wantBase bool) decision {
	if len(p.IDs) == 0 || p.Start == 0 || uint64(len(p.IDs)) > p.Start {
		return decision{refused: fault.BadRequest}
	}
	n, _, known := t.Find(p.Rev())
	v := decision{leaf: !known, stored: known && n.Stored}
	if wantBase && !v.stored {
		v.base = nearestStored(t, p)
	}
	return v
}

// nearestStored returns the newest ancestor of p's newest revision whose
// content is stored; zero when there is none. Above the first ancestor that
// the tree knows, the tree's own history counts, which may be longer.
func nearestStored(t *doc.Tree, p doc.Path) doc.Rev {
	for i := 1; i < len(p.IDs); i++ {
		r := doc.Rev{Pos: p.Start - uint64(i), ID: p.IDs[i]}
		n, _, ok := t.Find(r)
		switch {
		case !ok:
			continue
		case n.Stored:
			return r
		}
		for _, up := range t.Lineage(r) {
			if up.Stored {
				return up.Rev
			}
		}
		return doc.Rev{}
	}
	return doc.Rev{}
}

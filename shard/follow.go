package shard

import (
	"context"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Follow takes revisions over that another copy has decided and returns for each
// edit, in order, why it was not taken over; nil when it is durable. Nothing is a
// conflict and no validation function is asked. Refused are revisions that were purged here
// (fault.Purged), a path that is none, and a revision whose contents are not in
// this copy (fault.Unavailable).
//
// The error of Follow itself means that no edit was done: fault.Conflict
// (FollowRequest.PurgesSeen), fault.MissingStub (a stub refers to nothing, or to
// other content than in the copy that decided), and those of Decide.
func (l *Local) Follow(ctx context.Context, req FollowRequest) ([]error, error) {
	if len(req.Edits) == 0 {
		return nil, nil
	}
	t := newFollow(l.states, req)
	if err := t.run(ctx); err != nil {
		return nil, err
	}
	return t.refused, nil
}

// followTask is a Follow.
type followTask struct {
	editTask
	purgesSeen *uint64
	refused    []error // by edit
}

func newFollow(states *copyStates, req FollowRequest) *followTask {
	t := &followTask{purgesSeen: req.PurgesSeen}
	t.editTask = editTask{states: states, copy: req.Copy, open: req.Open, edits: req.Edits, limit: req.RevsLimit, rules: t}
	return t
}

// read implements editRules.
func (t *followTask) read(*storage.Store) error { return nil }

// admit implements editRules.
func (t *followTask) admit(g *groupCommit) error {
	if t.purgesSeen == nil {
		return nil
	}
	purged, err := g.purgedSince(*t.purgesSeen, t.edits)
	if err == nil && purged {
		return fault.New(fault.Conflict, "The copy has purged these documents since.")
	}
	return err
}

// begin implements editRules.
func (t *followTask) begin() { t.refused = make([]error, len(t.edits)) }

// edit implements editRules.
func (t *followTask) edit(p *editPlan, i int) error {
	e := &t.edits[i]
	if doc.IsLocal(e.ID) {
		_, t.refused[i] = p.local(e)
		return nil
	}
	s, err := p.open(e, false)
	if err != nil {
		return err
	}
	v := decideReplicated(&s.tree, e.Path, hasStubs(e))
	rev, purged := p.purged[i]
	switch {
	case v.refused != 0:
		t.refused[i] = v.refusal()
	case v.leaf && purged:
		t.refused[i] = errPurged(rev)
	case v.stored:
		s.join(e.Path, p.limit)
	case p.absent[i]:
		t.refused[i] = errAbsentContent(e.ID)
	default:
		return t.write(p, s, e, v.base)
	}
	return nil
}

// write adds a revision; base is where its stubs find their attachments.
func (t *followTask) write(p *editPlan, s *docState, e *Edit, base doc.Rev) error {
	before, err := p.base(s, base)
	if err != nil {
		return err
	}
	atts, contents, err := resolveAttachments(e, e.Path.Start, before.Atts, true, newKey)
	if err != nil {
		return err
	}
	s.add(e.Path, doc.Revision{Deleted: e.Deleted, Body: doc.StoredBody(e.Body), Atts: atts}, contents, p.limit)
	return nil
}

// purged implements editRules. A sender that says which purges it has done means
// what it sends.
func (t *followTask) purged(g *groupCommit) (map[int]doc.Rev, error) {
	if t.purgesSeen != nil {
		return nil, nil
	}
	return g.purgedEdits(t.edits, func(i int) (doc.Rev, bool) { return t.edits[i].Path.Rev(), t.refused[i] == nil })
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

package shard

import (
	"slices"

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

func errMissingStub(id, name string) *fault.Error {
	return fault.Newf(fault.MissingStub, "Invalid attachment stub in %s for %s", id, name)
}

// verdict is what the tree of a document says to an edit, before its body and
// attachments are looked at.
type verdict struct {
	refused fault.Kind // not 0: the edit is refused and the rest is empty
	parent  doc.Rev    // interactive: what the new revision goes on top of; zero: it starts the document
	base    doc.Rev    // where stubs find their attachments and what validation sees as the old document; zero: nothing
	leaf    bool       // the revision becomes a leaf, so validation functions are asked
	stored  bool       // replicated: the content of this revision is here already
}

// refusal is what a refused edit is answered with.
func (v *verdict) refusal() *fault.Error {
	if v.refused == fault.Conflict {
		return fault.New(fault.Conflict, reasonConflict)
	}
	return fault.New(v.refused, reasonBadRev)
}

// decideInteractive is the table of semantics.md section 2.5: what becomes of
// an edit on top of parent (zero: the client named none).
func decideInteractive(t *doc.Tree, parent doc.Rev, deleted bool) verdict {
	winner, exists := t.Winner()
	switch {
	case !exists && parent.IsZero():
		return verdict{leaf: true}
	case !exists:
		return verdict{refused: fault.Conflict}
	case winner.Deleted:
		// Only a live body that names nothing brings a document back, and it
		// continues the winning tombstone. Neither stubs nor validation
		// functions see what was before (golden docs/11, attachments/03).
		if !parent.IsZero() || deleted {
			return verdict{refused: fault.Conflict}
		}
		return verdict{parent: winner.Rev, leaf: true}
	case parent.IsZero():
		return verdict{refused: fault.Conflict}
	}
	// Any leaf may be continued, winner or not, live or deleted.
	if _, leaf, ok := t.Find(parent); !ok || !leaf {
		return verdict{refused: fault.Conflict}
	}
	return verdict{parent: parent, base: parent, leaf: true}
}

// decideReplicated is semantics.md section 2.6: nothing is a conflict. wantBase
// asks for the nearest stored ancestor, which costs a walk along the path.
func decideReplicated(t *doc.Tree, p doc.Path, wantBase bool) verdict {
	if len(p.IDs) == 0 || p.Start == 0 || uint64(len(p.IDs)) > p.Start {
		return verdict{refused: fault.BadRequest}
	}
	n, _, known := t.Find(p.Rev())
	v := verdict{leaf: !known, stored: known && n.Stored}
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

// content is the stored bytes of a small attachment that comes with an edit.
type content struct {
	key  [16]byte
	data []byte
}

// resolveAttachments turns the attachments of an edit into what is stored with
// the new revision at position pos: stubs take everything from the entry of
// the same name in base (api.md section 10.5), new content is of that position
// unless the edit names another. exactly: the digests of stubs count. newKey
// names small content that has no key yet.
func resolveAttachments(e *Edit, pos uint64, base []doc.Attachment, exactly bool, newKey func() [16]byte) ([]doc.Attachment, []content, error) {
	if len(e.Atts) == 0 {
		return nil, nil, nil
	}
	atts := make([]doc.Attachment, len(e.Atts))
	var contents []content
	var places map[string]int
	if len(base) > fewAttachments && hasStubs(e) {
		places = placesOf(base)
	}
	for i := range e.Atts {
		a := &e.Atts[i]
		if a.Stub {
			kept, ok := findStub(base, places, a)
			if !ok || exactly && a.Digest != ([16]byte{}) && a.Digest != kept.Digest {
				return nil, nil, errMissingStub(e.ID, a.Name)
			}
			atts[i] = kept
			continue
		}
		atts[i] = a.Attachment
		if !a.HasRevPos {
			atts[i].RevPos = pos
		}
		if a.elsewhere() {
			continue
		}
		if atts[i].Key == ([16]byte{}) {
			atts[i].Key = newKey()
		}
		contents = append(contents, content{key: atts[i].Key, data: a.Data})
	}
	return atts, contents, nil
}

// elsewhere reports whether the content is what Local.PutAttachment has stored.
func (a *EditAttachment) elsewhere() bool {
	return !a.Stub && a.Data == nil && a.StoredLength > 0
}

// fewAttachments is up to how many are looked through for a name.
const fewAttachments = 16

func placesOf(atts []doc.Attachment) map[string]int {
	places := make(map[string]int, len(atts))
	for i := range atts {
		places[atts[i].Name] = i
	}
	return places
}

// findStub returns the stored attachment that a stub stands for. places is
// where the names are in base, if there are many. The digest that a client sent
// is not compared (golden attachments/03).
func findStub(base []doc.Attachment, places map[string]int, stub *EditAttachment) (doc.Attachment, bool) {
	at, ok := places[stub.Name]
	if places == nil {
		at = slices.IndexFunc(base, func(a doc.Attachment) bool { return a.Name == stub.Name })
		ok = at >= 0
	}
	if !ok {
		return doc.Attachment{}, false
	}
	return base[at], !stub.HasRevPos || stub.RevPos == base[at].RevPos
}

// hasStubs reports whether an edit keeps attachments of the revision before.
func hasStubs(e *Edit) bool {
	for i := range e.Atts {
		if e.Atts[i].Stub {
			return true
		}
	}
	return false
}

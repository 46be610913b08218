package shard

import (
	"slices"

	"divan/storage/doc"
	"divan/storage/fault"
)

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

// elsewhere reports whether Attachments.Put has stored the content.
func (a *EditAttachment) elsewhere() bool {
	return !a.Stub && a.Data == nil && a.StoredLength > 0
}

func placesOf(atts []doc.Attachment) map[string]int {
	places := make(map[string]int, len(atts))
	for i := range atts {
		places[atts[i].Name] = i
	}
	return places
}

// fewAttachments is up to how many are looked through for a name.
const fewAttachments = 16

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

func errMissingStub(id, name string) *fault.Error {
	return fault.Newf(fault.MissingStub, "Invalid attachment stub in %s for %s", id, name)
}

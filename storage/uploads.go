package storage

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/fault"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// A large content is durable before the document that refers to it. In between
// it is an upload: an entry in its keyspace says so, which the document's batch
// removes. An entry found when a store is opened is what a crash, or a client
// that went away with it, left: the content is deleted.
//
// Unless a revision refers to it: two that bring a copy what it lacks may bring
// one content under one key, and then the second comes, and is an upload, after
// the document has claimed the first. So an entry alone never condemns content.
//
// A store may also be closed for lack of use between the two, so what is on its
// way is remembered here, by the engine: an upload known to the process is kept.

// uploadSuffix ends the names of files that are written before they are
// ingested.
const uploadSuffix = ".upload"

// uses are the contents that the revisions of a document refer to, inner ones
// too: while they are stored, a stub of an edit finds its attachment with them.
type uses struct {
	id      string
	damaged bool // the document cannot be read; it may refer to anything
	keys    map[keyspace.ContentKey]bool
}

// readUses costs a read of everything the document has but its contents.
func readUses(r pebble.Reader, id string) (uses, error) {
	u := uses{id: id, keys: map[keyspace.ContentKey]bool{}}
	rec, _, err := records.GetTip(r, id)
	if err == nil && rec.Inline != nil {
		err = useContents(u.keys, rec.Inline)
	}
	if err == nil {
		err = each(r, keyspace.OfDoc(keyspace.Bodies, id), keyspace.OfDocEnd(keyspace.Bodies, id), func(_, value []byte) error {
			return useContents(u.keys, value)
		})
	}
	if fault.Is(err, fault.Corruption) || pebble.IsCorruptionError(err) {
		u.damaged, err = true, nil
	}
	if err != nil {
		return u, fmt.Errorf("document %q: %w", id, err)
	}
	return u, nil
}

func (u *uses) has(key keyspace.ContentKey) bool { return u.damaged || u.keys[key] }

// DropUploads drops contents of a document that were uploaded for an edit that has
// been refused. One that is no upload any more stays: a revision has claimed
// it, perhaps one of this batch, so the batch must hold its documents already.
// Of one that is an upload again, but that a stored revision refers to, only
// the note goes.
func (b *Batch) DropUploads(id string, keys ...[16]byte) {
	var u *uses
	for _, key := range keys {
		upload := keyspace.Upload(id, key)
		if b.err != nil || !b.s.uploads.Has(upload) || b.endsUpload(upload) {
			continue
		}
		if u == nil {
			read, err := readUses(b.s.inst.DB(), id)
			b.note(err)
			u = &read
		}
		if u.has(key) {
			b.endUpload(upload)
		} else {
			b.DeleteAttachment(id, key)
		}
	}
}

// endsUpload reports whether the batch ends an upload already.
func (b *Batch) endsUpload(upload []byte) bool {
	return slices.ContainsFunc(b.claimed, func(k []byte) bool { return bytes.Equal(k, upload) })
}

// endUpload ends an upload; its content stays.
func (b *Batch) endUpload(upload []byte) {
	if b.err == nil {
		b.note(b.b.Delete(upload, nil))
		b.claimed = append(b.claimed, upload)
	}
}

package storage

import (
	"bytes"
	"slices"

	"divan/storage/garbage"
	"divan/storage/keyspace"
)

// A large content is durable before the document that refers to it. In between
// it is an upload: an entry in its keyspace says so, which the document's batch
// removes. An entry found when a store is opened was left by a crash, or by a
// client that went away with it: the content is deleted.
//
// Unless a revision refers to it: two that bring a copy what it lacks may bring
// one content under one key, and then the second comes, and is an upload, after
// the document has claimed the first. So an entry alone never condemns content.
//
// A store may also be closed for lack of use between the two, so the engine
// remembers here which uploads are on their way: an upload known to the process
// is kept.

// uploadSuffix ends the names of files that are written before they are
// ingested.
const uploadSuffix = ".upload"

// DropUploads drops contents of a document that were uploaded for an edit that has
// been refused. One that is no upload any more stays: a revision has claimed
// it, perhaps one of this batch, so the batch must hold its documents already.
// Of one that is an upload again, but that a stored revision refers to, only
// the note goes.
func (b *Batch) DropUploads(id string, keys ...[16]byte) {
	var u *garbage.Uses
	for _, key := range keys {
		upload := keyspace.Upload(id, key)
		if b.err != nil || !b.s.uploads.Has(upload) || b.claimed.has(upload) {
			continue
		}
		if u == nil {
			read, err := garbage.ReadUses(b.s.read.now(), id)
			b.note(err)
			u = &read
		}
		if u.Has(key) {
			b.endUpload(upload)
		} else {
			b.DeleteAttachment(id, key)
		}
	}
}

// claimed is the upload keys that end with a batch, most because a document of it refers to them.
type claimed [][]byte

func (c claimed) has(upload []byte) bool {
	return slices.ContainsFunc(c, func(k []byte) bool { return bytes.Equal(k, upload) })
}

// endUpload ends an upload; its content stays.
func (b *Batch) endUpload(upload []byte) {
	if b.err == nil {
		b.note(b.b.Delete(upload, nil))
		b.claimed = append(b.claimed, upload)
	}
}

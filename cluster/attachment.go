package cluster

import (
	"context"
	"io"

	"go.uber.org/zap"

	"divan/shard"
	"divan/storage/doc"
)

// ReadAttachment streams the stored bytes of an attachment of a document, n of
// them from off on; a negative n means to the end. The caller closes the
// reader. The bytes are compressed when a.Gzip.
func (d *DB) ReadAttachment(ctx context.Context, id string, a doc.Attachment, off, n int64) (io.ReadCloser, error) {
	var r io.ReadCloser
	// The reader outlives this call, so ask's deadline must not end it.
	err := d.ask(ctx, d.owner(id), func(_ context.Context, rep replica, name string) error {
		var err error
		r, err = rep.ReadAttachment(ctx, shard.AttachmentRange{Copy: name, ID: id, Key: a.Key, Offset: off, Length: n})
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Discard drops what Upload stored for an edit that was refused. It tells
// nothing: what cannot be dropped now goes with the next compaction.
func (d *DB) Discard(ctx context.Context, docID string, atts []shard.EditAttachment) {
	var keys [][16]byte
	for _, a := range atts {
		if !a.Stub && a.Data == nil {
			keys = append(keys, a.Key)
		}
	}
	if len(keys) == 0 {
		return
	}
	// The refusal may be that the request has ended.
	ctx, cancel := d.c.deadline(context.WithoutCancel(ctx))
	defer cancel()
	for _, t := range d.owner(docID).copies {
		rep := d.c.replica(t.node)
		if rep == nil {
			continue
		}
		if err := rep.DropAttachments(ctx, t.name, docID, keys); err != nil && !isNoCopy(err) {
			d.c.log.Warn("content of a refused edit stays until compaction",
				zap.String("copy", t.name), zap.String("node", t.node), zap.Error(err))
		}
	}
}

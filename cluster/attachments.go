package cluster

import (
	"context"
	"io"

	"go.uber.org/zap"

	"divan/cluster/attachment"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// attachments takes and gives the contents of attachments.
type attachments struct {
	*replicaSet
	uploads *attachment.Uploader
}

// Upload reads the content of an attachment and returns what an edit needs to
// refer to it; see attachment.Uploader.
func (d *attachments) Upload(ctx context.Context, docID string, o attachment.Options, r io.Reader) (shard.EditAttachment, error) {
	to := attachment.Document{Database: d.Asking(), ID: docID, Copies: d.routing.Owner(docID).All()}
	return d.uploads.Upload(ctx, to, o, r)
}

// ReadAttachment streams the stored bytes of an attachment of a document, n of
// them from off on; a negative n means to the end. The caller closes the
// reader. The bytes are compressed when a.Gzip. When a copy breaks off, the
// stream goes on from another one.
func (d *attachments) ReadAttachment(ctx context.Context, id string, a doc.Attachment, off, n int64) (io.ReadCloser, error) {
	s := d.routing.Owner(id)
	r := shard.AttachmentRange{ID: id, Key: a.Key, Offset: off, Length: n}
	if s.Near[0].Node == d.node {
		mine := r
		mine.Copy = s.Near[0].Name
		content, err := replica.ReadAttachment.On(ctx, d.replica(s.Near[0]), mine)
		if err == nil || len(s.Near) == 1 {
			return content, d.explain(ctx, err) // a disk does not break off as nodes do
		}
	}
	c, err := attachment.Open(ctx, d.Asking(), a, r, attachment.From{Copies: s.Near, Limit: d.requestTimeout()})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Discard drops what Upload stored for an edit that was refused. It tells
// nothing: what cannot be dropped now goes with the next compaction.
func (d *attachments) Discard(ctx context.Context, docID string, atts []shard.EditAttachment) {
	var keys [][16]byte
	for _, a := range atts {
		if !a.Stub && a.Data == nil {
			keys = append(keys, a.Key)
		}
	}
	if len(keys) == 0 {
		return
	}
	for _, t := range d.routing.Owner(docID).All() {
		rep := d.replica(t)
		if rep.Away() {
			continue
		}
		drop := func(ctx context.Context) {
			if _, err := replica.DropAttachments.On(ctx, rep, replica.DropAttachmentsRequest{Copy: t.Name, ID: docID, Keys: keys}); err != nil && !fault.Is(err, fault.NoCopy) {
				d.log.Warn("content of a refused edit stays until compaction",
					zap.String("copy", t.Name), zap.String("node", t.Node), zap.Error(err))
			}
		}
		if t.Node != d.node && d.detach(ctx, drop) {
			continue
		}
		// The refusal may be that the request has ended.
		own, cancel := d.deadline(context.WithoutCancel(ctx))
		drop(own)
		cancel()
	}
}

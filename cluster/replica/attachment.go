package replica

import (
	"context"
	"io"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// ReadAttachment reads stored bytes of an attachment.
var ReadAttachment = declare(Operation[shard.AttachmentRange, io.ReadCloser]{
	Copy: func(q shard.AttachmentRange) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q shard.AttachmentRange) (io.ReadCloser, error) {
		return h.Shards.Attachments.Read(ctx, q)
	},
	Over: download{},
})

// download carries ReadAttachment.
type download struct{}

func (download) ask(ctx context.Context, p *wire.Peer, to wire.Addressee, q shard.AttachmentRange) (io.ReadCloser, error) {
	return p.ReadAttachment(ctx, &wirepb.AttachmentRange{
		Copy: q.Copy, Id: q.ID, Key: q.Key[:], Offset: q.Offset, Length: q.Length,
		CopyId: to.Copy, Generation: to.Generation,
	})
}

func (download) serve(o *wire.Operations, run func(context.Context, wire.Addressee, shard.AttachmentRange) (io.ReadCloser, error)) {
	o.ReadAttachment = func(ctx context.Context, m *wirepb.AttachmentRange) (io.ReadCloser, error) {
		return run(ctx, wire.Addressee{Copy: m.CopyId, Generation: m.Generation}, shard.AttachmentRange{
			Copy: name(m.Copy), ID: name(m.Id), Key: decode16(m.Key), Offset: m.Offset, Length: m.Length,
		})
	}
}

// PutAttachmentRequest asks for space for the content of an attachment.
type PutAttachmentRequest struct {
	Copy, ID string
	Key      [16]byte // under which the content is stored
}

// PutAttachment stores the content of an attachment before the edit that refers to
// it.
var PutAttachment = declare(Operation[PutAttachmentRequest, shard.AttachmentSink]{
	Copy:  func(q PutAttachmentRequest) string { return q.Copy },
	Needs: Present,
	Run: func(h Admitted, ctx context.Context, q PutAttachmentRequest) (shard.AttachmentSink, error) {
		return h.Shards.Attachments.Put(ctx, q.Copy, q.ID, q.Key)
	},
	Over: upload{},
})

// upload carries PutAttachment.
type upload struct{}

func (upload) ask(ctx context.Context, p *wire.Peer, to wire.Addressee, q PutAttachmentRequest) (shard.AttachmentSink, error) {
	return p.PutAttachment(ctx, &wirepb.AttachmentPart{Copy: q.Copy, Id: q.ID, Key: q.Key[:], CopyId: to.Copy, Generation: to.Generation})
}

func (upload) serve(o *wire.Operations, run func(context.Context, wire.Addressee, PutAttachmentRequest) (shard.AttachmentSink, error)) {
	o.PutAttachment = func(ctx context.Context, m *wirepb.AttachmentPart) (wire.AttachmentWriter, error) {
		return run(ctx, wire.Addressee{Copy: m.CopyId, Generation: m.Generation}, PutAttachmentRequest{name(m.Copy), name(m.Id), decode16(m.Key)})
	}
}

// DropAttachmentsRequest names content that no edit will refer to.
type DropAttachmentsRequest struct {
	Copy, ID string
	Keys     [][16]byte
}

// DropAttachments removes content that was stored and is not wanted.
var DropAttachments = declare(Operation[DropAttachmentsRequest, Done]{
	Copy:  func(q DropAttachmentsRequest) string { return q.Copy },
	Needs: Present,
	Run: func(h Admitted, ctx context.Context, q DropAttachmentsRequest) (Done, error) {
		return Done{}, h.Shards.Attachments.Drop(ctx, q.Copy, q.ID, q.Keys)
	},
	Over: unary(wirepb.Op_DROP_ATTACHMENTS, wire.ClassWrite,
		codec[DropAttachmentsRequest, *wirepb.DropAttachmentsRequest]{
			func(q *DropAttachmentsRequest) *wirepb.DropAttachmentsRequest {
				m := &wirepb.DropAttachmentsRequest{Copy: q.Copy, Id: q.ID, Keys: make([][]byte, len(q.Keys))}
				for i := range q.Keys {
					m.Keys[i] = q.Keys[i][:]
				}
				return m
			},
			func(m *wirepb.DropAttachmentsRequest) DropAttachmentsRequest {
				q := DropAttachmentsRequest{Copy: name(m.Copy), ID: name(m.Id)}
				for _, k := range m.Keys {
					q.Keys = append(q.Keys, decode16(k))
				}
				return q
			},
		}, doneCodec()),
})

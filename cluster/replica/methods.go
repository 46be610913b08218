package replica

import (
	"context"
	"io"

	"divan/cluster/sequence"
	"divan/shard"
)

// Methods is copies whose operations are methods.
type Methods struct{ Copies }

func (m Methods) Update(ctx context.Context, req shard.UpdateRequest) ([]shard.EditResult, error) {
	return Update.On(ctx, m.Copies, req)
}

func (m Methods) Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error) {
	return Purge.On(ctx, m.Copies, PurgeRequest{Copy: name, Items: items})
}

func (m Methods) Open(ctx context.Context, req shard.OpenRequest) (*shard.Doc, error) {
	return Open.On(ctx, m.Copies, req)
}

func (m Methods) OpenRevs(ctx context.Context, req shard.OpenRevsRequest) ([]shard.RevResult, error) {
	return OpenRevs.On(ctx, m.Copies, req)
}

func (m Methods) OpenRevsMany(ctx context.Context, reqs []shard.OpenRevsRequest) ([][]shard.RevResult, []error, error) {
	out, errs := make([][]shard.RevResult, len(reqs)), make([]error, len(reqs))
	if len(reqs) == 0 {
		return out, errs, nil
	}
	answers, err := OpenRevsMany.On(ctx, m.Copies, OpenRevsManyRequest{Copy: reqs[0].Copy, Docs: reqs})
	for i := range answers {
		out[i], errs[i] = answers[i].Results, answers[i].Err
	}
	return out, errs, err
}

func (m Methods) Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	return Missing.On(ctx, m.Copies, MissingRequest{Copy: name, IDs: ids})
}

func (m Methods) DocsByID(ctx context.Context, name string, ids []string, includeDocs, conflicts bool) ([]shard.Row, error) {
	return DocsByID.On(ctx, m.Copies, DocsByIDRequest{Copy: name, IDs: ids, IncludeDocs: includeDocs, Conflicts: conflicts})
}

func (m Methods) LocalGet(ctx context.Context, name, id string) (*shard.LocalDoc, error) {
	return LocalGet.On(ctx, m.Copies, LocalGetRequest{Copy: name, ID: id})
}

func (m Methods) PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error) {
	return PutAttachment.On(ctx, m.Copies, PutAttachmentRequest{Copy: name, ID: id, Key: key})
}

func (m Methods) ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error) {
	return ReadAttachment.On(ctx, m.Copies, r)
}

func (m Methods) DropAttachments(ctx context.Context, name, id string, keys [][16]byte) error {
	_, err := DropAttachments.On(ctx, m.Copies, DropAttachmentsRequest{Copy: name, ID: id, Keys: keys})
	return err
}

func (m Methods) Create(ctx context.Context, name string, o shard.CreateOptions) error {
	_, err := Create.On(ctx, m.Copies, CreateRequest{Copy: name, Partitioned: o.Partitioned})
	return err
}

func (m Methods) Drop(ctx context.Context, name string) error {
	_, err := Drop.On(ctx, m.Copies, name)
	return err
}

func (m Methods) Info(ctx context.Context, name string) (shard.Info, error) {
	return Info.On(ctx, m.Copies, name)
}

func (m Methods) Partition(ctx context.Context, name, partition string) (shard.PartitionInfo, error) {
	return Partition.On(ctx, m.Copies, PartitionRequest{Copy: name, Partition: partition})
}

func (m Methods) Compact(ctx context.Context, name string, l shard.Limits, db string) error {
	_, err := Compact.On(ctx, m.Copies, CompactRequest{Copy: name, Limits: l, DB: db})
	return err
}

func (m Methods) AllDocs(ctx context.Context, req shard.DocsRequest) (DocsHead, Stream[shard.RowBatch], error) {
	l, err := AllDocs.On(ctx, m.Copies, req)
	return l.Head, l.Stream, err
}

func (m Methods) LocalDocs(ctx context.Context, req shard.LocalDocsRequest) (Stream[shard.LocalBatch], error) {
	l, err := LocalDocs.On(ctx, m.Copies, req)
	return l.Stream, err
}

func (m Methods) Changes(ctx context.Context, req shard.ChangesRequest) (sequence.Head, *Feed, error) {
	l, err := Changes.On(ctx, m.Copies, req)
	return l.Head, &l, err
}

func (m Methods) Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error) {
	return Purges.On(ctx, m.Copies, PurgesRequest{Copy: name, Since: since})
}

func (m Methods) Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error) {
	at, err := Position.On(ctx, m.Copies, name)
	return at.UUID, at.Seq, err
}

func (m Methods) Watch(name string, c chan struct{}) (io.Closer, error) {
	return Watch.On(context.Background(), m.Copies, WatchRequest{Copy: name, C: c})
}

package repair

import (
	"context"
	"fmt"
	"io"

	"divan/cluster/replica"
	"divan/shard"
)

// Copies is copies whose operations are methods, so that a test can stand
// between a copier and one of them.
type Copies interface {
	replica.Copies
	documents
	contents
}

type documents interface {
	Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error)
	Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error)
	OpenRevsMany(ctx context.Context, q replica.OpenRevsManyRequest) ([]shard.RevsAnswer, error)
	Follow(ctx context.Context, req shard.FollowRequest) ([]error, error)
	LocalGet(ctx context.Context, name, id string) (*shard.LocalDoc, error)
}

type contents interface {
	Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error)
	Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error)
	PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error)
	ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error)
}

// methods is the methods of some copies.
type methods struct{ replica.Copies }

func (m methods) LocalGet(ctx context.Context, name, id string) (*shard.LocalDoc, error) {
	return replica.LocalGet.On(ctx, replica.Copy{At: m.Copies}, replica.LocalGetRequest{Copy: name, ID: id})
}

func (m methods) Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error) {
	at, err := replica.Position.On(ctx, replica.Copy{At: m.Copies}, name)
	return at.UUID, at.Seq, err
}

func (m methods) Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	return replica.Missing.On(ctx, replica.Copy{At: m.Copies}, replica.MissingRequest{Copy: name, IDs: ids})
}

func (m methods) OpenRevsMany(ctx context.Context, q replica.OpenRevsManyRequest) ([]shard.RevsAnswer, error) {
	return replica.OpenRevsMany.On(ctx, replica.Copy{At: m.Copies}, q)
}

func (m methods) Follow(ctx context.Context, req shard.FollowRequest) ([]error, error) {
	return replica.Follow.On(ctx, replica.Copy{At: m.Copies}, req)
}

func (m methods) Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error) {
	return replica.Purge.On(ctx, replica.Copy{At: m.Copies}, replica.PurgeRequest{Copy: name, Items: items})
}

func (m methods) Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error) {
	return replica.Purges.On(ctx, replica.Copy{At: m.Copies}, replica.PurgesRequest{Copy: name, Since: since})
}

func (m methods) PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error) {
	return replica.PutAttachment.On(ctx, replica.Copy{At: m.Copies}, replica.PutAttachmentRequest{Copy: name, ID: id, Key: key})
}

func (m methods) ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error) {
	return replica.ReadAttachment.On(ctx, replica.Copy{At: m.Copies}, r)
}

// through makes copies call the methods of to for every operation; nil stays nil.
func through(to Copies) replica.Copies {
	if to == nil {
		return nil
	}
	return calling{to}
}

type calling struct{ to Copies }

// Do implements replica.Copies.
func (c calling) Do(ctx context.Context, call replica.Call) (err error) {
	switch q := call.(type) {
	case *replica.Asked[replica.LocalGetRequest, *shard.LocalDoc]:
		q.Answer, err = c.to.LocalGet(ctx, q.Request.Copy, q.Request.ID)
	case *replica.Asked[string, replica.At]:
		q.Answer.UUID, q.Answer.Seq, err = c.to.Position(ctx, q.Request)
	case *replica.Asked[replica.MissingRequest, []shard.IDMissing]:
		q.Answer, err = c.to.Missing(ctx, q.Request.Copy, q.Request.IDs)
	case *replica.Asked[replica.OpenRevsManyRequest, []shard.RevsAnswer]:
		q.Answer, err = c.to.OpenRevsMany(ctx, q.Request)
	case *replica.Asked[shard.FollowRequest, []error]:
		q.Answer, err = c.to.Follow(ctx, q.Request)
	case *replica.Asked[replica.PurgeRequest, []shard.PurgeResult]:
		q.Answer, err = c.to.Purge(ctx, q.Request.Copy, q.Request.Items)
	case *replica.Asked[replica.PurgesRequest, []shard.PurgeInfo]:
		q.Answer, err = c.to.Purges(ctx, q.Request.Copy, q.Request.Since)
	case *replica.Asked[replica.PutAttachmentRequest, shard.AttachmentSink]:
		q.Answer, err = c.to.PutAttachment(ctx, q.Request.Copy, q.Request.ID, q.Request.Key)
	case *replica.Asked[shard.AttachmentRange, io.ReadCloser]:
		q.Answer, err = c.to.ReadAttachment(ctx, q.Request)
	default:
		return fmt.Errorf("a copier asks for %T", call)
	}
	return err
}

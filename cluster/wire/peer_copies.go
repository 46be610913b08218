package wire

import (
	"context"

	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// Update is shard.Local's, on a copy of the node.
func (p *Peer) Update(ctx context.Context, req shard.UpdateRequest) ([]shard.EditResult, error) {
	var answer wirepb.EditResults
	if err := p.call(ctx, wirepb.Op_UPDATE, encodeUpdate(&req), &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(req.Edits) {
		return nil, p.short(len(answer.Results), len(req.Edits))
	}
	return decodeResults(&answer), nil
}

// Purge is shard.Local's, on a copy of the node.
func (p *Peer) Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error) {
	var answer wirepb.PurgeResults
	err := p.call(ctx, wirepb.Op_PURGE, &wirepb.PurgeRequest{Copy: name, Items: encodePurgeItems(items)}, &answer)
	if err != nil {
		return nil, err
	}
	if len(answer.Results) != len(items) {
		return nil, p.short(len(answer.Results), len(items))
	}
	return decodePurgeResults(&answer), nil
}

// Open is shard.Local's, on a copy of the node.
func (p *Peer) Open(ctx context.Context, req shard.OpenRequest) (*shard.Doc, error) {
	var answer wirepb.Doc
	if err := p.call(ctx, wirepb.Op_OPEN, encodeOpen(&req), &answer); err != nil {
		return nil, err
	}
	return decodeNewDoc(&answer), nil
}

// OpenRevs is shard.Local's, on a copy of the node.
func (p *Peer) OpenRevs(ctx context.Context, req shard.OpenRevsRequest) ([]shard.RevResult, error) {
	var answer wirepb.RevResults
	if err := p.call(ctx, wirepb.Op_OPEN_REVS, encodeOpenRevs(&req), &answer); err != nil {
		return nil, err
	}
	return decodeRevResults(&answer), nil
}

// OpenRevsMany is OpenRevs for several documents in one message. The answers
// and errors are in the order of reqs; the error at the end means that none of
// them has been answered.
func (p *Peer) OpenRevsMany(ctx context.Context, reqs []shard.OpenRevsRequest) ([][]shard.RevResult, []error, error) {
	m := &wirepb.OpenRevsList{Requests: make([]*wirepb.OpenRevsRequest, len(reqs))}
	for i := range reqs {
		m.Requests[i] = encodeOpenRevs(&reqs[i])
	}
	var answer wirepb.RevResultsList
	if err := p.call(ctx, wirepb.Op_OPEN_REVS_MANY, m, &answer); err != nil {
		return nil, nil, err
	}
	results, errs := make([][]shard.RevResult, len(reqs)), make([]error, len(reqs))
	if len(answer.Answers) != len(reqs) {
		return nil, nil, p.short(len(answer.Answers), len(reqs))
	}
	for i, a := range answer.Answers {
		results[i], errs[i] = decodeRevResults(a), decodeFault(a.Fault)
	}
	return results, errs, nil
}

// Missing is shard.Local's, on a copy of the node.
func (p *Peer) Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	var answer wirepb.Missings
	err := p.call(ctx, wirepb.Op_MISSING, &wirepb.MissingRequest{Copy: name, Ids: encodeIDRevs(ids)}, &answer)
	if err != nil {
		return nil, err
	}
	if len(answer.Answers) != len(ids) {
		return nil, p.short(len(answer.Answers), len(ids))
	}
	return decodeMissings(&answer), nil
}

// DocsByID is shard.Local's, on a copy of the node.
func (p *Peer) DocsByID(ctx context.Context, name string, ids []string, includeDocs, conflicts bool) ([]shard.Row, error) {
	var answer wirepb.Rows
	req := &wirepb.DocsByIDRequest{Copy: name, Ids: ids, IncludeDocs: includeDocs, Conflicts: conflicts}
	if err := p.call(ctx, wirepb.Op_DOCS_BY_ID, req, &answer); err != nil {
		return nil, err
	}
	if len(answer.Rows) != len(ids) {
		return nil, p.short(len(answer.Rows), len(ids))
	}
	return decodeRows(&answer), nil
}

// LocalGet is shard.Local's, on a copy of the node.
func (p *Peer) LocalGet(ctx context.Context, name, id string) (*shard.LocalDoc, error) {
	var answer wirepb.LocalDoc
	if err := p.call(ctx, wirepb.Op_LOCAL_GET, &wirepb.CopyID{Copy: name, Id: id}, &answer); err != nil {
		return nil, err
	}
	d := decodeLocalDoc(&answer)
	return &d, nil
}

// Purges is shard.Local's, on a copy of the node.
func (p *Peer) Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error) {
	var answer wirepb.PurgeInfos
	if err := p.call(ctx, wirepb.Op_PURGES, &wirepb.CopySince{Copy: name, Since: since}, &answer); err != nil {
		return nil, err
	}
	return decodePurgeInfos(&answer), nil
}

// Position is shard.Local's, on a copy of the node.
func (p *Peer) Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error) {
	var answer wirepb.Position
	if err := p.call(ctx, wirepb.Op_POSITION, &wirepb.Copy{Copy: name}, &answer); err != nil {
		return uuid, 0, err
	}
	return decode16(answer.Uuid), answer.Seq, nil
}

// DropAttachments is shard.Local's, on a copy of the node.
func (p *Peer) DropAttachments(ctx context.Context, name, id string, keys [][16]byte) error {
	m := &wirepb.DropAttachmentsRequest{Copy: name, Id: id, Keys: make([][]byte, len(keys))}
	for i := range keys {
		m.Keys[i] = keys[i][:]
	}
	return p.call(ctx, wirepb.Op_DROP_ATTACHMENTS, m, &wirepb.Nothing{})
}

// Create is shard.Local's, for a copy on the node.
func (p *Peer) Create(ctx context.Context, name string, o shard.CreateOptions) error {
	return p.call(ctx, wirepb.Op_CREATE, &wirepb.CreateRequest{Copy: name, Partitioned: o.Partitioned}, &wirepb.Nothing{})
}

// Drop is shard.Local's, for a copy on the node.
func (p *Peer) Drop(ctx context.Context, name string) error {
	return p.call(ctx, wirepb.Op_DROP, &wirepb.Copy{Copy: name}, &wirepb.Nothing{})
}

// Info is shard.Local's, of a copy on the node.
func (p *Peer) Info(ctx context.Context, name string) (shard.Info, error) {
	var answer wirepb.Info
	if err := p.call(ctx, wirepb.Op_INFO, &wirepb.Copy{Copy: name}, &answer); err != nil {
		return shard.Info{}, err
	}
	return decodeInfo(&answer), nil
}

// Partition is shard.Local's, of a copy on the node.
func (p *Peer) Partition(ctx context.Context, name, partition string) (shard.PartitionInfo, error) {
	var a wirepb.PartitionInfo
	if err := p.call(ctx, wirepb.Op_PARTITION, &wirepb.CopyID{Copy: name, Id: partition}, &a); err != nil {
		return shard.PartitionInfo{}, err
	}
	return shard.PartitionInfo{Live: a.Live, Deleted: a.Deleted, External: a.External, Active: a.Active}, nil
}

// Compact is shard.Local's, of a copy on the node.
func (p *Peer) Compact(ctx context.Context, name string, l shard.Limits, db string) error {
	m := &wirepb.CompactRequest{Copy: name, Limits: encodeLimits(l), Db: db}
	return p.call(ctx, wirepb.Op_COMPACT, m, &wirepb.Nothing{})
}

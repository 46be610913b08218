package cluster

import (
	"context"
	"time"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
)

// docPart is the documents of one range, by id.
type docPart struct {
	fanout.FailoverStream[string, replica.DocsHead, shard.RowBatch]
	opener opener
	rows   []shard.Row // of the current batch
	at     int
	last   string // id of the last row of the batches before; empty: none
}

// opener opens the listing of one copy, behind an id in its direction unless
// that is empty.
type opener func(ctx context.Context, rep replica.Copy, t ring.Replica, behind string) (replica.Docs, error)

func (d *listings) newDocPart(ctx context.Context, copies []ring.Replica, open opener) *docPart {
	limit := d.listingTimeout()
	p := &docPart{opener: open}
	p.FailoverStream = fanout.FailoverStream[string, replica.DocsHead, shard.RowBatch]{
		Database: d.Asking(), Log: d.log, Ctx: ctx, Kind: p, Copies: copies, Limit: limit, Stall: limit,
	}
	return p
}

// Position implements fanout.RowKind.
func (p *docPart) Position() (behind string, ok bool) { return p.last, true }

// Open implements fanout.RowKind.
func (p *docPart) Open(ctx context.Context, rep replica.Copy, t ring.Replica, behind string) (fanout.Opened[replica.DocsHead, shard.RowBatch], error) {
	docs, err := p.opener(ctx, rep, t, behind)
	return fanout.Opened[replica.DocsHead, shard.RowBatch]{Head: docs.Head, Stream: docs.Stream}, err
}

// Moved implements fanout.RowKind.
func (p *docPart) Moved(replica.DocsHead) error { return nil }

// batch returns the next batch, nil at the end.
func (p *docPart) batch() (*shard.RowBatch, error) {
	if n := len(p.rows); n > 0 {
		p.last = p.rows[n-1].ID
	}
	return p.Next()
}

// listingTimeout returns [fabric] all_docs_timeout: how long a copy elsewhere
// may be silent; 0: as long as it likes.
func (d *replicaSet) listingTimeout() time.Duration { return d.config.Load().Fabric.AllDocsTimeout }

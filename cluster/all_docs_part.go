package cluster

import (
	"context"
	"time"

	"divan/cluster/replica"
	"divan/shard"
)

// docPart is the documents of one range, by id.
type docPart struct {
	failoverStream[string, replica.DocsHead, shard.RowBatch]
	opener opener
	rows   []shard.Row // of the current batch
	at     int
	last   string // id of the last row of the batches before; empty: none
}

// opener opens the listing of one copy, behind an id in its direction unless
// that is empty.
type opener func(ctx context.Context, rep replica.Copies, t target, behind string) (replica.Docs, error)

func (d *DB) newDocPart(ctx context.Context, copies []target, open opener) *docPart {
	limit := d.c.listingTimeout()
	p := &docPart{opener: open}
	p.failoverStream = failoverStream[string, replica.DocsHead, shard.RowBatch]{
		db: d, ctx: ctx, kind: p, copies: copies, limit: limit, stall: limit,
	}
	return p
}

// position implements rowKind.
func (p *docPart) position() (behind string, ok bool) { return p.last, true }

// open implements rowKind.
func (p *docPart) open(ctx context.Context, rep replica.Copies, t target, behind string) (opened[replica.DocsHead, shard.RowBatch], error) {
	docs, err := p.opener(ctx, rep, t, behind)
	return opened[replica.DocsHead, shard.RowBatch]{docs.Head, docs.Stream}, err
}

// moved implements rowKind.
func (p *docPart) moved(replica.DocsHead) error { return nil }

// batch returns the next batch, nil at the end.
func (p *docPart) batch() (*shard.RowBatch, error) {
	if n := len(p.rows); n > 0 {
		p.last = p.rows[n-1].ID
	}
	return p.next()
}

// listingTimeout returns [fabric] all_docs_timeout: how long a copy elsewhere
// may be silent; 0: as long as it likes.
func (c *Coordinator) listingTimeout() time.Duration { return c.config.Load().Fabric.AllDocsTimeout }

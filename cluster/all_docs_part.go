package cluster

import (
	"context"
	"slices"
	"time"

	"divan/cluster/quorum"
	"divan/shard"
)

// docPart is the rows of one range, read from one of its copies, and from
// another one when that breaks off: it goes on behind the last row that was
// given out. The copies may differ in what was written a moment ago, as two
// listings may.
type docPart struct {
	db     *DB
	ctx    context.Context // of the request
	opener opener
	copies []target // those that have not failed, the one that is read first

	head   docsHead
	stream docStream
	stop   context.CancelFunc // ends the stream's context; nil: it lives in the request's
	ahead  ahead[shard.RowBatch]
	rows   []shard.Row // of the current batch
	at     int
	last   string // id of the last row of the batches before; empty: none
}

// listing is what opening a listing of one copy gives.
type listing struct {
	head   docsHead
	stream docStream
}

// open opens the listing on the first copy that lets it.
func (p *docPart) open(behind string) error {
	if len(p.copies) > 0 && p.copies[0].node == p.db.c.node {
		head, stream, err := p.opener(p.ctx, p.db.c.local, p.copies[0], behind)
		if err == nil {
			p.read(listing{head, stream}, 0)
			return nil
		}
		if len(p.copies) == 1 || quorum.Usable(err) {
			return err
		}
		p.copies = p.copies[1:]
	}
	limit := p.db.c.listingTimeout()
	r := race[listing]{
		db: p.db, copies: p.copies, limit: limit, patience: p.db.c.reads.patience(readPatience),
		ask: func(ctx context.Context, rep replica, t target) (listing, error) {
			head, stream, err := p.opener(ctx, rep, t, behind)
			return listing{head, stream}, err
		},
		drop: func(o listing) { o.stream.Close() },
	}
	w, err := r.run(p.ctx)
	if err != nil {
		if w.stop != nil {
			w.stop()
		}
		return err
	}
	if i := slices.Index(p.copies, w.from); i > 0 {
		p.copies = append(append([]target{w.from}, p.copies[:i]...), p.copies[i+1:]...)
	}
	p.stop = w.stop
	p.read(w.got, limit)
	return nil
}

// read makes a listing the one that is read; a batch has to come within limit,
// unless that is 0.
func (p *docPart) read(l listing, limit time.Duration) {
	p.head, p.stream = l.head, l.stream
	p.ahead = ahead[shard.RowBatch]{read: l.stream.Next, limit: limit}
}

// batch returns the next batch, nil at the end.
func (p *docPart) batch() (*shard.RowBatch, error) {
	if n := len(p.rows); n > 0 {
		p.last = p.rows[n-1].ID
	}
	for {
		b, err := p.ahead.next()
		if err == nil {
			return b, nil
		}
		if p.ctx.Err() != nil || quorum.Usable(err) || len(p.copies) < 2 {
			return nil, err
		}
		p.close()
		p.copies = p.copies[1:]
		if openErr := p.open(p.last); openErr != nil {
			return nil, quorum.Telling(err, openErr)
		}
	}
}

// close lets go of what is read from.
func (p *docPart) close() {
	if p.stop != nil {
		p.stop() // first, because the reader ahead may wait for another node
	}
	p.ahead.close()
	if p.stream != nil {
		p.stream.Close()
	}
	p.stop, p.stream = nil, nil
}

// listingTimeout returns [fabric] all_docs_timeout: how long a copy elsewhere
// may be silent; 0: as long as it likes.
func (c *Coordinator) listingTimeout() time.Duration { return c.config.Load().Fabric.AllDocsTimeout }

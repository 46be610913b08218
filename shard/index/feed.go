package index

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"divan/shard"
	"divan/storage/fault"
)

// batch is some documents on their way through an update.
type batch struct {
	docs    []Doc
	from    Position                  // of the index before them
	pos     Position                  // and when they are all applied
	at      func(p *Position, d *Doc) // moves a position behind a document; nil: only the whole batch has one
	space   int64                     // of the budget, for the documents
	more    bool                      // something comes behind
	rows    shard.RowBatch
	changes shard.ChangeBatch
}

// piece is the result of mapping some documents of a part that follow each other;
// they are applied together.
type piece struct {
	docs   []Doc
	pos    Position // of the index when they are applied
	mapped Mapped
	space  *Space
	last   bool          // of the part
	ends   bool          // it is the last one of the batch: what is applied is committed, unless more is gathered
	more   bool          // another batch comes behind
	err    error         // instead: of the next document, or of what comes between
	turn   chan struct{} // instead: closed when everything before is committed
}

// add adds the changes that were read to the documents.
func (b *batch) add() {
	for i := range b.changes.Rows {
		r := &b.changes.Rows[i]
		d := Doc{ID: r.ID, Seq: r.Seq}
		if !r.Deleted {
			d.Doc = r.Doc
		}
		b.docs = append(b.docs, d)
	}
}

// bytes is how much memory the documents take.
func (b *batch) bytes() int64 {
	n := int64(0)
	for i := range b.docs {
		n += docBytes
		if d := b.docs[i].Doc; d != nil {
			n += int64(len(d.ID) + len(d.Body))
		}
	}
	return n
}

const (
	docBytes  = 256     // what a document takes beside its text, about
	keepSpace = 2 << 20 // the memory of a batch with more in it is given back
)

// rest empties the batch. What one large document has left is not kept.
func (b *batch) rest() {
	if b.space > keepSpace {
		b.rows, b.changes = shard.RowBatch{}, shard.ChangeBatch{}
	}
	clear(b.docs)
	b.docs, b.space, b.more = b.docs[:0], 0, false
}

// inlineDocs is up to how many documents are mapped where they are read: more
// goroutines would cost more than they gain.
const inlineDocs = 64

// readBatch fills a batch; more is false when there is nothing behind it.
type readBatch func(b *batch) (more bool, err error)

// feed reads batches, maps them on several goroutines and applies them in their
// order. An update that no caller waits for uses half of one processor at most,
// and an update that goes on at a document that failed tries that before any
// other.
func (up *updater) feed(ctx context.Context, fresh bool, read readBatch) error {
	first := &batch{}
	for more := true; more; {
		began := time.Now()
		var err error
		if more, err = up.read(ctx, first, read, nil); err != nil {
			return err
		}
		background := !up.f.waited()
		if !up.doubtful && !background && (more || len(first.docs) > inlineDocs) {
			return up.parallel(ctx, fresh, first, more, read)
		}
		if err := up.inline(ctx, first, fresh); err != nil {
			return err
		}
		up.doubtful = false
		if more && background {
			if err := up.pause(ctx, time.Since(began)); err != nil {
				return err
			}
		}
	}
	return nil
}

// read fills a batch with documents that come after what was read last. Before it waits for
// space it calls full, which may be nil.
func (up *updater) read(ctx context.Context, b *batch, read readBatch, full func()) (more bool, err error) {
	if !up.f.m.o.Shards.Copies.Has(up.f.copyName) { // the snapshot would outlive it
		return false, fault.New(fault.NoCopy, "no_db_file")
	}
	b.rest()
	b.from, b.pos = up.reading, up.reading
	var ok bool
	if b.space, ok = up.account.tryRead(); !ok {
		if full != nil {
			full()
		}
		if b.space, err = up.account.read(ctx); err != nil {
			return false, err
		}
	}
	if more, err = read(b); err != nil {
		return false, err
	}
	switch n := b.bytes(); {
	case n < b.space:
		up.account.release(b.space - n)
		b.space = n
	case n > b.space && up.account.try(n-b.space):
		b.space = n
	}
	up.reading = b.pos
	return more, ctx.Err()
}

// pause waits for d, or until a caller waits for the update.
func (up *updater) pause(ctx context.Context, d time.Duration) error {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-up.f.mu.hurry:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// inline maps a batch and applies it.
func (up *updater) inline(ctx context.Context, b *batch, fresh bool) error {
	whole := part{b: b, docs: b.docs, from: b.from, pos: b.pos, last: true}
	err := up.mapPart(ctx, &whole, func(p piece) error { return up.take(ctx, p, fresh) })
	up.account.release(b.space)
	b.space = 0
	return err
}

// take applies a piece, or does what it is instead.
func (up *updater) take(ctx context.Context, p piece, fresh bool) error {
	switch {
	case p.turn != nil:
		err := up.commit(ctx)
		close(p.turn)
		return err
	case p.err != nil:
		if err := up.commit(ctx); err != nil {
			return err
		}
		return p.err
	}
	if err := up.apply(ctx, &p, fresh); err != nil {
		return err
	}
	up.applied, up.weighs = append(up.applied, p), up.weighs+p.space.used
	if p.ends && !up.gathers(&p) || p.space.last || up.reads || up.large() {
		return up.commit(ctx)
	}
	return nil
}

// apply applies a piece. What is committed on the way, because the batch has become
// large, does not move the position: the documents are replaced again after a crash.
func (up *updater) apply(ctx context.Context, p *piece, fresh bool) error {
	for first := 0; ; {
		n, err := up.f.kind.Apply(up.b, p.mapped, first, fresh)
		if err != nil {
			return indexed(err)
		}
		if first += n; first >= len(p.docs) {
			return up.noteLeftOut(p.docs)
		}
		if err := up.commitBatch(ctx); err != nil {
			return err
		}
	}
}

// mapPart gives out what is made of a part, piece by piece. A document that fails
// does so in its turn: what comes before is applied. One that is left out is mapped again
// as one that is gone.
func (up *updater) mapPart(ctx context.Context, of *part, out func(p piece) error) error {
	pos, space := of.from, &Space{a: up.account}
	for docs := of.docs; ; {
		p, err := up.mapPiece(ctx, docs, space)
		docs = docs[len(p.docs):]
		up.weight.add(len(p.docs), space.used)
		p.pos, p.last = of.b.behind(&pos, p.docs), len(docs) == 0 && err == nil
		if p.last {
			p.pos, p.ends, p.more = of.pos, of.last, of.b.more
		}
		refused := space.refused
		if len(p.docs) == 0 && !p.last {
			space.close()
		} else if err := out(p); err != nil {
			return err
		}
		switch {
		case p.last:
			return nil
		case err != nil && !leaveOut(docs, err):
			return out(piece{err: err, last: true})
		case refused:
			if space, err = up.turn(ctx, out); err != nil {
				return out(piece{err: err, last: true})
			}
		default:
			space = &Space{a: up.account}
		}
	}
}

// behind moves a position behind some documents of the batch.
func (b *batch) behind(pos *Position, docs []Doc) Position {
	if b.at != nil && len(docs) > 0 {
		b.at(pos, &docs[len(docs)-1])
	}
	return *pos
}

// mapPiece maps some of the documents.
func (up *updater) mapPiece(ctx context.Context, docs []Doc, space *Space) (p piece, err error) {
	n := 0
	err = up.f.contained(func() (err error) {
		p.mapped, n, err = up.f.kind.Map(ctx, docs, space)
		return err
	})()
	p.docs, p.space = docs[:n], space
	return p, err
}

// turn waits until everything that was given out is committed and the update may go
// beyond the budget.
func (up *updater) turn(ctx context.Context, out func(p piece) error) (*Space, error) {
	turn := make(chan struct{})
	if err := out(piece{turn: turn}); err != nil {
		return nil, err
	}
	if _, ok := receive(ctx, turn); !ok && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return up.account.lastSpace(ctx)
}

// part is some documents of a batch that one goroutine maps.
type part struct {
	b      *batch
	docs   []Doc
	from   Position // before them
	pos    Position // behind them
	last   bool     // of the batch
	pieces chan piece
}

// parts cuts a batch so that what becomes of a part is neither much nor little.
func (up *updater) parts(b *batch, out func(p *part) bool) bool {
	pos := b.from
	for docs := b.docs; ; {
		n := min(len(docs), up.weight.docs())
		if b.at == nil { // only the whole batch has a position
			n = len(docs)
		}
		p := &part{b: b, docs: docs[:n], from: pos, last: n == len(docs), pieces: make(chan piece, piecesAhead)}
		if p.pos = b.behind(&pos, p.docs); p.last {
			p.pos = b.pos
		}
		if !out(p) || p.last {
			return p.last
		}
		docs = docs[n:]
	}
}

// parallel goes on with several goroutines; first has been read.
func (up *updater) parallel(ctx context.Context, fresh bool, first *batch, more bool, read readBatch) error {
	workers := up.f.m.o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	g, ctx := errgroup.WithContext(ctx)
	toMap := make(chan *part, workers)
	inOrder := make(chan *part, workers+1)
	free := make(chan *batch, workers+3)
	for range cap(free) - 1 {
		free <- &batch{}
	}
	g.Go(up.f.contained(func() error {
		defer close(toMap)
		defer close(inOrder)
		// What was gathered is committed: this goroutine goes on when there is space.
		full := func() {
			turn := make(chan piece, 1)
			turn <- piece{turn: make(chan struct{}), last: true}
			send(ctx, inOrder, &part{pieces: turn})
		}
		for b := first; ; {
			if b.more = more; !up.parts(b, func(p *part) bool { return send(ctx, toMap, p) && send(ctx, inOrder, p) }) || !more {
				return ctx.Err()
			}
			var ok bool
			if b, ok = receive(ctx, free); !ok {
				return ctx.Err()
			}
			var err error
			if more, err = up.read(ctx, b, read, full); err != nil {
				return err
			}
		}
	}))
	for range workers {
		g.Go(up.f.contained(func() error {
			for p := range toMap {
				if err := up.mapPart(ctx, p, func(made piece) error {
					if !send(ctx, p.pieces, made) {
						return ctx.Err()
					}
					return nil
				}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	g.Go(up.f.contained(func() error {
		for p := range inOrder {
			if err := up.takeAll(ctx, p, fresh); err != nil {
				return err
			}
			if p.last {
				up.account.release(p.b.space)
				p.b.space = 0
				free <- p.b
			}
		}
		return nil
	}))
	return g.Wait()
}

// takeAll applies what is made of a part, as it comes.
func (up *updater) takeAll(ctx context.Context, p *part, fresh bool) error {
	for {
		made, ok := receive(ctx, p.pieces)
		if !ok {
			return ctx.Err()
		}
		if err := up.take(ctx, made, fresh); err != nil || made.last {
			return err
		}
	}
}

// piecesAhead is how many pieces of a part wait to be applied at most; then its
// goroutine waits.
const piecesAhead = 3

// Parts are as large as what becomes of them: so many bytes, as far as that is known
// from the documents before.
const (
	partBytes = 4 << 20
	partDocs  = 64 // while it is not
)

// weight counts the documents of an update until now, and the space that they
// took.
type weight struct{ count, bytes atomic.Int64 }

func (w *weight) add(docs int, bytes int64) {
	w.count.Add(int64(docs))
	w.bytes.Add(bytes)
}

// docs is how many documents make a part.
func (w *weight) docs() int {
	count, bytes := w.count.Load(), w.bytes.Load()
	switch {
	case count == 0:
		return partDocs
	case bytes == 0:
		return batchDocs
	}
	return int(min(max(partBytes*count/bytes, 1), batchDocs))
}

// send and receive give up with the context.
func send[T any](ctx context.Context, c chan<- T, v T) bool {
	select {
	case c <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

func receive[T any](ctx context.Context, c <-chan T) (v T, ok bool) {
	select {
	case v, ok = <-c:
		return v, ok
	case <-ctx.Done():
		return v, false
	}
}

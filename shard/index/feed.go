package index

import (
	"context"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"divan/shard"
	"divan/storage/fault"
)

// batch is some documents on their way through an update.
type batch struct {
	docs    []Doc
	pos     Position // of the index when they are applied
	mapped  Mapped
	ready   chan struct{} // mapped is there
	rows    shard.RowBatch
	changes shard.ChangeBatch
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

// addCopies is add for changes whose memory is used again.
func (b *batch) addCopies() {
	from := len(b.docs)
	b.add()
	for i := range b.docs[from:] {
		if d := &b.docs[from+i]; d.Doc != nil {
			own := *d.Doc
			own.Body = slices.Clone(own.Body)
			d.Doc = &own
		}
	}
}

// inlineDocs is up to how many documents are mapped where they are read: more
// goroutines would cost more than they gain.
const inlineDocs = 64

// feed reads batches, maps them on several goroutines and applies them in their
// order. An update that nobody waits for uses half of one processor at most.
func (up *updater) feed(ctx context.Context, fresh bool, read func(b *batch) (more bool, err error)) error {
	first := &batch{}
	for more := true; more; {
		began := time.Now()
		var err error
		if more, err = up.read(ctx, first, read); err != nil {
			return err
		}
		background := !up.f.waited()
		if more && !background || len(first.docs) > inlineDocs && !background {
			return up.parallel(ctx, fresh, first, more, read)
		}
		if first.mapped, err = up.f.kind.Map(ctx, first.docs); err != nil {
			return err
		}
		if err := up.commit(first, fresh); err != nil {
			return err
		}
		if more {
			if err := up.pause(ctx, time.Since(began)); err != nil {
				return err
			}
		}
	}
	return nil
}

// read fills a batch with documents that come after what was read last.
func (up *updater) read(ctx context.Context, b *batch, read func(b *batch) (more bool, err error)) (more bool, err error) {
	if !up.f.m.o.Shards.Has(up.f.copyName) { // the snapshot would outlive it
		return false, fault.New(fault.NoCopy, "no_db_file")
	}
	b.docs, b.pos = b.docs[:0], up.reading
	if more, err = read(b); err != nil {
		return false, err
	}
	up.reading = b.pos
	return more, ctx.Err()
}

// pause waits as long as something took, or until somebody waits.
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

// parallel goes on with several goroutines; first has been read.
func (up *updater) parallel(ctx context.Context, fresh bool, first *batch, more bool, read func(b *batch) (more bool, err error)) error {
	workers := up.f.m.o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	g, ctx := errgroup.WithContext(ctx)
	toMap := make(chan *batch, workers)
	inOrder := make(chan *batch, workers+1)
	free := make(chan *batch, workers+3)
	for range cap(free) - 1 {
		free <- &batch{}
	}
	g.Go(up.f.contained(func() error {
		defer close(toMap)
		defer close(inOrder)
		for b := first; ; {
			b.ready = make(chan struct{})
			if !send(ctx, toMap, b) || !send(ctx, inOrder, b) || !more {
				return ctx.Err()
			}
			var ok bool
			if b, ok = receive(ctx, free); !ok {
				return ctx.Err()
			}
			var err error
			if more, err = up.read(ctx, b, read); err != nil {
				return err
			}
		}
	}))
	for range workers {
		g.Go(up.f.contained(func() error {
			for b := range toMap {
				var err error
				if b.mapped, err = up.f.kind.Map(ctx, b.docs); err != nil {
					return err
				}
				close(b.ready)
			}
			return nil
		}))
	}
	g.Go(up.f.contained(func() error {
		for b := range inOrder {
			if _, ok := receive(ctx, b.ready); !ok && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := up.commit(b, fresh); err != nil {
				return err
			}
			free <- b
		}
		return nil
	}))
	return g.Wait()
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

package remote

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/memory"
	"divan/storage/pause"
)

// each takes the documents in wanted by a request each, several of them at once. Their texts
// are read side by side, and counted; take gets one after the other. It returns when all
// readers have ended.
func (f *fetch) each(parent context.Context) error {
	e := eachDocument{turn: make(chan struct{}, 1)}
	group, ctx := errgroup.WithContext(parent)
	for i := range f.wanted {
		if !f.db.beginReading(ctx) {
			break
		}
		group.Go(func() error {
			defer f.db.endReading()
			return e.try(ctx, e.alone(ctx, f, &f.wanted[i]))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, one := range e.starved {
		one.take, one.refused = f.take, f.refused
		if err := one.persistOne(parent); err != nil {
			return err
		}
	}
	return parent.Err()
}

// beginReading waits until one more document may be read; false when ctx has ended.
func (d *Database) beginReading(ctx context.Context) bool {
	select {
	case d.readers <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// endReading ends what beginReading began.
func (d *Database) endReading() { <-d.readers }

// readersOf returns how many documents may be read at once over so many connections. One
// connection is left: the contents of a document may need it while readers of others wait
// for their turn, each with an answer that is open.
func readersOf(connections int) int { return max(1, connections-1) }

// eachDocument is the state that the readers of one call of each share.
type eachDocument struct {
	turn    chan struct{} // has an entry while take or refused is called
	failed  error         // the first error of take or refused that ends the fetch; guarded by the turn
	mu      sync.Mutex    // guards starved
	starved []*fetch      // those that found no memory beside the others
}

// alone returns the fetch of one document.
func (e *eachDocument) alone(ctx context.Context, f *fetch, w *endpoint.Wanted) *fetch {
	one := &fetch{db: f.db, whole: f.whole, wanted: []endpoint.Wanted{*w}}
	one.take = func(d *endpoint.Doc, c endpoint.Contents) error {
		return e.inTurn(ctx, func() error {
			err := f.take(d, c)
			if read, ok := c.(*contents); !ok || read.err == nil { // else the answer broke off, and is asked for again
				e.failed = err
			}
			return err
		})
	}
	if f.refused != nil {
		one.refused = func(id string, rev doc.Rev, why error) error {
			return e.inTurn(ctx, func() error {
				e.failed = f.refused(id, rev, why)
				return e.failed
			})
		}
	}
	return one
}

// inTurn calls take or refused when no other reader does. Once one has failed, none is called
// again: the group ends its context only after the reader has given back its turn.
func (e *eachDocument) inTurn(ctx context.Context, call func() error) error {
	done, err := pause.Turn(ctx, e.turn)
	if err != nil {
		return err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.failed != nil {
		return e.failed
	}
	return call()
}

// try takes the document of one. When there is no memory to read it beside others, it is put
// aside: they give back what they hold.
func (e *eachDocument) try(ctx context.Context, one *fetch) error {
	err := one.persistOne(ctx)
	if one.failed != nil || !errors.Is(err, memory.ErrFull) {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.starved = append(e.starved, one)
	return nil
}

// persistOne takes the only document that is wanted.
func (f *fetch) persistOne(ctx context.Context) error {
	return f.persist(ctx, func(ctx context.Context) error { return f.one(ctx, &f.wanted[0]) })
}

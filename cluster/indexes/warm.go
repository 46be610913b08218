package indexes

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/shard/index"
	"divan/shard/ring"
)

const (
	// warmDelay is how long after a write the indexes of a copy are brought up to
	// date, so that those of a copy that is written to all the time are with many
	// edits at once.
	warmDelay = 5 * time.Second
	// warmAtOnce is how many copies are looked at then; the others wait for the next
	// turn.
	warmAtOnce = 64
)

// written is the copies of this node that have been written to.
//
// LOCKS: mu guards the map only.
type written struct {
	wake chan struct{} // there are some
	mu   sync.Mutex
	set  map[string]struct{} // names
}

// Updated is told that a copy of this node has something new: its indexes are
// brought up to date in the background, so that queries find little to do. It
// returns at once.
func (x *Indexes) Updated(copyName string) {
	w := &x.written
	w.mu.Lock()
	w.set[copyName] = struct{}{}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take removes some of the copies; more says that there are others.
func (w *written) take() (names []string, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.set {
		if len(names) == warmAtOnce {
			return names, true
		}
		names = append(names, name)
		delete(w.set, name)
	}
	return names, false
}

// Run has indexes brought up to date after writes, until ctx ends.
func (x *Indexes) Run(ctx context.Context) error {
	delay := time.NewTimer(warmDelay)
	defer delay.Stop()
	for more := false; ; {
		if !more {
			select {
			case <-x.written.wake:
			case <-ctx.Done():
				return nil
			}
		}
		delay.Reset(warmDelay)
		select {
		case <-delay.C:
		case <-ctx.Done():
			return nil
		}
		var names []string
		names, more = x.written.take()
		for _, name := range names {
			if err := x.warm(ctx, name); err != nil && ctx.Err() == nil {
				x.o.Logger.Debug("indexes are not brought up to date", zap.String("copy", name), zap.Error(err))
			}
		}
	}
}

// warm has the indexes of a copy brought up to date, except those of design
// documents that do not want it ("autoupdate": false).
func (x *Indexes) warm(ctx context.Context, copyName string) error {
	_, name, _, ok := ring.ParseCopyName(copyName)
	if !ok {
		return nil
	}
	var wanted []index.Definition
	err := x.o.Coordinator.Do(ctx, name, func(db *cluster.DB) (err error) {
		wanted, err = x.Wanted(ctx, db)
		return err
	})
	for _, d := range wanted {
		if !d.Manual {
			x.o.Manager.Warm(ctx, copyName, d)
		}
	}
	return err
}

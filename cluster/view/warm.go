package view

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/shard/ring"
	index "divan/shard/view"
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
func (v *Views) Updated(copyName string) {
	w := &v.written
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
func (v *Views) Run(ctx context.Context) error {
	delay := time.NewTimer(warmDelay)
	defer delay.Stop()
	for more := false; ; {
		if !more {
			select {
			case <-v.written.wake:
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
		names, more = v.written.take()
		for _, name := range names {
			if err := v.warm(ctx, name); err != nil && ctx.Err() == nil {
				v.o.Logger.Debug("indexes are not brought up to date", zap.String("copy", name), zap.Error(err))
			}
		}
	}
}

// warm has the indexes of a copy brought up to date, except those of design
// documents that do not want it ("autoupdate": false).
func (v *Views) warm(ctx context.Context, copyName string) error {
	_, name, _, ok := ring.ParseCopyName(copyName)
	if !ok {
		return nil
	}
	var defs []*index.Definition
	err := v.o.Coordinator.Do(ctx, name, func(db *cluster.DB) error {
		designs, err := v.o.Designs.All(ctx, db)
		if err != nil {
			return err
		}
		for _, d := range designs {
			def, err := d.Definition(db.Meta().Partitioned)
			if err == nil && def != nil && string(d.Member("autoupdate")) != "false" {
				defs = append(defs, def)
			}
		}
		return nil
	})
	if err == nil && len(defs) > 0 {
		v.o.Indexes.Warm(ctx, copyName, defs)
	}
	return err
}

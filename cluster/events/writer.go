package events

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/quorum"
	"divan/shard/ring"
	"divan/storage/fault"
)

const (
	batchSize  = 500         // documents in one request
	retryAfter = time.Second // until what could not be written is tried again
)

// Writer writes what happens to databases.
type Writer struct {
	Queue  *Queue
	Meta   *meta.Meta
	Config *config.Holder
	Log    *zap.Logger
	Node   Node

	schedule *schedule // of the goroutine that writes
}

// Node is the one that writes.
type Node interface {
	// IsFirst reports whether it is the first of those nodes that can be reached.
	IsFirst(nodes []string) bool
	// Touch makes a new revision of each document of the database of events.
	Touch(ctx context.Context, ids []string) error
}

// Start begins to write, until stop is called, which waits for it.
func (w *Writer) Start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var writing sync.WaitGroup
	wake := w.Queue.open()
	writing.Go(func() {
		w.schedule = newSchedule()
		w.run(ctx, wake)
	})
	return func() {
		cancel()
		writing.Wait()
		w.Queue.shut()
	}
}

func (w *Writer) run(ctx context.Context, wake <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if due, ok := w.schedule.next(); ok {
			timer.Reset(time.Until(due))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
			w.notice(time.Now())
		case <-timer.C:
			w.flush(ctx)
		}
	}
}

// notice moves to the schedule what is this node's to write.
func (w *Writer) notice(now time.Time) {
	copies, events, lost := w.Queue.take()
	set := w.Config.Load().GlobalChanges
	target, there := w.Meta.Database(GlobalChanges)
	if !there || !set.UpdateDB {
		w.schedule.clear()
		return
	}
	if lost > 0 {
		w.Log.Warn("too much happens to databases, some of it is not told", zap.Int("events", lost))
	}
	w.schedule.delays(set.MaxEventDelay, set.MaxWriteDelay)
	for _, id := range events {
		if w.Node.IsFirst(target.Holders(id)) {
			w.schedule.urgent(id, now)
		}
	}
	for name := range copies {
		if db, ok := w.Mine(name); ok {
			w.schedule.update(UpdatedPrefix+db, now)
		}
	}
}

// Mine returns the database of a copy when this node is to tell of its
// updates: the first one that can be reached of those that hold the range.
func (w *Writer) Mine(copyName string) (name string, ok bool) {
	r, name, suffix, ok := ring.ParseCopyName(copyName)
	if !ok {
		return "", false
	}
	db, ok := w.Meta.Database(name)
	if !ok || db.Suffix != suffix {
		return "", false
	}
	for _, s := range db.Shards {
		if s.Range == r {
			return name, w.Node.IsFirst(s.Nodes())
		}
	}
	return "", false
}

// flush writes what is due.
func (w *Writer) flush(ctx context.Context) {
	ids := w.schedule.take(time.Now())
	for len(ids) > 0 && ctx.Err() == nil {
		n := min(len(ids), batchSize)
		err := w.Node.Touch(ctx, ids[:n])
		switch {
		case err == nil:
		case fault.Is(err, fault.NotFound): // the database is gone, and its events with it
			w.schedule.clear()
			return
		case quorum.Usable(err):
			w.Log.Error("events of databases are lost", zap.Int("events", n), zap.Error(err))
		default:
			w.Log.Debug("events of databases are written later", zap.Int("events", n), zap.Error(err))
			w.schedule.again(ids, time.Now().Add(retryAfter))
			return
		}
		ids = ids[n:]
	}
}

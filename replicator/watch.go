package replicator

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/meta"
	"divan/replicator/spec"
	"divan/storage/doc"
	"divan/storage/pause"
)

// watcher follows one replicator database.
type watcher struct {
	stop    context.CancelFunc
	done    chan struct{}
	restart context.CancelFunc // has it read everything again; guarded by Replicator.mu
}

// watchAll follows all replicator databases until ctx ends.
func (r *Replicator) watchAll(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	for ctx.Err() == nil {
		events, dbs := r.o.Meta.Subscribe()
		r.watchOnly(ctx, &watching, dbs)
		for {
			list, err := events.Next(ctx)
			if err != nil {
				break // ErrLagged: all begins again
			}
			for _, e := range list {
				switch {
				case e.Kind == meta.Created && spec.IsDatabase(e.New.Name):
					r.watch(ctx, &watching, e.New.Name)
				case e.Kind == meta.Deleted && spec.IsDatabase(e.Old.Name):
					r.unwatch(e.Old.Name)
				}
			}
		}
		events.Close()
	}
}

// watchOnly follows the replicator databases among dbs and no others.
func (r *Replicator) watchOnly(ctx context.Context, watching *sync.WaitGroup, dbs meta.Databases) {
	r.mu.Lock()
	var gone []string
	for name := range r.mu.watching {
		if _, ok := dbs.Get(name); !ok {
			gone = append(gone, name)
		}
	}
	r.mu.Unlock()
	for _, name := range gone {
		r.unwatch(name)
	}
	for db := range dbs.All() {
		if spec.IsDatabase(db.Name) {
			r.watch(ctx, watching, db.Name)
		}
	}
}

// watch follows a replicator database, unless it is followed already.
func (r *Replicator) watch(ctx context.Context, watching *sync.WaitGroup, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.watching[name] != nil {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	w := &watcher{stop: stop, done: make(chan struct{})}
	r.mu.watching[name] = w
	r.stats.dbsFound.Add(1)
	watching.Go(func() {
		defer close(w.done)
		defer stop()
		for ctx.Err() == nil {
			again, err := r.follow(ctx, w, name)
			if err != nil && ctx.Err() == nil {
				r.log.Debug("a replicator database cannot be read now", zap.String("database", name), zap.Error(err))
			}
			if !again {
				_ = pause.For(ctx, time.Second) // the loop looks at ctx
			}
		}
	})
}

// unwatch no longer follows a database and stops its replications.
func (r *Replicator) unwatch(name string) {
	r.mu.Lock()
	w := r.mu.watching[name]
	delete(r.mu.watching, name)
	r.mu.Unlock()
	if w != nil {
		w.stop()
		<-w.done
	}
	r.forgetDatabase(name)
}

// follow reads the documents of a database, and then what changes, until it
// fails or is told to begin again.
func (r *Replicator) follow(ctx context.Context, w *watcher, name string) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	w.restart = cancel
	r.mu.Unlock()
	db, err := r.o.Coordinator.DB(ctx, name)
	if err != nil {
		return false, err
	}
	feed, err := db.Changes(ctx, cluster.ChangesQuery{Limit: cluster.NoLimit, IncludeDocs: true})
	if err != nil {
		return ctx.Err() != nil, err
	}
	defer feed.Close()
	r.stats.dbScans.Add(1)
	there := map[string]bool{} // documents, until all were read once
	for {
		for feed.Next() {
			row := feed.Row()
			if strings.HasPrefix(row.ID, doc.DesignPrefix) {
				continue
			}
			r.stats.dbChanges.Add(1)
			key := docKey{name, row.ID}
			if row.Deleted || row.Doc == nil || row.Doc.Deleted {
				r.forget(key)
				continue
			}
			if there != nil {
				there[row.ID] = true
			}
			r.seen(ctx, key, row.Doc)
		}
		if err := feed.Err(); err != nil {
			return ctx.Err() != nil, err
		}
		if there != nil {
			r.keepOnly(name, there)
			there = nil
		}
		if err := feed.Wait(ctx); err != nil {
			return ctx.Err() != nil, err
		}
	}
}

// keepOnly forgets the documents of a database that are not there any more.
func (r *Replicator) keepOnly(db string, there map[string]bool) {
	for _, d := range r.documents(db) {
		if !there[d.key.id] {
			r.forget(d.key)
		}
	}
}

// followOwners stops what belongs to other nodes now, and has documents read
// again when this node got slots, until ctx ends.
func (r *Replicator) followOwners(ctx context.Context) {
	var terms [meta.SlotCount]uint64 // of the slots of this node; 0: another one's
	for {
		changed := r.o.Owners.Changed()
		more := false
		for slot := range terms {
			term, mine := r.o.Owners.Mine(slot)
			if !mine {
				term = 0
			}
			more = more || term != 0 && term != terms[slot]
			terms[slot] = term
		}
		r.stopLost(&terms)
		if more {
			r.readAgain()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// stopLost stops the replications that are not this node's any more.
func (r *Replicator) stopLost(terms *[meta.SlotCount]uint64) {
	for _, d := range r.documents("") {
		if terms[d.slot] != d.term {
			r.forget(d.key)
		}
	}
	for _, s := range r.runner.Jobs() {
		if j := jobOf(s); j.doc == nil && terms[j.slot] != j.term {
			r.lose(j)
		}
	}
}

// readAgain has all documents read again.
func (r *Replicator) readAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.mu.watching {
		if w.restart != nil {
			w.restart()
		}
	}
}

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
	restart context.CancelFunc // has it read everything again; guarded by watchers.mu
}

// watchers follow the replicator databases, each of which one watcher reads.
//
// LOCKS: mu guards the watchers; it is a leaf.
type watchers struct {
	coordinator *cluster.Coordinator
	meta        *meta.Meta
	docs        *Documents
	stats       *counters
	log         *zap.Logger

	mu struct {
		sync.Mutex
		watching map[string]*watcher // by replicator database
	}
}

func newWatchers(o *Options, docs *Documents, stats *counters) *watchers {
	s := &watchers{coordinator: o.Coordinator, meta: o.Meta, docs: docs, stats: stats, log: o.Logger}
	s.mu.watching = map[string]*watcher{}
	return s
}

// watchAll follows all replicator databases until ctx ends.
func (s *watchers) watchAll(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	for ctx.Err() == nil {
		events, dbs := s.meta.Subscribe()
		s.watchOnly(ctx, &watching, dbs)
		for {
			list, err := events.Next(ctx)
			if err != nil {
				break // ErrLagged: all begins again
			}
			for _, e := range list {
				switch {
				case e.Kind == meta.Created && spec.IsDatabase(e.New.Name):
					s.watch(ctx, &watching, e.New.Name)
				case e.Kind == meta.Deleted && spec.IsDatabase(e.Old.Name):
					s.unwatch(e.Old.Name)
				}
			}
		}
		events.Close()
	}
}

// watchOnly follows the replicator databases among dbs and no others.
func (s *watchers) watchOnly(ctx context.Context, watching *sync.WaitGroup, dbs meta.Databases) {
	s.mu.Lock()
	var gone []string
	for name := range s.mu.watching {
		if _, ok := dbs.Get(name); !ok {
			gone = append(gone, name)
		}
	}
	s.mu.Unlock()
	for _, name := range gone {
		s.unwatch(name)
	}
	for db := range dbs.All() {
		if spec.IsDatabase(db.Name) {
			s.watch(ctx, watching, db.Name)
		}
	}
}

// watch follows a replicator database, unless it is followed already.
func (s *watchers) watch(ctx context.Context, watching *sync.WaitGroup, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.watching[name] != nil {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	w := &watcher{stop: stop, done: make(chan struct{})}
	s.mu.watching[name] = w
	s.stats.dbsFound.Add(1)
	watching.Go(func() {
		defer close(w.done)
		defer stop()
		for ctx.Err() == nil {
			again, err := s.follow(ctx, w, name)
			if err != nil && ctx.Err() == nil {
				s.log.Debug("a replicator database cannot be read now", zap.String("database", name), zap.Error(err))
			}
			if !again {
				_ = pause.For(ctx, time.Second) // the loop looks at ctx
			}
		}
	})
}

// unwatch no longer follows a database and stops its replications.
func (s *watchers) unwatch(name string) {
	s.mu.Lock()
	w := s.mu.watching[name]
	delete(s.mu.watching, name)
	s.mu.Unlock()
	if w != nil {
		w.stop()
		<-w.done
	}
	s.docs.forgetDatabase(name)
}

// follow reads the documents of a database, and then what changes, until it
// fails or is told to begin again.
func (s *watchers) follow(ctx context.Context, w *watcher, name string) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	w.restart = cancel
	s.mu.Unlock()
	db, err := s.coordinator.DB(ctx, name)
	if err != nil {
		return false, err
	}
	feed, err := db.Changes(ctx, cluster.ChangesQuery{Limit: cluster.NoLimit, IncludeDocs: true})
	if err != nil {
		return ctx.Err() != nil, err
	}
	defer feed.Close()
	s.stats.dbScans.Add(1)
	there := map[string]bool{} // documents, until all were read once
	for {
		for feed.Next() {
			row := feed.Row()
			if strings.HasPrefix(row.ID, doc.DesignPrefix) {
				continue
			}
			s.stats.dbChanges.Add(1)
			key := docKey{name, row.ID}
			if row.Deleted || row.Doc == nil || row.Doc.Deleted {
				s.docs.forget(key)
				continue
			}
			if there != nil {
				there[row.ID] = true
			}
			s.docs.seen(ctx, key, row.Doc)
		}
		if err := feed.Err(); err != nil {
			return ctx.Err() != nil, err
		}
		if there != nil {
			s.docs.keepOnly(name, there)
			there = nil
		}
		if err := feed.Wait(ctx); err != nil {
			return ctx.Err() != nil, err
		}
	}
}

// readAgain has all documents read again.
func (s *watchers) readAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.mu.watching {
		if w.restart != nil {
			w.restart()
		}
	}
}

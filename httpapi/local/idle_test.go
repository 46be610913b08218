package local_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"divan/replicator/endpoint"
	"divan/replicator/local"
	"divan/replicator/protocol"
	"divan/replicator/spec"
	"divan/shard"
)

// memory is what the process holds after a collection: heap and stacks.
func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools let go of
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// skipShort leaves a test out of short runs: those are for the race detector,
// which has memory of its own for everything.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("memory is measured without the race detector")
	}
}

// TestIdleFeeds: a feed that waits holds no store, no iterator and little memory.
func TestIdleFeeds(t *testing.T) {
	skipShort(t)
	const feeds = 2000
	w := newWorld(t, 2)
	w.put(t, "a", shard.Edit{ID: "x", Body: []byte("{}")})
	from := w.opener.Open("a", local.Of(admin()))
	ctx, cancel := context.WithCancel(t.Context())
	before := memory()
	var running sync.WaitGroup
	shown := make(chan struct{}, feeds)
	for range feeds {
		running.Go(func() {
			feed, err := from.Changes(ctx, endpoint.ChangesQuery{Continuous: true})
			if err != nil {
				t.Error(err)
				return
			}
			defer feed.Close()
			rows := make([]endpoint.Change, 16)
			for {
				if n, err := feed.Next(ctx, rows); err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				} else if n > 0 {
					shown <- struct{}{}
				}
			}
		})
	}
	for range feeds {
		<-shown
	}
	each := (memory() - before) / feeds
	t.Logf("%d bytes each", each)
	if each > 20<<10 {
		t.Errorf("%d bytes for a feed that waits", each)
	}
	w.put(t, "a", shard.Edit{ID: "y", Body: []byte("{}")})
	for range feeds {
		<-shown
	}
	cancel()
	running.Wait()
}

// TestIdleReplications is the same for whole replications between two databases.
func TestIdleReplications(t *testing.T) {
	skipShort(t)
	const jobs = 2000
	w := newWorld(t, 2)
	w.put(t, "a", shard.Edit{ID: "x", Body: []byte("{}")})
	ctx, cancel := context.WithCancel(t.Context())
	before := memory()
	var running sync.WaitGroup
	progress := make([]protocol.Progress, jobs)
	for i := range jobs {
		running.Go(func() {
			_, err := protocol.Run(ctx, protocol.Options{
				Spec: &spec.Spec{
					Options: spec.Options{
						UseCheckpoints: true, CheckpointInterval: time.Second, UseBulkGet: true, Workers: 4, BatchSize: 500,
					},
					User: admin(), Continuous: true,
				},
				ID: spec.ID{Base: fmt.Sprint(i)}, Progress: &progress[i],
				Source: w.opener.Open("a", local.Of(admin())), Target: w.opener.Open("b", local.Of(admin())), Logger: zap.NewNop(),
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	for i := range progress {
		for progress[i].Snapshot().CheckpointedSeq == "" {
			runtime.Gosched()
		}
	}
	each := (memory() - before) / jobs
	t.Logf("%d bytes each, %d goroutines", each, runtime.NumGoroutine())
	if each > 50<<10 {
		t.Errorf("%d bytes for a replication that waits", each)
	}
	cancel()
	running.Wait()
}

package reshard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/fault"
)

const (
	whole  = "00000000-ffffffff:0"
	halves = "00000000-7fffffff:0 80000000-ffffffff:0"
)

// untilStopped is a clone that takes for ever.
func untilStopped(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestSplit(t *testing.T) {
	inTown(t, nil, []string{"pond"}, func(w *town) {
		t := w.t
		id := w.mustSplit("pond")
		if got := w.state(id, time.Minute); got != "completed completed " {
			t.Error(got)
		}
		if got := w.ranges("pond", 0); got != halves {
			t.Error(got)
		}
		const low, high = "00000000-7fffffff", "80000000-ffffffff"
		const both = "clone 00000000-ffffffff "
		want := []string{
			both + low, both + high, both + low, both + high, "index " + low, "index " + high, both + low, both + high,
			"locals " + low, "locals " + high,
		}
		for i := 0; i < len(w.done); i += 2 { // both are cloned at once
			if strings.HasPrefix(w.done[i], "clone") {
				slices.Sort(w.done[i:min(i+2, len(w.done))])
			}
		}
		if !slices.Equal(w.done, want) {
			t.Errorf("%q", w.done)
		}
		if len(w.r.Tasks()) != 0 {
			t.Errorf("%+v", w.r.Tasks())
		}
	})
}

// Two jobs for one shard there never are, also when the second one comes later, nor one for
// what a job makes.
func TestOneJobForAShard(t *testing.T) {
	inTown(t, nil, []string{"pond"}, func(w *town) {
		t := w.t
		w.onClone(untilStopped)
		id := w.mustSplit("pond")
		for range 2 {
			if _, err := w.split("pond"); !errors.Is(err, ErrJobExists) {
				t.Error(err)
			}
			w.state(id, time.Second)
		}
		db, _ := w.group.Database("pond")
		for i := range db.Shards[1:] {
			if _, err := w.splitOf(db, 1+i); !errors.Is(err, ErrJobExists) {
				t.Error(err)
			}
		}
	})
}

// What has failed is tried again, and then the job says why; it can be resumed.
func TestFailures(t *testing.T) {
	inTown(t, map[string]string{"max_retries": "2", "retry_interval_sec": "10"}, []string{"pond"}, func(w *town) {
		t := w.t
		w.onClone(func(context.Context, string) error { return errors.New("the disk is full") })
		id := w.mustSplit("pond")
		if got := w.state(id, 15*time.Second); got != "running initial_copy the disk is full" {
			t.Error(got)
		}
		if got := w.state(id, 15*time.Second); got != "failed initial_copy the disk is full" {
			t.Error(got)
		}
		w.onClone(nil)
		if err := w.r.table.ResumeJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := w.state(id, time.Minute); got != "completed completed " {
			t.Error(got)
		}
	})
}

// Without a leader nothing happens, and nothing fails.
func TestNoLeader(t *testing.T) {
	inTown(t, nil, []string{"pond"}, func(w *town) {
		t := w.t
		id := w.mustSplit("pond")
		w.group.SetDown(true)
		w.state(id, time.Hour)
		w.group.SetDown(false)
		if got := w.state(id, time.Minute); got != "completed completed " {
			t.Error(got)
		}
	})
}

// Jobs of a database that was deleted are gone with it, also from the records, in any state; jobs
// of the next database of that name are its own.
func TestDatabaseGone(t *testing.T) {
	inTown(t, nil, []string{"pond", "lake"}, func(w *town) {
		t := w.t
		done := w.mustSplit("pond")
		if got := w.state(done, time.Minute); got != "completed completed " {
			t.Error(got)
		}
		w.onClone(func(ctx context.Context, name string) error {
			w.group.Delete("lake")
			return fault.New(fault.NoCopy, "the copy is gone")
		})
		failed := w.mustSplit("lake")
		w.group.Delete("pond")
		if !w.gone(done) {
			t.Error("the job of a deleted database is still there")
		}
		pass(time.Second)
		if jobs := w.r.table.Jobs(); !w.gone(failed) || len(jobs) != 0 {
			t.Errorf("%d jobs of deleted databases", len(jobs))
		}
		if err := w.r.table.ResumeJob(t.Context(), failed); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
		if left := w.group.Records(jobPrefix); len(left) != 0 {
			t.Errorf("%d records of jobs of deleted databases", len(left))
		}
		w.onClone(nil)
		w.group.Create("pond", ring.Full())
		if got := w.state(w.mustSplit("pond"), time.Minute); got != "completed completed " {
			t.Error("the next database of that name:", got)
		}
	})
}

// A job that is stopped leaves what it has made, and goes on there.
func TestStopJob(t *testing.T) {
	inTown(t, nil, []string{"pond"}, func(w *town) {
		t := w.t
		w.onClone(untilStopped)
		id := w.mustSplit("pond")
		w.state(id, time.Minute) // both targets are there, however often their node has to be asked
		if tasks := w.r.Tasks(); len(tasks) != 1 || tasks[0].Step != job.InitialCopy || tasks[0].Done != 2 || tasks[0].Total != 4 {
			t.Errorf("%+v", tasks)
		}
		if err := w.r.table.StopJob(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		if got := w.state(id, time.Second); got != "stopped initial_copy enough" || len(w.r.Tasks()) != 0 {
			t.Errorf("%s, %+v", got, w.r.Tasks())
		}
		if got := w.ranges("pond", 0); got != "00000000-7fffffff:2 "+whole+" 80000000-ffffffff:2" {
			t.Error(got)
		}
		w.onClone(nil)
		if err := w.r.table.ResumeJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := w.state(id, time.Minute); got != "completed completed " {
			t.Error(got)
		}
	})
}

// While all is stopped nothing runs; what a user has stopped stays so afterwards.
func TestStopAll(t *testing.T) {
	inTown(t, nil, []string{"lake", "pond"}, func(w *town) {
		t := w.t
		w.onClone(untilStopped)
		lake, table := w.mustSplit("lake"), w.r.table
		w.state(lake, time.Second)
		if err := table.Stop(t.Context(), "tests"); err != nil {
			t.Fatal(err)
		}
		pond := w.mustSplit("pond")
		w.onClone(nil)
		for id, step := range map[string]string{lake: "initial_copy", pond: "new"} {
			if got := w.state(id, time.Minute); got != "stopped "+step+" "+job.Disabled {
				t.Error(got)
			}
		}
		if err := table.ResumeJob(t.Context(), lake); !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
		if err := table.StopJob(t.Context(), pond, "enough"); err != nil {
			t.Error(err)
		}
		if err := table.Start(t.Context()); err != nil {
			t.Error(err)
		}
		if a, b := w.state(lake, time.Minute), w.state(pond, 0); a != "completed completed " || b != "stopped new enough" {
			t.Error(a, b)
		}
	})
}

// A job that is removed leaves nothing behind, and another one may come.
func TestRemove(t *testing.T) {
	inTown(t, nil, []string{"pond"}, func(w *town) {
		t := w.t
		w.onClone(untilStopped)
		id := w.mustSplit("pond")
		w.state(id, time.Second)
		if err := w.r.table.Remove(t.Context(), id); err != nil || !w.gone(id) {
			t.Fatal(err)
		}
		w.onClone(nil)
		if got := w.ranges("pond", time.Second); got != whole {
			t.Error(got)
		}
		again := w.mustSplit("pond")
		if got := w.state(again, time.Minute); got != "completed completed " || again != id {
			t.Error(got)
		}
		if err := w.r.table.Remove(t.Context(), id); err != nil || !w.gone(id) || len(w.r.table.entries()) != 0 {
			t.Error(err)
		}
		if err := w.r.table.Remove(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	})
}

// A job goes on at any point at which its node was stopped.
func TestRestart(t *testing.T) {
	for point := range 40 {
		inTown(t, nil, []string{"pond"}, func(w *town) {
			t := w.t
			w.onClone(func(ctx context.Context, _ string) error {
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
				}
				return ctx.Err()
			})
			id := w.mustSplit("pond")
			for range 5 {
				<-time.After(time.Duration(point) * 7 * time.Millisecond)
				w.stop()
				w.start()
			}
			if got := w.state(id, time.Minute); got != "completed completed " {
				t.Error(point, got)
			}
			if got := w.ranges("pond", 0); got != halves {
				t.Error(point, got)
			}
		})
	}
}

// Databases take turns at the places that there are.
func TestPlaces(t *testing.T) {
	dbs := []string{"a", "b", "c", "d"}
	inTown(t, map[string]string{"max_jobs": "4"}, dbs, func(w *town) {
		t := w.t
		var mu sync.Mutex // the halves of a shard are cloned at once
		var most int
		w.onClone(func(context.Context, string) error {
			mu.Lock()
			defer mu.Unlock()
			most = max(most, len(w.r.Tasks()))
			return nil
		})
		if err := w.r.table.Stop(t.Context(), "wait"); err != nil {
			t.Fatal(err)
		}
		for _, db := range dbs {
			w.mustSplit(db)
		}
		w.group.Create("e", ring.Full())
		if _, err := w.split("e"); !errors.Is(err, ErrMaxJobs) {
			t.Error(err)
		}
		w.config.SetVolatile("reshard", "max_jobs", "2")
		if err := w.r.table.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		for _, j := range w.r.table.Jobs() {
			if j.State != job.Completed {
				t.Errorf("%+v", j)
			}
		}
		if most != 2 {
			t.Errorf("%d at a time", most)
		}
	})
}

// Of jobs that have ended the newest are kept.
func TestBound(t *testing.T) {
	w := newTown(t, nil, "pond")
	table := NewTable(w.group, w.group, w.config)
	for i := range maxEnded + 2 {
		name := fmt.Sprintf("db%04d", i)
		j := job.NewJob(&job.Source{
			Type: job.Split, Node: self, Database: name, DatabaseID: w.group.Create(name, ring.Full()).ID, Suffix: "1763600000", Range: ring.Full(),
		}, int64(i))
		j.Finish(int64(i), 1)
		if err := table.put(t.Context(), &entry{j.ID(), 0, j}); err != nil {
			t.Fatal(err)
		}
	}
	db, _ := w.group.Database("pond")
	source, err := SplitOf(db, ring.Full(), db.Shards[0].Copies[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	jobs := table.Jobs()
	if len(jobs) != maxEnded || jobs[0].Database != "db0003" {
		t.Errorf("%d jobs from %s on", len(jobs), jobs[0].Database)
	}
	w.group.Delete("db0003")
	w.group.Create("lake", ring.Full())
	lake, _ := w.group.Database("lake")
	if source, err = SplitOf(lake, ring.Full(), lake.Shards[0].Copies[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if left := w.group.Records(jobPrefix); len(left) != maxEnded+1 {
		t.Errorf("%d records", len(left))
	}
}

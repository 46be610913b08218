package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running starts a runner for a test.
func running(t *testing.T, s Settings) *Runner {
	t.Helper()
	r := NewRunner(RunnerOptions{
		Settings: func() Settings { return s },
		Jitter:   func() time.Duration { return 0 },
		Describe: func(err error) string { return err.Error() },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return r
}

func untilStopped(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Fifty jobs share three places, and each gets its turn.
func TestRunnerTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someSettings()
		r := running(t, s)
		var now, most atomic.Int64
		var ran [50]atomic.Int64
		for i := range ran {
			r.Add(&Job{ID: fmt.Sprint(i), Continuous: true, Run: func(ctx context.Context) error {
				ran[i].Add(1)
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer now.Add(-1)
				return untilStopped(ctx)
			}})
		}
		time.Sleep(30 * s.Interval)
		synctest.Wait() // the turn of this moment is over
		if most.Load() != 3 {
			t.Errorf("%d jobs ran at once", most.Load())
		}
		for i := range ran {
			if ran[i].Load() == 0 {
				t.Errorf("job %d has not run", i)
			}
		}
		f := r.Figures()
		if f.Total != 50 || f.Running != 3 || f.Pending != 47 || f.Adds != 50 || f.Starts != f.Stops+3 {
			t.Errorf("%+v", f)
		}
	})
}

func TestRunnerCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := running(t, someSettings())
		var starts []time.Duration
		begin := time.Now()
		job := &Job{ID: "x", Run: func(context.Context) error {
			starts = append(starts, time.Since(begin))
			if len(starts) == 4 {
				return nil
			}
			return errors.New("no luck")
		}}
		ended := make(chan error, 1)
		job.Ended = func(_ context.Context, err error) { ended <- err }
		r.Add(job)
		if there := r.Add(&Job{ID: "x"}); there != job {
			t.Errorf("a second one with the same id: %v", there)
		}
		time.Sleep(time.Second)
		if s := r.State(job); !s.Crashing || s.Reason != "no luck" || s.Crashes != 1 || len(s.History) != 3 || s.LastUpdated() != begin {
			t.Errorf("%+v", s)
		}
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		if got := fmt.Sprint(starts); got != "[0s 30s 1m30s 3m30s]" {
			t.Errorf("started after %s", got)
		}
		if r.Get("x") != nil || len(r.Jobs()) != 0 {
			t.Error("a job that is done is still there")
		}
	})
}

func TestRunnerTransientCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := running(t, someSettings())
		ended := make(chan error, 1)
		r.Add(&Job{
			ID: "x", Continuous: true, Transient: true, Run: func(context.Context) error { return errors.New("no luck") },
			Ended: func(_ context.Context, err error) { ended <- err },
		})
		if err := <-ended; err == nil || err.Error() != "no luck" {
			t.Errorf("ended with %v", err)
		}
		if r.Get("x") != nil {
			t.Error("it is still there")
		}
	})
}

// A job that is removed stops, and one with the same id starts when it has.
func TestRunnerRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := running(t, someSettings())
		var stopped, began atomic.Bool
		first := &Job{ID: "x", Continuous: true, Run: func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(5 * time.Second)
			stopped.Store(true)
			return ctx.Err()
		}}
		r.Add(first)
		synctest.Wait()
		if !r.Remove(first) || r.Remove(first) {
			t.Error("it can be removed once")
		}
		r.Add(&Job{ID: "x", Continuous: true, Run: func(ctx context.Context) error {
			if began.Store(true); !stopped.Load() {
				t.Error("two runs at once")
			}
			return untilStopped(ctx)
		}})
		time.Sleep(6 * time.Second)
		if !began.Load() {
			t.Error("the second one does not run")
		}
	})
}

// Jobs that start together are spread.
func TestRunnerJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someSettings()
		s.MaxJobs = 100
		r := NewRunner(RunnerOptions{
			Settings: func() Settings { return s }, Jitter: func() time.Duration { return 5 * time.Second },
			Describe: func(err error) string { return err.Error() },
		})
		var mu sync.Mutex
		at := map[time.Time]int{}
		for i := range 100 {
			r.Add(&Job{ID: fmt.Sprint(i), Continuous: true, Run: func(ctx context.Context) error {
				mu.Lock()
				at[time.Now()]++
				mu.Unlock()
				return untilStopped(ctx)
			}})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = r.Run(ctx) })
		time.Sleep(5 * time.Second)
		cancel()
		done.Wait()
		if len(at) < 90 {
			t.Errorf("100 jobs started at %d moments", len(at))
		}
	})
}

package fairqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBusy = errors.New("busy")

// work takes turns until so much work is done, and tells the longest wait.
func work(ctx context.Context, t *testing.T, q *Queue, f Flow, length time.Duration) (longest time.Duration) {
	t.Helper()
	var turn Turn
	began := time.Now()
	if err := q.Acquire(ctx, &turn, f, began, time.Minute); err != nil {
		t.Error(err)
		return 0
	}
	longest = time.Since(began)
	for left := length; left > 0; left -= time.Millisecond {
		<-time.After(time.Millisecond)
		if turn.Wanted(time.Now()) {
			waited, err := turn.Yield(ctx, time.Now())
			if err != nil {
				t.Error(err)
				return longest
			}
			longest = max(longest, waited)
		}
	}
	turn.Release(time.Now())
	return longest
}

// TestTurnsAreGivenUpHalfWay: holders that work for seconds hold up no other caller for
// longer than a slice.
func TestTurnsAreGivenUpHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Capacity: 2, Busy: errBusy})
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() { work(t.Context(), t, q, Flow{Database: "hostile"}, 2*time.Second) })
		}
		synctest.Wait()
		for range 50 {
			if waited := work(t.Context(), t, q, Flow{Database: "innocent"}, time.Millisecond); waited > 2*Slice {
				t.Errorf("waited for %v", waited)
			}
		}
		all.Wait()
		if s := q.Stats(); s.Held != 0 || s.Waiting != 0 || s.Refused != 0 || s.Given < 60*100 {
			t.Errorf("%+v", s)
		}
	})
}

func TestEndsOfWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Capacity: 1, Busy: errBusy})
		var held Turn
		if err := q.Acquire(t.Context(), &held, Flow{}, time.Now(), time.Second); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var turn Turn
		if err := q.Acquire(ctx, &turn, Flow{}, time.Now(), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		began := time.Now()
		if err := q.Acquire(t.Context(), &turn, Flow{}, time.Now(), 5*time.Second); !errors.Is(err, errBusy) || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		// One whose turn comes in the moment that its patience is over has it or has not.
		for range 20 {
			released := make(chan struct{})
			time.AfterFunc(time.Second, func() { held.Release(time.Now()); close(released) })
			switch err := q.Acquire(t.Context(), &turn, Flow{}, time.Now(), time.Second); {
			case err == nil:
				turn.Release(time.Now())
			case !errors.Is(err, errBusy):
				t.Error(err)
			}
			<-released
			if err := q.Acquire(t.Context(), &held, Flow{}, time.Now(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if s := q.Stats(); s.Held != 1 || s.Waiting != 0 || s.Refused == 0 {
			t.Errorf("%+v", s)
		}
		var waits sync.WaitGroup
		for range 3 {
			waits.Go(func() {
				var turn Turn
				if err := q.Acquire(t.Context(), &turn, Flow{}, time.Now(), time.Hour); !fault.Is(err, fault.Closed) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		q.Close()
		waits.Wait()
		if err := q.Acquire(t.Context(), &turn, Flow{}, time.Now(), 0); !fault.Is(err, fault.Closed) {
			t.Error(err)
		}
		held.Release(time.Now())
		if s := q.Stats(); s.Held != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestThoseThatAreAwayHoldUpNobody: a holder that waits for something else loses its turn
// to one who wants it, keeps it otherwise, and gets another when it comes back.
func TestThoseThatAreAwayHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		may := true
		q := New(Options{Capacity: 1, Busy: errBusy, Yielded: func(*Turn) bool { return may }})
		var away, other Turn
		if err := q.Acquire(t.Context(), &away, Flow{Database: "a"}, time.Now(), 0); err != nil {
			t.Fatal(err)
		}
		leave := func(d time.Duration, wanted bool) {
			t.Helper()
			away.Leave(time.Now())
			if wanted {
				began := time.Now()
				if err := q.Acquire(t.Context(), &other, Flow{Database: "b"}, time.Now(), 0); err != nil || time.Since(began) > 2*Slice {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			}
			<-time.After(d)
			if wanted {
				time.AfterFunc(time.Second, func() { other.Release(time.Now()) })
			}
			began := time.Now()
			if err := away.Return(t.Context(), began); err != nil || wanted != (time.Since(began) == time.Second) {
				t.Errorf("came back with %v after %v", err, time.Since(began))
			}
		}
		leave(time.Hour, false)
		leave(time.Minute, true)
		leave(0, false)
		may = false
		away.Leave(time.Now())
		if err := q.Acquire(t.Context(), &other, Flow{Database: "b"}, time.Now(), time.Second); !errors.Is(err, errBusy) {
			t.Error(err)
		}
		may = true
		if err := q.Acquire(t.Context(), &other, Flow{Database: "b"}, time.Now(), 0); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := away.Return(ctx, time.Now()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		away.Release(time.Now())
		other.Release(time.Now())
		if s := q.Stats(); s.Held != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		q.Close()
	})
}

// TestLongestAwayLosesItsTurnFirst: of several holders that are away the one that left
// first loses its turn.
func TestLongestAwayLosesItsTurnFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken []int
		turns := make([]Turn, 30)
		index := map[*Turn]int{}
		q := New(Options{Capacity: 10, Busy: errBusy, Yielded: func(t *Turn) bool { taken = append(taken, index[t]); return true }})
		for i := range turns {
			index[&turns[i]] = i
			if err := q.Acquire(t.Context(), &turns[i], Flow{Database: "a"}, time.Now(), 0); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Millisecond)
			turns[i].Leave(time.Now())
		}
		if len(taken) != 20 || !slices.IsSorted(taken) {
			t.Errorf("the turns were taken in this order: %v", taken)
		}
		for i := range turns {
			turns[i].Abandon()
		}
	})
}

func BenchmarkUncontended(b *testing.B) {
	q := New(Options{Capacity: 2, Shares: true})
	var t Turn
	for b.Loop() {
		if err := q.Acquire(b.Context(), &t, Flow{Database: "/db.1763600000", Account: "mary"}, t.since, 0); err != nil {
			b.Fatal(err)
		}
		t.Release(t.since)
	}
}

package auth

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestSingleflightSharesOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f singleflight[string, int]
		var calls atomic.Int32
		release := make(chan struct{})
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				v, err := f.do(t.Context(), "k", func(context.Context) (int, error) {
					calls.Add(1)
					<-release
					return 7, nil
				})
				if v != 7 || err != nil {
					t.Errorf("got %d, %v", v, err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if calls.Load() != 1 {
			t.Errorf("%d calls for 64 callers", calls.Load())
		}
	})
}

func TestSingleflightGoesOnWhenTheFirstCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f singleflight[string, int]
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := f.do(first, "k", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the first caller got %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			v, err := f.do(t.Context(), "k", func(context.Context) (int, error) { return 7, nil })
			if v != 7 || err != nil {
				t.Errorf("the second caller got %d, %v", v, err)
			}
		})
		impatient, giveUp := context.WithCancel(t.Context())
		wg.Go(func() {
			_, err := f.do(impatient, "k", func(context.Context) (int, error) { return 7, nil })
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the caller who gave up got %v", err)
			}
		})
		synctest.Wait()
		giveUp()
		synctest.Wait()
		leave()
		wg.Wait()
	})
}

func TestSingleflightSurvivesAPanic(t *testing.T) {
	var f singleflight[string, int]
	func() {
		defer func() { _ = recover() }()
		_, _ = f.do(t.Context(), "k", func(context.Context) (int, error) { panic("x") })
	}()
	v, err := f.do(t.Context(), "k", func(context.Context) (int, error) { return 7, nil })
	if v != 7 || err != nil {
		t.Errorf("after a panic: %d, %v", v, err)
	}
}

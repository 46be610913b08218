package fanout

import (
	"sync"
	"sync/atomic"
	"time"
)

// Each runs f for 0 … n-1, all at once, the last one on the caller's
// goroutine, waits for all of them, and returns the error of the lowest number
// that had one.
func Each(n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	if n == 0 {
		return nil
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n - 1 {
		wg.Go(func() { errs[i] = f(i) })
	}
	errs[n-1] = f(n - 1)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// EachSoon is Each for what most likely takes microseconds: the caller's goroutine
// runs one after the other, and when they have not all begun within patience the others
// run at once. Goroutines that start for each request cost more than they save.
func EachSoon(n int, patience time.Duration, f func(i int) error) error {
	if n < 2 {
		return Each(n, f)
	}
	errs := make([]error, n)
	var next atomic.Int32
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			errs[i] = f(i)
		}
	}
	var wg sync.WaitGroup
	started := make(chan struct{})
	timer := time.AfterFunc(patience, func() {
		for range n - 1 {
			wg.Go(work)
		}
		close(started)
	})
	work()
	if !timer.Stop() {
		<-started
		wg.Wait()
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

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

const (
	// atOnce is how many calls EachWithin makes at a time, at most: so many may go beyond its bound.
	atOnce = 8
	// leastShare is how many bytes each of several calls is given, at least.
	leastShare = 1 << 20
)

// EachWithin is Each for calls that read up to maxBytes together, about. It makes a few at a time,
// in order, each with its share of the bytes that are left, and none any more once they have read
// so much: f is not run for the rest. f returns how many bytes it has read. 0: no bound.
func EachWithin(n, maxBytes int, f func(i, share int) (bytes int, err error)) error {
	if maxBytes == 0 {
		return Each(n, func(i int) error {
			_, err := f(i, 0)
			return err
		})
	}
	for first, left := 0, maxBytes; first < n && left > 0; {
		width := min(n-first, atOnce, (left+leastShare-1)/leastShare)
		var bytes [atOnce]int
		err := Each(width, func(i int) (err error) {
			bytes[i], err = f(first+i, max(left/width, 1))
			return err
		})
		if err != nil {
			return err
		}
		for _, b := range bytes {
			left -= b
		}
		first += width
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

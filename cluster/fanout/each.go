package fanout

import "sync"

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

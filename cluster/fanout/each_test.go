package fanout

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestEachSoon: what is quick runs in turn; what is not does not keep the others
// from beginning; every one has run once when it returns.
func TestEachSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []int
		err := EachSoon(4, time.Second, func(i int) error {
			order = append(order, i) // one goroutine
			if i%2 == 1 {
				return errors.New(string(rune('a' + i)))
			}
			return nil
		})
		if len(order) != 4 || order[3] != 3 || err == nil || err.Error() != "b" {
			t.Errorf("in turn: %v, %v", order, err)
		}

		begun := time.Now()
		var all sync.WaitGroup
		all.Add(5)
		var calls atomic.Int32
		err = EachSoon(5, time.Second, func(int) error {
			calls.Add(1)
			all.Done()
			all.Wait() // for all to begin
			return nil
		})
		if took := time.Since(begun); calls.Load() != 5 || took != time.Second || err != nil {
			t.Errorf("%d calls in %v, %v", calls.Load(), took, err)
		}
	})
}

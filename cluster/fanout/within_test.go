package fanout

import (
	"errors"
	"sync"
	"testing"
)

// TestEachWithin: calls are made until they have read enough, each with its share; the first
// error ends them.
func TestEachWithin(t *testing.T) {
	failure := errors.New("failed")
	const mb = 1 << 20
	for _, tc := range []struct {
		n, maxBytes, size, fails int
		calls, share             int // share: the least
	}{
		{0, 100, 10, -1, 0, 0},
		{3, 0, 10, -1, 3, 0},
		{40, 0, 10, -1, 40, 0},
		{3, 9 * mb, mb, -1, 3, 3 * mb},
		{40, 8 * mb, 10, -1, 40, mb - 50},
		{40, 8 * mb, mb, -1, 8, mb},
		{40, 16 * mb, mb, -1, 16, mb},
		{40, 2 * mb, mb, -1, 2, mb},
		{40, 2 * mb, 8 * mb, -1, 2, mb},
		{40, 3, 0, -1, 40, 3},
		{40, 80 * mb, 10, 12, 16, 8 * mb},
	} {
		var mu sync.Mutex
		calls := 0
		err := EachWithin(tc.n, tc.maxBytes, func(i, share int) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			if calls++; share < tc.share {
				t.Errorf("%+v: a share of %d", tc, share)
			}
			if i == tc.fails {
				return 0, failure
			}
			return tc.size, nil
		})
		if calls != tc.calls || errors.Is(err, failure) != (tc.fails >= 0) {
			t.Errorf("%+v: %d calls, %v", tc, calls, err)
		}
	}
}

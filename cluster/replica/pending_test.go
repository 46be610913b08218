package replica

import (
	"testing"
	"testing/synctest"

	"divan/shard"
)

// TestPendingWhileReading asks what is pending while a batch is on its way.
func TestPendingWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		fill1000(t, local)
		for range 50 {
			feed, err := Changes.On(t.Context(), Copy{At: p}, shard.ChangesRequest{Copy: testCopy})
			if err != nil {
				t.Fatal(err)
			}
			rows := make(chan int)
			go func() {
				n := 0
				for more := true; more; {
					var b shard.ChangeBatch
					var err error
					if more, err = feed.Next(&b); err != nil {
						t.Error(err)
					}
					n += len(b.Rows)
				}
				rows <- n
			}()
			for range 5 {
				if n, err := feed.Pending(0); err != nil || n == 0 {
					t.Errorf("%d pending, %v", n, err)
				}
			}
			if n := <-rows; n == 0 {
				t.Error("no rows")
			}
			feed.Close()
		}
	})
}

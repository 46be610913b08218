package fanout_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/fanout"
	"divan/cluster/fanout/fanouttest"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard/ring"
)

// firstHeard has enough as soon as anything is known of a copy.
type firstHeard struct{ unreached, heard []int }

func (*firstHeard) Request(_ int, t ring.Replica) (ring.Replica, bool) { return t, true }

func (f *firstHeard) Take(a fanout.Answer[string], _ int) quorum.Step {
	if a.Unreached {
		f.unreached = append(f.unreached, a.At)
	} else {
		f.heard = append(f.heard, a.At)
	}
	return quorum.Enough
}

// TestDetached: all copies are asked although the decider has enough before, that of this
// node on no other terms than the others, and they go on when the request has ended.
func TestDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frail := &fanouttest.Frail{}
		db := &fanouttest.Database{Copies: map[string]*fanouttest.Frail{"caller": frail, "b": frail, "c": frail}}
		decider, done := &firstHeard{}, make(chan string, 3)
		r := fanout.HedgedRequest[ring.Replica, string]{
			Database: db, Decider: decider, Detached: true,
			Copies: []ring.Replica{{Copy: ring.Copy{Node: "away"}}, {Copy: ring.Copy{Node: "caller"}}, {Copy: ring.Copy{Node: "b"}}, {Copy: ring.Copy{Node: "c"}}},
			Call: func(ctx context.Context, _ replica.Copy, t ring.Replica) (string, error) {
				time.Sleep(map[string]time.Duration{"caller": 2 * time.Second, "b": time.Second, "c": time.Minute}[t.Node])
				done <- t.Node
				return "", ctx.Err()
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		r.Start(ctx, len(r.Copies))
		if err := r.Wait(ctx); err != nil || !r.OwnPending() || r.Left() {
			t.Fatal(err, r.OwnPending(), r.Left())
		}
		if err := r.Wait(ctx); err != nil || r.OwnPending() {
			t.Fatal(err, r.OwnPending())
		}
		r.Limit = time.Second
		if err := r.Wait(ctx); err == nil {
			t.Fatal("it was waited for longer than that")
		}
		cancel()
		if err := r.Wait(ctx); err == nil {
			t.Fatal("it was waited for although the request had ended")
		}
		if !slices.Equal(decider.unreached, []int{0}) || !slices.Equal(decider.heard, []int{2, 1}) {
			t.Fatalf("%+v", decider)
		}
		for _, want := range []string{"b", "caller", "c"} {
			if got := <-done; got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	})
}

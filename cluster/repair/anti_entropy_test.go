package repair

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/config"
	"divan/cluster/meta"
)

// A pass comes past every pair of the node once, at its rate, and a node that
// returned goes first.
func TestAntiEntropy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		holder, err := config.New(config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		group, err := meta.New(meta.Options{Self: meta.Node{Name: "a"}, Bootstrap: true, Config: holder})
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		running.Go(func() {
			if err := group.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		defer running.Wait()
		defer cancel()
		if err := group.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"b", "c", "d"} {
			if err := group.PutNode(ctx, meta.Node{Name: name, ClusterVersion: meta.ClusterVersion}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 30 {
			if _, err := group.CreateDatabase(ctx, meta.Create{Name: fmt.Sprintf("db%02d", i), Q: 2, N: 2}); err != nil {
				t.Fatal(err)
			}
		}
		dbs := group.Databases()
		want := map[pair]bool{}
		withC := 0
		for db := range dbs.All() {
			for _, p := range pairsOf(db, "a") {
				want[p] = true
				if p.node == "c" {
					withC++
				}
			}
		}
		w := antiEntropy{self: "a", jitter: func(time.Duration) time.Duration { return 0 }}
		now := time.Unix(0, 0)
		if pairs, _ := w.next(dbs, now); len(pairs) > 0 {
			t.Error("a pass that nobody asked for")
		}
		w.begin("", true)
		w.begin("c", true)
		seen := map[pair]int{}
		begin := now
		for first := true; len(w.passes) > 0; {
			pairs, wake := w.next(dbs, now)
			for _, p := range pairs {
				seen[p]++
				if p.node != "c" {
					first = false
				} else if !first && seen[p] == 1 {
					t.Errorf("%v comes late", p)
				}
			}
			if !wake.After(now) && len(w.passes) > 0 {
				t.Fatal("no pause")
			}
			now = wake
		}
		for p := range want {
			times := 1
			if p.node == "c" {
				times = 2
			}
			if seen[p] != times {
				t.Errorf("%v was looked at %d times", p, seen[p])
			}
		}
		if least := time.Duration(len(want)+withC-4) * time.Second / briskRate; now.Sub(begin) < least {
			t.Errorf("%d pairs in %v", len(want)+withC, now.Sub(begin))
		}
		// The regular pass comes by itself, and comes to its end however long it
		// takes.
		now = begin.Add(antiEntropyEvery)
		if pairs, _ := w.next(dbs, now); len(pairs) == 0 {
			t.Error("no regular pass")
		}
		after := w.passes[0].after
		if w.next(dbs, now.Add(antiEntropyEvery)); w.passes[0].after <= after {
			t.Error("the pass started over")
		}
	})
}

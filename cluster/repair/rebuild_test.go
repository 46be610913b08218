package repair

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
)

// fill writes documents through one node and waits until all have them.
func (w *world) fill(n int) {
	w.t.Helper()
	for i := range n {
		w.node(0).put(fmt.Sprintf("d%d", i), doc.Rev{}, `{}`)
	}
	w.wait(10 * time.Second)
	w.agree()
}

func lost() shard.CreateOptions { return shard.CreateOptions{Rebuilding: true} }

func TestLostCopyIsRebuilt(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(50)
		b := w.node(1)
		b.lose(lost())
		w.wait(3 * time.Second)
		if b.Rebuilding(b.copy) {
			t.Error("b is not whole")
		}
		w.agree()
	})
}

func TestRebuildWaitsForAllThatCanBeReached(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(50)
		a, b, c := w.node(0), w.node(1), w.node(2)
		// Something that only c has, which is slow.
		c.update = nil
		c.put("only c", doc.Rev{}, `{}`)
		refuse := func(call replica.Call) error {
			if _, ok := call.(*replica.Asked[shard.UpdateRequest, []shard.EditResult]); ok {
				return errSick
			}
			return nil
		}
		b.broken.Store(&refuse)
		b.lose(lost())
		w.wait(10 * time.Second)
		if !b.Rebuilding(b.copy) {
			t.Fatal("b is whole without a push")
		}
		b.broken.Store(nil)
		a.setDown(true)
		w.wait(2 * time.Minute)
		if b.Rebuilding(b.copy) {
			t.Error("b is not whole though all that can be reached have pushed")
		}
		if b.info().Live != 51 {
			t.Errorf("%d documents", b.info().Live)
		}
		a.setDown(false)
		w.wait(time.Minute)
		w.agree()
	})
}

// A copy that is being rebuilt stays so through a restart, and is not whole
// while a complete one is away.
func TestRebuildSurvivesRestart(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		w.fill(10)
		a, b := w.node(0), w.node(1)
		a.setDown(true)
		b.lose(lost())
		w.wait(time.Hour)
		b.restart()
		w.wait(time.Hour)
		if !b.Rebuilding(b.copy) {
			t.Fatal("b is whole though nobody had anything to push")
		}
		a.setDown(false)
		w.wait(10 * time.Second)
		if b.Rebuilding(b.copy) {
			t.Error("b is not whole")
		}
		w.agree()
	})
}

// When all copies are lost, what is left of any of them is brought together and
// the database lives again.
func TestAllCopiesLost(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(10)
		for i := range 3 {
			w.node(i).lose(lost())
		}
		w.node(2).branch("rest", doc.Rev{}, "r", `{}`)
		w.wait(30 * time.Second)
		for i := range 3 {
			if n := w.node(i); n.Rebuilding(n.copy) || n.info().Live != 1 {
				t.Errorf("%s: rebuilding %v, %d documents", n.name, n.Rebuilding(n.copy), n.info().Live)
			}
		}
	})
	// A node that is gone for good is waited for until it is taken out.
	inWorld(t, 3, nil, func(w *world) {
		w.fill(10)
		w.node(2).setDown(true)
		w.node(0).lose(lost())
		w.node(1).lose(lost())
		w.wait(time.Hour)
		if n := w.node(0); !n.Rebuilding(n.copy) {
			t.Error("whole although a copy that is away may be complete")
		}
		if err := w.group.RemoveNode(w.ctx, w.names[2]); err != nil {
			t.Fatal(err)
		}
		w.wait(30 * time.Second)
		for i := range 2 {
			if n := w.node(i); n.Rebuilding(n.copy) {
				t.Errorf("%s is not whole", n.name)
			}
		}
	})
}

// All copies were lost; that a node's copy is incomplete is heard only after it
// has become whole and has pushed all it had. Events of one instant come in any
// order, so nothing can go on to the next step before the one at hand is over.
func TestLateAnswerAboutRebuilding(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		db, _ := w.group.Database("db")
		first, second := w.nodes[db.Shards[0].Nodes()[0]], w.nodes[db.Shards[0].Nodes()[1]]
		var held atomic.Bool
		pushed := make(chan struct{})
		answered := func(ctx context.Context, from string, request []byte) {
			var m message
			if err := json.Unmarshal(request, &m); err != nil {
				t.Error(err)
			}
			switch {
			case m.Op == opPushed && from == first.name && !m.Part:
				close(pushed)
			case m.Op == opRebuild && from == second.name && held.CompareAndSwap(false, true):
				select {
				case <-pushed:
				case <-ctx.Done():
					t.Error("the first one does not push meanwhile")
				}
			}
		}
		w.answered.Store(&answered)
		noPush := func(call replica.Call) error {
			if _, ok := call.(*replica.Asked[string, replica.At]); ok {
				return errSick
			}
			return nil
		}
		w.wait(rebuildEvery + rebuildEvery/2) // until they are at rest, between two looks
		for _, n := range []*member{first, second} {
			n.broken.Store(&noPush)
			n.lose(lost())
		}
		// They ask each other at the next look, and both pushes fail. Those are
		// tried again after half of firstPause at the earliest.
		w.wait(rebuildEvery/2 + firstPause/4)
		if !held.Load() || !first.Rebuilding(first.copy) {
			t.Fatalf("the first has not said that it is incomplete: asked %t", held.Load())
		}
		first.broken.Store(nil)
		w.wait(firstPause)
		if first.Rebuilding(first.copy) || !second.Rebuilding(second.copy) {
			t.Fatalf("incomplete: the first %t, the second %t", first.Rebuilding(first.copy), second.Rebuilding(second.copy))
		}
		// Only now, as a push that began earlier would be one of an incomplete copy.
		second.broken.Store(nil)
		w.wait(2 * firstPause)
		if second.Rebuilding(second.copy) {
			t.Error("the second is incomplete")
		}
	})
}

// A copy is lost once more while the push that filled it tells that it is done:
// what is asked for the new one meanwhile is done afterwards.
func TestRequestDuringPush(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		w.fill(10)
		a, b := w.node(0), w.node(1)
		var lostAgain atomic.Bool
		asked := make(chan struct{})
		answered := func(ctx context.Context, from string, request []byte) {
			var m message
			if err := json.Unmarshal(request, &m); err != nil {
				t.Error(err)
			}
			switch {
			case m.Op == opPushed && from == a.name && lostAgain.CompareAndSwap(false, true):
				b.lose(lost()) //nolint:contextcheck // what the node does by itself
				select {
				case <-asked:
				case <-ctx.Done():
					t.Error("b does not ask for pushes to the new copy")
				}
			case m.Op == opRebuild && from == b.name && lostAgain.Load():
				select {
				case <-asked:
				default:
					close(asked)
				}
			}
		}
		w.answered.Store(&answered)
		b.lose(lost())
		w.wait(2*rebuildEvery + rebuildEvery/2) // one look for each loss
		if !lostAgain.Load() || b.Rebuilding(b.copy) {
			t.Errorf("lost again: %t; incomplete: %t", lostAgain.Load(), b.Rebuilding(b.copy))
		}
		w.agree()
	})
}

// A node that hangs is waited for by the copies that it may have something for,
// and by no others.
func TestRebuildBesideNodeThatHangs(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		if _, err := w.group.CreateDatabase(w.ctx, meta.Create{Name: "two", Q: 1, N: 2}); err != nil {
			t.Fatal(err)
		}
		two, _ := w.group.Database("two")
		name := two.CopyName(two.Shards[0].Range)
		first, second := w.nodes[two.Shards[0].Nodes()[0]], w.nodes[two.Shards[0].Nodes()[1]]
		for _, n := range []*member{first, second} {
			one, _ := two.Copy(name, n.name)
			if err := n.Create(w.ctx, name, shard.CreateOptions{ID: one.ID}); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range w.nodes {
			if n != first && n != second {
				n.slow.Store(int64(time.Hour))
			}
		}
		w.wait(rebuildEvery / 2)
		first.lose(lost())
		if err := first.Drop(w.ctx, name); err != nil {
			t.Fatal(err)
		}
		one, _ := two.Copy(name, first.name)
		if err := first.Create(w.ctx, name, shard.CreateOptions{ID: one.ID, Rebuilding: true}); err != nil {
			t.Fatal(err)
		}
		w.wait(2 * rebuildEvery)
		if first.Rebuilding(name) || !first.Rebuilding(first.copy) {
			t.Errorf("incomplete: %t, and %t that the third node has a copy of", first.Rebuilding(name), first.Rebuilding(first.copy))
		}
		w.wait(callTimeout + rebuildEvery)
		if first.Rebuilding(first.copy) {
			t.Error("the node that hangs is waited for")
		}
	})
}

func TestBandwidthIsBounded(t *testing.T) {
	inWorld(t, 2, config.Values{"mem3": {"sync_max_bytes_per_second": "100000"}}, func(w *world) {
		a, b := w.node(0), w.node(1)
		w.wait(time.Minute)
		b.setDown(true)
		large := content(1_000_000, 'x')
		a.put("d", doc.Rev{}, `{}`, a.attach("d", "large", 1, large))
		b.setDown(false)
		w.wait(9 * time.Second)
		if b.info().Seq != 0 {
			t.Error("a megabyte took less than 9 seconds")
		}
		if tasks := a.repair.Tasks(); len(tasks) != 1 || tasks[0].Bytes < 500_000 || tasks[0].To != 1 || tasks[0].Node != b.name {
			t.Errorf("tasks %+v", tasks)
		}
		w.wait(3 * time.Second)
		w.agree()
	})
}

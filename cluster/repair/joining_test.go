package repair

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
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

// joinTime is enough for a copy to ask for pushes, to be filled with a little, and to become
// full.
const joinTime = 3 * joinEvery

// noPush has a node refuse all pushes to it, but hear messages.
func (m *member) noPush() {
	refuse := func(call replica.Call) error {
		if _, ok := call.(*replica.Asked[string, replica.At]); ok {
			return errSick
		}
		return nil
	}
	m.broken.Store(&refuse)
}

// only writes something that a node has alone and does not push by itself.
func (m *member) only(id string) {
	m.t.Helper()
	m.update = nil
	m.put(id, doc.Rev{}, `{}`)
}

// has reports whether the copy of a node has a document.
func (n *node) has(id string) bool {
	n.t.Helper()
	_, err := n.Open(context.Background(), shard.OpenRequest{Copy: n.copy, ID: id})
	if err != nil && !fault.Is(err, fault.NotFound) {
		n.t.Fatal(err)
	}
	return err == nil
}

// wantFull fails unless the copy of a node is full, or else joins still.
func (m *member) wantFull(full bool, why string) {
	m.t.Helper()
	if m.joins() == full {
		m.t.Fatalf("%s is full: %t: %s", m.name, !full, why)
	}
}

func TestLostCopyIsFilled(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(50)
		a, b, c := w.node(0), w.node(1), w.node(2)
		// Each of the others has something alone.
		a.only("only a")
		c.only("only c")
		b.lose()
		b.wantFull(false, "it is empty")
		w.wait(joinTime)
		b.wantFull(true, "both others have pushed")
		if !b.has("only a") || !b.has("only c") || b.info().Live != 52 {
			t.Errorf("%d documents", b.info().Live)
		}
		b.repair.joins.mu.Lock()
		if n := len(b.repair.joins.byCopy); n != 0 {
			t.Errorf("%d copies are remembered as joining", n)
		}
		b.repair.joins.mu.Unlock()
		w.wait(10 * time.Second)
		w.agree()
		b.check()
	})
}

// A node that comes back without its disk may be there long before it knows what it has lost. The
// pushes that failed meanwhile do not make its copies wait.
func TestLostCopyIsFilledAfterManyFailedPushes(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(10)
		a, b, c := w.node(0), w.node(1), w.node(2)
		if err := b.Copies.Drop(w.ctx, b.copy); err != nil {
			t.Fatal(err)
		}
		a.put("more", doc.Rev{}, `{}`)
		c.put("more too", doc.Rev{}, `{}`)
		w.wait(lastPause)
		b.make(b.join())
		w.wait(joinTime)
		b.wantFull(true, "it has asked for pushes")
	})
}

// A copy of a database to which nothing was written is filled with nothing.
func TestEmptyCopyIsFilled(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.node(1).lose()
		w.wait(joinTime)
		w.node(1).wantFull(true, "the others have nothing")
	})
}

// A copy is full when more than half of the full copies have filled it, and not before,
// however long one of those it takes is away.
func TestMajorityFills(t *testing.T) {
	for _, tc := range []struct {
		nodes, away int
		full        bool
	}{
		{nodes: 2, away: 1},
		{nodes: 3, away: 1},
		{nodes: 4, away: 1, full: true},
		{nodes: 5, away: 1, full: true},
		{nodes: 5, away: 2},
	} {
		t.Run(fmt.Sprintf("%d of %d away", tc.away, tc.nodes), func(t *testing.T) {
			inWorld(t, tc.nodes, nil, func(w *world) {
				w.fill(20)
				lost := w.node(0)
				var away []*member
				for i := range tc.away {
					away = append(away, w.node(i+1))
					away[i].only(fmt.Sprintf("only %d", i))
					away[i].setDown(true)
				}
				lost.lose()
				w.wait(joinTime)
				lost.wantFull(tc.full, "at once")
				w.wait(5 * time.Hour)
				lost.wantFull(tc.full, "after hours")
				if got := lost.info().Live; tc.away < tc.nodes-1 && got != 20 {
					t.Errorf("%d documents", got)
				}
				away[0].setDown(false)
				w.wait(askEvery + joinTime)
				lost.wantFull(true, "one of them is back")
				if !lost.has("only 0") {
					t.Error("it lacks what that one had")
				}
				for _, m := range away {
					m.setDown(false)
				}
				w.wait(10 * time.Second)
				w.agree()
			})
		})
	}
}

// Several copies are filled at once, by the full ones only; what they bring to each other
// does not count.
func TestJoiningCopiesDoNotFill(t *testing.T) {
	inWorld(t, 4, nil, func(w *world) {
		w.fill(20)
		a, b, c, d := w.node(0), w.node(1), w.node(2), w.node(3)
		w.whenTold(func(from string, m message) {
			if _, one, ok := w.group.CopyIn(m.Copy, from); !ok || one.ID != m.Source || one.State != ring.StateFull {
				t.Errorf("%s tells that copy %d has filled %d", from, m.Source, m.Target)
			}
		})
		d.setDown(true)
		b.lose()
		c.lose()
		w.wait(time.Hour) // a has pushed to both, and they to each other
		b.wantFull(false, "only one of two full ones has filled it")
		c.wantFull(false, "only one of two full ones has filled it")
		for _, m := range []*member{b, c} {
			if m.info().Live != 20 {
				t.Errorf("%s has %d documents", m.name, m.info().Live)
			}
		}
		a.setDown(true)
		d.setDown(false)
		w.wait(askEvery + joinTime)
		b.wantFull(true, "both have")
		c.wantFull(true, "both have")
		a.setDown(false)
		w.wait(10 * time.Second)
		w.agree()
	})
}

// A copy that joins goes on to after a restart of its node. What was told is forgotten
// then, and asked for anew.
func TestJoiningSurvivesRestart(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(10)
		a, b, c := w.node(0), w.node(1), w.node(2)
		c.setDown(true)
		b.lose()
		w.wait(time.Hour)
		a.setDown(true) // it has told
		b.restart()
		b.wantFull(false, "one of two has filled it")
		c.setDown(false)
		w.wait(time.Hour)
		b.wantFull(false, "what the first one had told is forgotten")
		a.setDown(false)
		w.wait(askEvery + joinTime)
		b.wantFull(true, "it was asked anew")
		w.agree()
	})
}

// A node that fills another one may restart as well.
func TestFillingSurvivesRestart(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		w.fill(10)
		a, b := w.node(0), w.node(1)
		b.noPush()
		b.lose()
		w.wait(time.Minute)
		a.restart()
		b.wantFull(false, "nobody can push to it")
		b.broken.Store(nil)
		w.wait(lastPause + joinTime)
		b.wantFull(true, "the other has been asked anew")
		w.agree()
	})
}

// A copy that is lost again while it joins is another one. What has filled the earlier one
// does not count.
func TestLostWhileJoining(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(10)
		a, b, c := w.node(0), w.node(1), w.node(2)
		c.setDown(true)
		b.lose()
		w.wait(time.Minute)
		first := b.copyID()
		b.noPush()
		b.lose()
		if b.copyID() == first {
			t.Fatal("it is the same copy")
		}
		c.setDown(false)
		w.wait(time.Hour)
		b.wantFull(false, "nobody can push to it")
		a.setDown(true)
		b.broken.Store(nil)
		w.wait(time.Hour)
		b.wantFull(false, "the first one has only filled the earlier copy")
		a.setDown(false)
		w.wait(askEvery + joinTime)
		b.wantFull(true, "both have filled this one")
		w.agree()
	})
}

// A copy is lost once more while the push that filled it tells that it is done: that counts
// for the earlier one, and the new one is filled as well.
func TestLostWhileToldFilled(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		w.fill(10)
		a, b := w.node(0), w.node(1)
		var lostAgain atomic.Bool
		w.whenTold(func(from string, m message) {
			if from == a.name && lostAgain.CompareAndSwap(false, true) {
				b.noPush()
				b.lose()
			}
		})
		b.lose()
		w.wait(time.Minute)
		if !lostAgain.Load() {
			t.Fatal("nobody has told")
		}
		b.wantFull(false, "only the earlier copy was filled")
		b.broken.Store(nil)
		w.wait(lastPause + joinTime)
		b.wantFull(true, "this one was filled")
		w.agree()
	})
}

// whenTold has f called when a copy was told to be filled, before the node that told it
// hears the answer.
func (w *world) whenTold(f func(from string, m message)) { w.when(opFilled, f) }

// when has f called when a message of one kind was answered, before that is heard.
func (w *world) when(op string, f func(from string, m message)) {
	answered := func(_ context.Context, from string, request []byte) {
		var m message
		if err := json.Unmarshal(request, &m); err != nil {
			w.t.Error(err)
		}
		if m.Op == op {
			f(from, m)
		}
	}
	w.answered.Store(&answered)
}

// Pushes to a copy are asked for when it was made, each node for its own, and again from
// time to time.
func TestPushesAreAskedFor(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(10)
		b := w.node(1)
		var asked atomic.Int64
		w.when(opSync, func(from string, m message) {
			asked.Add(1)
			if from != b.name || len(m.Pairs) != 1 || m.Pairs[0] != [2]string{b.copy, b.name} {
				t.Errorf("%s asks for %q", from, m.Pairs)
			}
		})
		b.noPush()
		if err := b.Copies.Drop(w.ctx, b.copy); err != nil {
			t.Fatal(err)
		}
		id := b.join()
		w.wait(time.Minute)
		if asked.Load() != 0 {
			t.Error("pushes to a copy that was not made yet")
		}
		b.make(id)
		w.wait(2 * joinEvery)
		if asked.Load() != 2 {
			t.Errorf("%d requests for a new copy", asked.Load())
		}
		w.wait(time.Minute)
		if n, most := asked.Load(), int64(2+2*time.Minute/askEvery); n > most || n < most/2 {
			t.Errorf("%d requests in a minute", n)
		}
		b.broken.Store(nil)
		w.wait(lastPause + joinTime)
		b.wantFull(true, "nothing is in its way")
		enough := asked.Load()
		w.wait(time.Minute)
		if asked.Load() != enough {
			t.Error("pushes to a copy that is full")
		}
	})
}

// What is told counts for the copy that it is about, and from full copies, once from each.
func TestWhatIsToldCounts(t *testing.T) {
	inWorld(t, 4, nil, func(w *world) {
		w.fill(10)
		a, b, c, d := w.node(0), w.node(1), w.node(2), w.node(3)
		full := b.copyID() // before it was lost
		earlier := c.copyID()
		b.noPush()
		c.noPush()
		b.lose()
		c.lose()
		between := b.copyID()
		b.lose()
		tellBy := func(known uint64, copyName string, target, source uint64) {
			t.Helper()
			text, err := json.Marshal(message{Op: opFilled, Copy: copyName, Target: target, Source: source, Known: known})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.repair.Answer(w.ctx, a.name, text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		db, _ := w.group.Database("db")
		tell := func(copyName string, target, source uint64) {
			t.Helper()
			tellBy(db.FullGeneration, copyName, target, source)
		}
		tell(b.copy, full, a.copyID()) // about the copy that was lost
		tell(b.copy, full, d.copyID())
		tell(b.copy, between, a.copyID()) // and about the one after it
		tell(b.copy, between, d.copyID())
		tell(b.copy, c.copyID(), a.copyID()) // about one on another node
		tell(b.copy, c.copyID(), d.copyID())
		tell(b.copy, 0, a.copyID())
		tell("shards/00000000-7fffffff/db."+db.Suffix, b.copyID(), a.copyID()) // about one that is not here
		tell("shards/00000000-ffffffff/db.1", b.copyID(), d.copyID())
		tell("db", b.copyID(), d.copyID())
		tell(b.copy, b.copyID(), c.copyID()) // from a copy that joins
		tell(b.copy, b.copyID(), earlier)
		tell(b.copy, b.copyID(), b.copyID())
		tell(b.copy, b.copyID(), full)
		tell(b.copy, b.copyID(), 1<<60) // from none
		tell(b.copy, b.copyID(), a.copyID())
		tell(b.copy, b.copyID(), a.copyID())
		tellBy(db.FullGeneration-1, b.copy, b.copyID(), d.copyID()) // of when another copy was full
		w.wait(joinTime)
		b.wantFull(false, "only one of two full ones has filled it")
		tell(b.copy, b.copyID(), d.copyID())
		w.wait(joinTime)
		b.wantFull(true, "both have")
		c.wantFull(false, "nobody has filled it")
		tell(b.copy, b.copyID(), a.copyID()) // late: nothing comes of it
		w.wait(joinTime)
		b.wantFull(true, "it was")
	})
}

// A copy that has told may be lost itself before enough have: it is not full any more then,
// and what it has told does not count.
func TestLostAfterItHasFilled(t *testing.T) {
	inWorld(t, 4, nil, func(w *world) {
		w.fill(10)
		a, b, c, d := w.node(0), w.node(1), w.node(2), w.node(3)
		d.setDown(true)
		b.lose()
		w.wait(time.Minute)
		b.wantFull(true, "two of three have filled it")
		c.setDown(true)
		b.lose()
		w.wait(time.Minute)
		b.wantFull(false, "one of three has filled it")
		// Now that one joins, too: two full ones are left, and none of them has.
		a.lose()
		w.wait(time.Hour)
		b.wantFull(false, "none of the full ones has filled it")
		c.setDown(false)
		w.wait(time.Hour)
		b.wantFull(false, "one of two has filled it")
		d.setDown(false)
		w.wait(askEvery + joinTime)
		a.wantFull(true, "both have filled it")
		b.wantFull(true, "both have filled it")
		w.wait(10 * time.Second)
		w.agree()
	})
}

// A node that hangs keeps the copies joining that it has to fill, and no others.
func TestJoiningBesideNodeThatHangs(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		if _, err := w.group.CreateDatabase(w.ctx, meta.Create{Name: "two", Q: 1, N: 2}); err != nil {
			t.Fatal(err)
		}
		two, _ := w.group.Database("two")
		name := two.CopyName(two.Shards[0].Range)
		first, second := w.nodes[two.Shards[0].Nodes()[0]], w.nodes[two.Shards[0].Nodes()[1]]
		for _, n := range []*member{first, second} {
			one, _ := two.Copy(name, n.name)
			if err := n.Copies.Create(w.ctx, name, shard.CreateOptions{ID: one.ID}); err != nil {
				t.Fatal(err)
			}
		}
		w.fill(10)
		var third *member
		for _, n := range w.nodes {
			if n != first && n != second {
				third = n
			}
		}
		third.slow.Store(int64(24 * time.Hour))
		first.lose()
		was := first.copy
		first.copy = name
		first.lose()
		first.copy = was
		w.wait(joinTime)
		if _, one, _ := w.group.CopyIn(name, first.name); one.State != ring.StateFull {
			t.Error("a copy that the node that hangs has none of is not full")
		}
		w.wait(time.Hour)
		first.wantFull(false, "the node that hangs has not pushed")
		if first.info().Live != 10 {
			t.Errorf("%d documents", first.info().Live)
		}
		third.slow.Store(0)
		w.wait(stallTime + lastPause + joinTime) // the calls under way hang still
		first.wantFull(true, "it does not hang any more")
		w.agree()
	})
}

// Writes that a node has let in by an older map, by which the copy that joins was not to
// get them, are in what fills it: nothing is told before they have ended. Those that it lets
// in after that are not waited for.
func TestWritesUnderWayAreInThePush(t *testing.T) {
	for name, long := range map[string]time.Duration{"a moment": joinTime, "longer than a push may take": stallTime + lastPause} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, nil, func(w *world) {
				w.fill(10)
				a, b := w.node(0), w.node(1)
				var told, whole atomic.Int64
				w.whenTold(func(string, message) {
					told.Add(1)
					if b.has("late") {
						whole.Add(1)
					}
				})
				write := a.Writes.Begin()
				b.lose()
				w.wait(long)
				b.wantFull(false, "a write is under way")
				a.only("late")
				w.wait(long)
				b.wantFull(false, "it may still be under way")
				if told.Load() != 0 {
					t.Fatal("it was told to be filled")
				}
				later := a.Writes.Begin() // by the map in which the copy joins
				a.Writes.End(write)
				if long > stallTime { // a push that was given up and is tried again may wait for it
					a.Writes.End(later)
				}
				w.wait(lastPause + joinTime)
				b.wantFull(true, "no write of before is under way")
				if told.Load() == 0 || whole.Load() != told.Load() {
					t.Errorf("told %d times, %d times with the late write", told.Load(), whole.Load())
				}
				if long <= stallTime {
					a.Writes.End(later)
				}
				w.agree()
			})
		})
	}
}

// Pushes that fill nothing wait for no writes.
func TestOtherPushesWaitForNoWrites(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		w.fill(10)
		a := w.node(0)
		write := a.Writes.Begin()
		a.put("x", doc.Rev{}, `{}`)
		w.wait(10 * time.Second)
		w.agree()
		a.Writes.End(write)
	})
}

// What takes several turns is told when the last one is over.
func TestFillingInTurns(t *testing.T) {
	inWorld(t, 2, config.Values{"mem3": {"sync_batch_size": "1", "sync_batch_count": "1"}}, func(w *world) {
		w.fill(30)
		a, b := w.node(0), w.node(1)
		var mu sync.Mutex
		var had []uint64
		w.whenTold(func(string, message) {
			mu.Lock()
			defer mu.Unlock()
			had = append(had, b.info().Live)
		})
		b.lose()
		w.wait(joinTime)
		b.wantFull(true, "it was filled")
		mu.Lock()
		defer mu.Unlock()
		if len(had) == 0 || had[0] != a.info().Live {
			t.Errorf("told with %d documents", had)
		}
	})
}

// Requests that it does not understand, as other versions may send, are refused.
func TestAnswerRefuses(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		for _, text := range []string{"", "[]", `{}`, `{"op":"rebuild","copies":["x"]}`, `{"op":"pushed"}`} {
			if _, err := w.node(0).repair.Answer(w.ctx, w.names[1], []byte(text)); !fault.Is(err, fault.BadRequest) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

package repair

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plan is a schedule and a clock.
type plan struct {
	*schedule
	t   tester
	now time.Time
}

func newPlan(t tester) *plan {
	p := &plan{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.schedule = newSchedule(5*time.Second, func(copy string) []pair { return []pair{{copy: copy, node: "b"}, {copy: copy, node: "c"}} })
	p.jitter = func(n time.Duration) time.Duration { return n / 2 }
	return p
}

func (p *plan) pass(d time.Duration) { p.now = p.now.Add(d) }

// begin starts what is due and returns it as text, ordered by due time.
func (p *plan) begin(free int) (text string, items []*item) {
	items, _ = p.start(p.now, p.running+free)
	for _, it := range items {
		text += it.copy + it.node + " "
	}
	return text, items
}

func (p *plan) expect(free int, want string) []*item {
	p.t.Helper()
	got, items := p.begin(free)
	if got != want {
		p.t.Fatalf("started %q, want %q", got, want)
	}
	return items
}

func TestUpdatesWaitTogether(t *testing.T) {
	p := newPlan(t)
	if !p.update("x", p.now) || p.update("x", p.now) {
		t.Error("the second update is news")
	}
	p.pass(4 * time.Second)
	p.update("x", p.now)
	p.expect(9, "")
	if _, wake := p.start(p.now, 9); wake != p.now.Add(time.Second) {
		t.Errorf("to be asked again at %v", wake)
	}
	p.pass(time.Second)
	items := p.expect(9, "xb xc ")
	p.update("x", p.now) // while they run
	for _, it := range items {
		p.done(it, caughtUp, p.now)
	}
	if len(p.items) != 0 || p.running != 0 {
		t.Errorf("%d items, %d running", len(p.items), p.running)
	}
	p.pass(5 * time.Second)
	p.expect(1, "xb ")
	p.expect(1, "xc ")
}

// TestUpWhileRunning: a node comes back while a push to it is about to fail. The next one
// is due at once, and when that fails as well it waits like others.
func TestUpWhileRunning(t *testing.T) {
	for _, how := range []ending{nodeAway, failed, turnOver, caughtUp} {
		p := newPlan(t)
		p.want(pair{copy: "x", node: "b"}, p.now)
		it := p.expect(9, "xb ")[0]
		p.up("c", p.now)
		p.done(it, nodeAway, p.now)
		p.expect(9, "")
		p.up("b", p.now)
		it = p.expect(9, "xb ")[0]
		p.up("b", p.now)
		p.done(it, how, p.now)
		if how == caughtUp {
			p.expect(9, "")
			continue
		}
		it = p.expect(9, "xb ")[0]
		p.done(it, nodeAway, p.now)
		p.expect(9, "")
	}
}

func TestHintWhileRunning(t *testing.T) {
	p := newPlan(t)
	p.want(pair{copy: "x", node: "b"}, p.now)
	it := p.expect(9, "xb ")[0]
	p.want(pair{copy: "x", node: "b"}, p.now)
	p.expect(9, "")
	p.done(it, caughtUp, p.now)
	it = p.expect(9, "xb ")[0]
	p.done(it, caughtUp, p.now)
	p.expect(9, "")
}

func TestFailuresPause(t *testing.T) {
	p := newPlan(t)
	p.want(pair{copy: "x", node: "b"}, p.now)
	for _, pause := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		it := p.expect(9, "xb ")[0]
		p.done(it, failed, p.now)
		p.want(pair{copy: "x", node: "b"}, p.now) // more hints change nothing
		p.pass(time.Duration(pause*750)*time.Millisecond - 1)
		p.expect(9, "")
		p.pass(1)
	}
	it := p.expect(9, "xb ")[0]
	p.done(it, nodeAway, p.now)
	p.pass(time.Second)
	p.expect(9, "")
	p.up("c", p.now)
	p.expect(9, "")
	p.up("b", p.now)
	it = p.expect(9, "xb ")[0]
	p.done(it, failed, p.now)
	p.hurry(p.items[pair{copy: "x", node: "b"}], p.now)
	p.done(p.expect(9, "xb ")[0], vanished, p.now)
	if len(p.items) != 0 {
		t.Error("a pair whose copy is gone is kept")
	}
}

// A node that takes all its time leaves space for pushes to another one.
func TestSlowNodeDoesNotTakeAll(t *testing.T) {
	p := newPlan(t)
	for i := range 10 {
		p.want(pair{copy: fmt.Sprint(i), node: "b"}, p.now)
		p.pass(1)
	}
	p.want(pair{copy: "x", node: "c"}, p.now)
	items, wake := p.start(p.now, 4)
	if len(items) != 4 || items[3].node != "c" || !wake.IsZero() {
		t.Errorf("%d start, to be asked again at %v", len(items), wake)
	}
	p.done(items[3], caughtUp, p.now)
	if items, _ := p.start(p.now, 4); len(items) != 0 {
		t.Error("the slow node takes the space of the other one")
	}
	p.done(items[0], caughtUp, p.now)
	p.expect(1, "3b ")
}

func TestTurnsGoRound(t *testing.T) {
	p := newPlan(t)
	for _, c := range []string{"x", "y", "z"} {
		p.want(pair{copy: c, node: "b"}, p.now)
		p.pass(1)
	}
	it := p.expect(1, "xb ")[0]
	p.done(it, turnOver, p.now)
	p.done(p.expect(1, "yb ")[0], turnOver, p.now.Add(1))
	p.done(p.expect(1, "zb ")[0], caughtUp, p.now)
	p.expect(1, "xb ")
}

// In any sequence of events no pair runs twice at once, limits hold, and every push that is asked
// for runs in the end.
func TestScheduleRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlan(t)
		running := map[pair]*item{}
		owed := map[pair]bool{} // asked for since it last began
		step := func() {
			items, wake := p.start(p.now, 3)
			for _, it := range items {
				if running[it.pair] != nil {
					t.Fatalf("%v runs twice", it.pair)
				}
				running[it.pair] = it
				delete(owed, it.pair)
			}
			if len(running) > 3 || p.running != len(running) {
				t.Fatalf("%d run, %d are counted", len(running), p.running)
			}
			if wake.IsZero() && len(p.queue) > 0 && len(running) == 0 {
				t.Fatal("nobody will look at the queue again")
			}
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			c := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "copy"))
			n := rapid.SampledFrom([]string{"b", "c"}).Draw(t, "node")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				if p.update(c, p.now) {
					owed[pair{copy: c, node: "b"}], owed[pair{copy: c, node: "c"}] = true, true
				}
			case 1:
				p.want(pair{copy: c, node: n}, p.now)
				owed[pair{copy: c, node: n}] = true
			case 2:
				p.up(n, p.now)
			case 3, 4:
				if it := running[pair{copy: c, node: n}]; it != nil {
					delete(running, it.pair)
					p.done(it, ending(rapid.SampledFrom([]int{0, 0, 1, 3, 4}).Draw(t, "end")), p.now)
				}
			default:
				p.pass(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			}
			step()
		}
		for range 100 {
			for q, it := range running {
				delete(running, q)
				p.done(it, caughtUp, p.now)
			}
			p.pass(time.Minute)
			step()
		}
		if len(owed) > 0 || len(p.items) > 0 && len(running) == 0 {
			t.Fatalf("never run: %v; left: %v", owed, p.items)
		}
	})
}

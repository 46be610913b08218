package fairqueue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// check looks at the invariants.
func (s *schedule) check(t *rapid.T, held []*use) {
	t.Helper()
	if s.free < 0 || s.free+len(held) != s.capacity { // S1, and no turn is lost
		t.Fatalf("%d free and %d held of %d", s.free, len(held), s.capacity)
	}
	waiting := 0
	for _, g := range s.groups {
		waiting += g.waiting
		inGroup := 0
		for _, a := range g.accounts {
			inGroup += a.waiting
			if len(a.uses) != a.waiting || a.waiting > 0 != slices.Contains(g.active, a) {
				t.Fatalf("%+v", a)
			}
			if a.waiting > 0 && s.eligible(g) && s.eligibleIn(g, a) { // S2
				t.Fatalf("%+v of %+v waits beside %d free turns", a, g, s.free)
			}
		}
		if inGroup != g.waiting || g.waiting > 0 != slices.Contains(s.active, g) {
			t.Fatalf("%+v", g)
		}
		if g.waiting > 0 && g.held == 0 && s.free > 0 { // S3
			t.Fatalf("%+v holds nothing and waits beside %d free turns", g, s.free)
		}
	}
	if waiting != s.waiting {
		t.Fatalf("%d wait, not %d", waiting, s.waiting)
	}
}

func TestScheduleHoldsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSchedule(rapid.IntRange(1, 12).Draw(t, "capacity"), rapid.Bool().Draw(t, "shares"))
		flow := rapid.Custom(func(t *rapid.T) Flow {
			return Flow{rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "db"), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "account"), rapid.Float64().Draw(t, "bg") < 0.2}
		})
		var held, waiting []*use
		dispatch := func() {
			for u := s.next(); u != nil; u = s.next() {
				at := slices.Index(waiting, u)
				if at < 0 {
					t.Fatal("a turn for one who does not wait")
				}
				waiting, held = slices.Delete(waiting, at, at+1), append(held, u)
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
			case kind < 5:
				u := &use{}
				if s.add(u, flow.Draw(t, "flow")) {
					held = append(held, u)
				} else {
					waiting = append(waiting, u)
				}
			case kind < 8 && len(held) > 0:
				i := rapid.IntRange(0, len(held)-1).Draw(t, "ends")
				u := held[i]
				held = slices.Delete(held, i, i+1)
				s.end(u, time.Duration(rapid.IntRange(0, 1000).Draw(t, "took"))*time.Millisecond)
				if rapid.Bool().Draw(t, "again") {
					s.enqueue(u)
					waiting = append(waiting, u)
				}
				dispatch()
			case kind == 8 && len(waiting) > 0:
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "leaves")
				if !s.takeOut(waiting[i]) {
					t.Fatal("one who waits is not there")
				}
				waiting = slices.Delete(waiting, i, i+1)
				dispatch()
			case kind == 9:
				s.sweepAt = 0
				for _, g := range s.groups {
					g.sweepAt = 0
				}
			}
			s.check(t, held)
		}
		for len(held) > 0 { // no waiting use is forgotten
			u := held[0]
			held = held[1:]
			s.end(u, time.Millisecond)
			dispatch()
			s.check(t, held)
		}
		if len(waiting) > 0 {
			t.Fatalf("%d wait for ever", len(waiting))
		}
	})
}

// player always wants turns of a certain length.
type player struct {
	flow   Flow
	length time.Duration
	many   int
	had    time.Duration
	turns  int
	worst  time.Duration // between the end of a turn and the beginning of the next
}

// play lets players want turns on a machine with some processors, and returns how long
// it took.
func play(s *schedule, players []*player, until time.Duration) {
	type running struct {
		u    *use
		ends time.Duration
	}
	var now time.Duration
	of, last := map[*use]*player{}, map[*player]time.Duration{}
	var on []running
	start := func(u *use) {
		p := of[u]
		p.worst = max(p.worst, now-last[p])
		on = append(on, running{u, now + p.length})
	}
	for _, p := range players {
		for range p.many {
			u := &use{}
			of[u] = p
			if s.add(u, p.flow) {
				start(u)
			}
		}
	}
	for now < until {
		slices.SortStableFunc(on, func(a, b running) int { return int(a.ends - b.ends) })
		first := on[0]
		on = on[1:]
		now = first.ends
		p := of[first.u]
		p.had += p.length
		p.turns++
		last[p] = now
		s.end(first.u, p.length)
		s.enqueue(first.u)
		for u := s.next(); u != nil; u = s.next() {
			start(u)
		}
	}
}

// TestTimeIsShared: databases get the same time, no matter how long their
// functions take and how many ask; so do accounts within them, and the background
// gets an eighth.
func TestTimeIsShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 4).Draw(t, "processors")
		var players []*player
		longest := time.Duration(0)
		dbs := rapid.IntRange(2, 5).Draw(t, "databases")
		for i := range dbs {
			for k := range rapid.IntRange(1, 3).Draw(t, "accounts") {
				p := &player{flow: Flow{Database: fmt.Sprint(i), Account: fmt.Sprint(k)}, many: rapid.IntRange(capacity, 20).Draw(t, "many")}
				p.length = time.Duration(rapid.IntRange(1, 200).Draw(t, "length")) * time.Millisecond
				longest = max(longest, p.length)
				players = append(players, p)
			}
		}
		const until = 30 * time.Second
		play(newSchedule(capacity, false), players, until)
		had, accounts := map[string]time.Duration{}, map[string]int{}
		for _, p := range players {
			had[p.flow.Database] += p.had
			accounts[p.flow.Database]++
		}
		bound := time.Duration(2*capacity) * (longest + Slice) // what may be under way
		for db, got := range had {
			if want := until * time.Duration(capacity) / time.Duration(dbs); (got - want).Abs() > bound {
				t.Fatalf("database %s had %v of %v: %v", db, got, want, had)
			}
		}
		for _, p := range players {
			want := had[p.flow.Database] / time.Duration(accounts[p.flow.Database])
			if (p.had - want).Abs() > 2*bound {
				t.Fatalf("%+v had %v of %v", p.flow, p.had, want)
			}
		}
	})
}

// TestNewcomersWaitForOneTurnOfEach: 60 uses of each of several databases that loop stand
// before one that wants a millisecond at a time.
func TestNewcomersWaitForOneTurnOfEach(t *testing.T) {
	s := newSchedule(2, false)
	players := []*player{{flow: Flow{Database: "innocent"}, length: time.Millisecond, many: 1}}
	for i := range 5 {
		players = append(players, &player{flow: Flow{Database: fmt.Sprint(i)}, length: Slice, many: 60})
	}
	play(s, players, 10*time.Second)
	if in := players[0]; in.worst > 5*Slice/2+Slice || in.turns < 900 {
		t.Errorf("%d turns, the longest wait %v", in.turns, in.worst)
	}
}

// TestBackgroundGetsAnEighth of what others get, and not nothing.
func TestBackgroundGetsAnEighth(t *testing.T) {
	front := &player{flow: Flow{Database: "a"}, length: 5 * time.Millisecond, many: 4}
	back := &player{flow: Flow{Database: "a", Background: true}, length: 5 * time.Millisecond, many: 4}
	play(newSchedule(1, false), []*player{front, back}, 90*time.Second)
	if got := front.had.Seconds() / back.had.Seconds(); got < 7.5 || got > 8.5 {
		t.Errorf("%v times as much", got)
	}
}

// TestNobodyHoldsAll: databases that take all they can leave turns for the next one.
func TestNobodyHoldsAll(t *testing.T) {
	s := newSchedule(9, true)
	take := func(f Flow) (n int) {
		for range 60 {
			if s.add(&use{}, f) {
				n++
			}
		}
		return n
	}
	got := []int{
		take(Flow{Database: "a", Account: "x"}), take(Flow{Database: "a", Account: "y"}), take(Flow{Database: "a", Account: "z"}),
		take(Flow{Database: "b"}), take(Flow{Database: "c"}), take(Flow{Database: "d"}),
	}
	if fmt.Sprint(got) != "[3 1 1 1 1 1]" {
		t.Errorf("%v", got)
	}
}

// TestWhatWasNotUsedIsNotOwed: a database that comes has no claim to what others used
// before, and they have no debt.
func TestWhatWasNotUsedIsNotOwed(t *testing.T) {
	s := newSchedule(1, false)
	on := &use{}
	s.add(on, Flow{Database: "a"})
	for range 3 {
		s.add(&use{}, Flow{Database: "a"})
	}
	turn := func() string {
		s.end(on, time.Second)
		s.enqueue(on)
		on = s.next()
		return on.of.is().Database
	}
	for range 100 {
		turn()
	}
	for range 3 {
		s.add(&use{}, Flow{Database: "b"})
	}
	had := map[string]int{}
	for range 20 {
		had[turn()]++
	}
	if had["a"] != 10 || had["b"] != 10 {
		t.Errorf("%v", had)
	}
}

// TestFlowsAreForgotten: neither databases nor accounts pile up.
func TestFlowsAreForgotten(t *testing.T) {
	s := newSchedule(2, false)
	busy := &use{}
	s.add(busy, Flow{Database: "busy"})
	for i := range 50_000 {
		u := &use{}
		if !s.add(u, Flow{Database: fmt.Sprint(i), Account: "x"}) {
			t.Fatal("it waits")
		}
		s.end(u, time.Second)
		u = &use{}
		s.add(u, Flow{Database: "one", Account: fmt.Sprint(i)})
		s.end(u, time.Second)
	}
	if dbs, accounts := len(s.groups), len(s.groups[groupKey{database: "one"}].accounts); dbs > 2*maxOwing || accounts > 2*maxOwing {
		t.Errorf("%d databases, %d accounts", dbs, accounts)
	}
}

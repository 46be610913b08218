package ownership

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/meta"
	"divan/storage/fault"
)

// bounds of what the tests wait for
const (
	toEven = settledAfter + vacantFor + 3*time.Second // nodes that have come have their part
	toMove = goneAfter + vacantFor + 3*time.Second    // others have the slots of a dead node; an election included
)

// A node that is alone owns everything as soon as it is there, and again after
// it was started again, in the same terms.
func TestLoneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		g.within(100*time.Millisecond, "all slots", func() bool { return g.even(0) })
		slots := g.slots(0)
		g.stop(0)
		if _, ok := g.nodes[0].table.Mine(0); ok {
			<-time.After(leaseFor)
			if _, ok := g.nodes[0].table.Mine(0); ok {
				t.Error("owns a slot long after its end")
			}
		}
		g.start(0)
		g.within(100*time.Millisecond, "all slots again", func() bool { return g.even(0) })
		if g.slots(0) != slots {
			t.Error("slots changed hands though nobody else was there")
		}
		term, _ := g.nodes[0].table.Mine(7)
		if err := g.nodes[0].table.Check(t.Context(), 7, term); err != nil {
			t.Error(err)
		}
		if err := g.nodes[0].table.Check(t.Context(), 7, term-1); !errors.Is(err, ErrLost) {
			t.Errorf("an earlier term: %v", err)
		}
	})
}

// Slots are shared by all that are here. Those of a node that dies go to the
// others, and only they; when it comes back it gets its part.
func TestNodeDies(t *testing.T) {
	for victim := range 2 { // node 0 leads
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t, 3)
				g.within(toEven, "even", func() bool { return g.even(0, 1, 2) })
				before := g.slots(2)
				changed := g.nodes[2].table.Changed()
				g.stop(victim)
				t.Log("moved after", g.within(toMove, "the others have them", func() bool { return g.even(1-victim, 2) }))
				select {
				case <-changed:
				default:
					t.Error("nobody was told")
				}
				moved := 0
				for i, s := range g.slots(2) {
					if s != before[i] {
						moved++
						if s.Term <= before[i].Term {
							t.Errorf("slot %d: term %d after %d", i, s.Term, before[i].Term)
						}
					}
				}
				if moved > meta.SlotCount/3+1 {
					t.Errorf("%d slots moved", moved)
				}
				g.start(victim)
				g.within(toEven, "even again", func() bool { return g.even(0, 1, 2) })
			})
		})
	}
}

// A node that is back within moments keeps its slots.
func TestQuickRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3)
		g.within(toEven, "even", func() bool { return g.even(0, 1, 2) })
		before := g.slots(1)
		g.stop(2)
		<-time.After(goneAfter - time.Second)
		g.start(2)
		<-time.After(20 * time.Second)
		if !g.even(0, 1, 2) || g.slots(1) != before {
			t.Error("slots moved")
		}
	})
}

// A node that is cut off owns nothing before others own what it had, and a caller of Check with a
// term that the node had learns that it is lost. The node tells that it lost what it had.
func TestCutOff(t *testing.T) {
	for victim := range 2 {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t, 3)
				g.within(toEven, "even", func() bool { return g.even(0, 1, 2) })
				table := g.nodes[victim].table
				slot := 0
				for _, ok := table.Mine(slot); !ok; _, ok = table.Mine(slot) {
					slot++
				}
				term, _ := table.Mine(slot)
				g.cut(victim)
				<-time.After(2 * time.Second) // it knows that it is alone
				began := time.Now().Add(-2 * time.Second)
				checked := make(chan error, 1)
				go func() { checked <- table.Check(t.Context(), slot, term) }()
				for owns := true; owns; {
					changed := table.Changed()
					if _, owns = table.Mine(slot); owns {
						<-changed
					}
				}
				if took := time.Since(began); took > leaseFor {
					t.Errorf("took itself for the owner %v", took)
				}
				if err := <-checked; !fault.Is(err, fault.Unavailable) || time.Since(began) > leaseFor+askAgain {
					t.Errorf("checked without the group: %v after %v", err, time.Since(began))
				}
				g.within(toMove, "the others have them", func() bool { return g.even(1-victim, 2) })
				g.heal()
				g.within(5*time.Second, "its old term is no good", func() bool {
					err := table.Check(t.Context(), slot, term)
					if err == nil {
						t.Fatal("two owners")
					}
					return errors.Is(err, ErrLost)
				})
			})
		})
	}
}

// A check waits for the group while no other node can own the slot.
func TestCheckOutlivesShortCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3)
		g.within(toEven, "even", func() bool { return g.even(0, 1, 2) })
		table := g.nodes[1].table
		slot := 0
		for _, ok := table.Mine(slot); !ok; _, ok = table.Mine(slot) {
			slot++
		}
		term, _ := table.Mine(slot)
		g.cut(1)
		<-time.After(time.Second)
		checked := make(chan error, 1)
		go func() { checked <- table.Check(t.Context(), slot, term) }()
		<-time.After(time.Second)
		g.heal()
		if err := <-checked; err != nil {
			t.Error(err)
		}
	})
}

// Nodes that are to be emptied, and removed ones, lose what they have.
func TestDrainedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3)
		g.within(toEven, "even", func() bool { return g.even(0, 1, 2) })
		if err := g.nodes[1].meta.SetDraining(t.Context(), g.nodes[0].name, true); err != nil {
			t.Fatal(err)
		}
		g.within(toMove, "emptied", func() bool { return g.even(1, 2) })
		if err := g.nodes[1].meta.RemoveNode(t.Context(), g.nodes[2].name); err != nil {
			t.Fatal(err)
		}
		g.within(toMove, "removed", func() bool { return g.even(1) })
		if g.nodes[2].mine() > 0 {
			t.Error("a node that was removed owns something")
		}
	})
}

// Under any faults of nodes and network: one node at most takes itself for the owner of a slot, a
// check that passes tells the truth, all nodes agree on who had a slot in a term, and when it is
// over all is shared again.
func TestOwnershipUnderFaults(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t, 3)
				g.within(toEven, "even", func() bool { return g.even(0, 1, 2) })
				o := &observer{g: g, owner: map[[2]uint64]string{}}
				stop := make(chan struct{})
				var wg sync.WaitGroup
				wg.Go(func() { o.watch(stop) })
				for i := range 12 {
					wg.Go(func() { o.check(i%3, rand.New(rand.NewPCG(seed, uint64(i)+10)), stop) })
				}
				dice := rand.New(rand.NewPCG(seed, 1))
				for range 15 {
					upset(g, dice)
				}
				g.within(2*time.Minute, "even", func() bool { return g.even(0, 1, 2) })
				close(stop)
				wg.Wait()
				if o.passed < 500 || o.refused < 10 {
					t.Errorf("%d checks passed, %d were refused: that shows little", o.passed, o.refused)
				}
			})
		})
	}
}

// upset does one thing to the group and undoes it some time later.
func upset(g *group, dice *rand.Rand) {
	victim := dice.IntN(len(g.nodes))
	switch dice.IntN(4) {
	case 0:
		g.stop(victim)
	case 1: // no majority is left
		g.cut(0)
		g.cut(1)
	default:
		g.cut(victim)
	}
	<-time.After(time.Duration(1000+dice.IntN(14_000)) * time.Millisecond)
	g.heal()
	if !g.nodes[victim].running {
		g.start(victim)
	}
	<-time.After(time.Duration(dice.IntN(12_000)) * time.Millisecond)
}

// observer compares what nodes believe.
type observer struct {
	g *group

	mu              sync.Mutex
	owner           map[[2]uint64]string // slot and term → node
	newest          [meta.SlotCount]uint64
	passed, refused int
}

// watch looks at all nodes at the same moments.
func (o *observer) watch(stop <-chan struct{}) {
	for {
		nodes := o.g.runningNodes()
		for slot := range meta.SlotCount {
			owner := ""
			for _, p := range nodes {
				o.note(slot, p.meta.Slots.Owners()[slot])
				if _, ok := p.table.Mine(slot); ok && owner != "" {
					o.g.t.Errorf("slot %d: both %s and %s own it", slot, owner, p.name)
				} else if ok {
					owner = p.name
				}
			}
		}
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// note keeps what a node says of a slot.
func (o *observer) note(slot int, s meta.Slot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := [2]uint64{uint64(slot), s.Term}
	if was, ok := o.owner[key]; ok && was != s.Node {
		o.g.t.Errorf("slot %d in term %d: %q and %q", slot, s.Term, was, s.Node)
	}
	o.owner[key] = s.Node
	o.newest[slot] = max(o.newest[slot], s.Term)
}

// check keeps terms that a node had, as a process does that is suspended, and
// checks them some time later.
func (o *observer) check(i int, dice *rand.Rand, stop <-chan struct{}) {
	pause := func(most int) bool {
		select {
		case <-stop:
			return false
		case <-time.After(time.Duration(1+dice.IntN(most)) * time.Millisecond):
			return true
		}
	}
	for pause(50) {
		o.g.mu.Lock()
		p, running := *o.g.nodes[i], o.g.nodes[i].running
		o.g.mu.Unlock()
		slot := dice.IntN(meta.SlotCount)
		term, ok := p.table.Mine(slot)
		if !running || !ok {
			continue
		}
		o.note(slot, meta.Slot{Node: p.name, Term: term})
		if dice.IntN(10) == 0 && !pause(20_000) {
			return
		}
		for !o.checkOnce(&p, slot, term) && pause(500) { // until the group can tell
		}
	}
}

// checkOnce reports whether the group could tell.
func (o *observer) checkOnce(p *node, slot int, term uint64) bool {
	o.mu.Lock()
	newest := o.newest[slot] // seen by some check before the question
	o.mu.Unlock()
	err := p.table.Check(o.g.t.Context(), slot, term)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil && (newest > term || o.owner[[2]uint64{uint64(slot), term}] != p.name):
		o.g.t.Errorf("slot %d: %s passed in term %d, the newest is %d", slot, p.name, term, newest)
	case err == nil:
		o.passed++
	case errors.Is(err, ErrLost):
		o.refused++
	default:
		return fault.Is(err, fault.Closed) // and its process has ended
	}
	return true
}

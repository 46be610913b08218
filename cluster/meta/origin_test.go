package meta

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"divan/storage/fault"
)

// told gathers what a node is told of its origin.
type told struct {
	mu  sync.Mutex
	all []string
}

func (o *told) tell(origin string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, origin)
}

func (o *told) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

// The origin is that of the founding, and all members have it written down,
// also one that lost its disk.
func TestOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCohort(t, 3)
		origin := g.meta(0).fsm.load().origin()
		for i, p := range g.peers {
			if got := storedOrigin(*p.stores); got != origin || got == "" {
				t.Errorf("node %d: %q, want %q", i, got, origin)
			}
		}
		g.stop(1)
		g.loseDisk(1)
		g.start(1)
		g.waitReady(1)
		if got := storedOrigin(*g.peers[1].stores); got != origin {
			t.Errorf("after it lost its disk: %q, want %q", got, origin)
		}
	})
	if a, b := (initCommand{"u", "1"}), (initCommand{"u", "2"}); a.origin() == b.origin() {
		t.Error("two foundings with one uuid have the same origin")
	}
}

// The founder knows the origin before Raft runs, and it stays.
func TestOriginOfAFounder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o told
		stores := memoryStores()
		for range 2 {
			_, stop := start(t, Options{Stores: stores, Belong: o.tell})
			stop()
		}
		m, stop := start(t, Options{Stores: stores, Belong: o.tell})
		defer stop()
		origin := m.fsm.load().origin()
		if got := o.list(); !slices.Equal(got, []string{origin, origin, origin}) || storedOrigin(*stores) != origin {
			t.Errorf("told %q, stored %q, follows %q", got, storedOrigin(*stores), origin)
		}
		// It died before the group had agreed on it: it goes on with the same.
		if got := m.founding().init.origin(); got != origin {
			t.Errorf("founds %s, want %s", got, origin)
		}
	})
}

// State that an earlier version has left has no origin written down: it is
// found out and told.
func TestOriginOfOlderState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCohort(t, 3)
		origin := g.meta(0).fsm.load().origin()
		g.stop(1)
		stores := *g.peers[1].stores
		if err := errors.Join(stores.Stable.Set(originKey(), nil), stores.Stable.SetUint64(committedKey(), 0)); err != nil {
			t.Fatal(err)
		}
		g.start(1)
		g.waitReady(1)
		g.wait("it is written down", func() bool { return storedOrigin(stores) == origin })
	})
}

// A node that finds itself with the metadata of another cluster stops.
func TestOriginOfAnotherGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := memoryStores()
		m, _ := start(t, Options{Stores: stores})
		if err := m.checkOrigin(*stores); err != nil {
			t.Error(err)
		}
		if err := noteOrigin(*stores, "another"); err != nil {
			t.Fatal(err)
		}
		if err := m.checkOrigin(*stores); !fault.Is(err, fault.Corruption) {
			t.Errorf("%v", err)
		}
		if got := storedOrigin(*stores); got != "another" {
			t.Errorf("it became %q", got)
		}
	})
}

package meta

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"divan/cluster/meta/metapb"
	"divan/storage/fault"
)

// told gathers what a node is told of its group.
type told struct {
	mu  sync.Mutex
	all []string
}

func (o *told) tell(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, id)
}

func (o *told) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

// The id is that of the founding, and all members have it written down,
// also one that lost its disk.
func TestGroupID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		id := g.meta(0).fsm.load().groupID()
		for i, p := range g.nodes {
			if got := storedGroupID(*p.stores); got != id || got == "" {
				t.Errorf("node %d: %q, want %q", i, got, id)
			}
		}
		g.stop(1)
		g.loseDisk(1)
		g.start(1)
		g.waitReady(1)
		if got := storedGroupID(*g.nodes[1].stores); got != id {
			t.Errorf("after it lost its disk: %q, want %q", got, id)
		}
	})
	if a, b := groupIDOf(&metapb.Init{Uuid: "u", Secret: "1"}), groupIDOf(&metapb.Init{Uuid: "u", Secret: "2"}); a == b {
		t.Error("two foundings with one uuid have the same id")
	}
}

// The founder knows the id before Raft runs, and it stays.
func TestGroupIDOfAFounder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o told
		stores := memoryStores()
		for range 2 {
			_, stop := start(t, Options{Stores: stores, OnGroupID: o.tell})
			stop()
		}
		m, stop := start(t, Options{Stores: stores, OnGroupID: o.tell})
		defer stop()
		id := m.fsm.load().groupID()
		if got := o.list(); !slices.Equal(got, []string{id, id, id}) || storedGroupID(*stores) != id {
			t.Errorf("told %q, stored %q, follows %q", got, storedGroupID(*stores), id)
		}
		// It died before the group had agreed on it: it goes on with the same.
		if i, err := storedIdentity(*stores); err != nil || groupIDOf(i) != id {
			t.Errorf("founds %v, %v, want %s", i, err, id)
		}
	})
}

// A node that finds itself with the metadata of another cluster stops.
func TestGroupIDOfAnotherGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := memoryStores()
		m, _ := start(t, Options{Stores: stores})
		if err := m.fsm.load().checkGroupID(*stores); err != nil {
			t.Error(err)
		}
		if err := storeGroupID(*stores, "another"); err != nil {
			t.Fatal(err)
		}
		if err := m.fsm.load().checkGroupID(*stores); !fault.Is(err, fault.Corruption) {
			t.Errorf("%v", err)
		}
		if got := storedGroupID(*stores); got != "another" {
			t.Errorf("it became %q", got)
		}
	})
}

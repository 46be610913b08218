package meta

import (
	"testing"
	"testing/synctest"
	"time"
)

// A leader whose disk is full hands the lead over, and keeps it where no other node can take it.
func TestFullDiskHandsTheLeadOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		first := g.leader()
		g.nodes[first].full.Store(true)
		g.wait("another leader", func() bool {
			now := g.leader()
			return now >= 0 && now != first
		})
		second := g.leader()
		<-time.After(2 * handOverEvery)
		if now := g.leader(); now != second {
			t.Errorf("the lead went on to %d", now)
		}
	})
}

// Where no disk has space, the lead does not go round.
func TestFullDisksKeepTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		before := g.meta(g.leader()).term.Load()
		for _, n := range g.nodes {
			n.full.Store(true)
		}
		<-time.After(4 * handOverEvery)
		if terms := g.meta(g.leader()).term.Load() - before; terms < 1 || terms > 5 {
			t.Errorf("%d leaders within %v", terms, 4*handOverEvery)
		}
	})
}

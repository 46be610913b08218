package meta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/meta/metapb"
	"divan/storage/fault"
)

// newProgram knows one version more than this one: the deletion of a database belongs to
// it. oldProgram is this one, which must never see such a command.
func newProgram() versions {
	return versions{ClusterVersion + 1, func(c *metapb.Command) uint64 {
		if c.GetDeleteDatabase() != nil {
			return ClusterVersion + 1
		}
		return neededVersion(c)
	}}
}

func oldProgram(t *testing.T) versions {
	t.Helper()
	return versions{ClusterVersion, func(c *metapb.Command) uint64 {
		if c.GetDeleteDatabase() != nil {
			t.Error("a program has got an operation that it does not know")
		}
		return neededVersion(c)
	}}
}

// TestRollingUpgrade upgrades nodes one by one while databases are made: nothing is
// refused but what belongs to the new version, and that until the last node knows it.
func TestRollingUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testCluster{t: t}
		t.Cleanup(g.close)
		for i := range 3 {
			g.nodes[g.add(fmt.Sprintf("n%d@host", i), "")].versions = oldProgram(t)
		}
		g.nodes[0].founder = true
		for i := range 3 {
			g.start(i)
			g.waitReady(i)
		}
		made, refused, old := 0, 0, 0
		work := func() {
			for i := range g.nodes {
				create(t, g.meta(i), fmt.Sprintf("db%d", made))
				made++
			}
		}
		work()
		for _, i := range []int{2, 0, 1} { // the leader, too
			g.stop(i)
			g.nodes[i].versions = newProgram()
			g.start(i)
			g.waitReady(i)
			g.leader()
			work()
			behind := []string{}
			for _, p := range g.nodes {
				if p.versions.known == ClusterVersion {
					behind = append(behind, p.name)
				}
			}
			g.wait("all see who is behind", func() bool {
				return !slices.ContainsFunc(g.nodes, func(p *testNode) bool {
					return p.versions.known > ClusterVersion && !slices.Equal(p.meta.ClusterVersions().Behind, behind)
				})
			})
			if len(behind) == 0 {
				break
			}
			if g.nodes[g.leader()].versions.known == ClusterVersion {
				old++ // which must not be asked
			}
			refused++
			_, err := g.meta(i).DeleteDatabase(t.Context(), "db0")
			wantKind(t, err, fault.Unavailable)
			if reason := fault.Reason(err); !strings.Contains(reason, strings.Join(behind, ", ")) {
				t.Errorf("%q does not name %v", reason, behind)
			}
		}
		if old == 0 || old == refused {
			t.Errorf("%d of %d leaders did not know the new version", old, refused)
		}
		for i := range g.nodes {
			if _, err := g.meta(i).DeleteDatabase(t.Context(), fmt.Sprintf("db%d", i)); err != nil {
				t.Errorf("node %d: %v", i, err)
			}
		}
		g.wait("all wrote the new version", func() bool {
			return !slices.ContainsFunc(g.nodes, func(p *testNode) bool {
				return p.meta.ClusterVersions().Written != ClusterVersion+1 || p.meta.Databases().Len() != made-3
			})
		})
		for i := range g.nodes {
			if v := g.meta(i).ClusterVersions(); v.Usable != ClusterVersion+1 || v.Behind != nil {
				t.Errorf("node %d: %+v", i, v)
			}
		}
	})
}

// TestOldProgramIsRefused: once an operation of a version was applied, a program that does
// not know the version neither joins nor starts on what was written.
func TestOldProgramIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testCluster{t: t}
		t.Cleanup(g.close)
		for i := range 2 {
			g.nodes[g.add(fmt.Sprintf("n%d@host", i), "")].versions = newProgram()
		}
		g.nodes[0].founder = true
		for i := range 2 {
			g.start(i)
			g.waitReady(i)
		}
		create(t, g.meta(0), "films")
		if _, err := g.meta(0).DeleteDatabase(t.Context(), "films"); err != nil {
			t.Fatal(err)
		}

		core, logs := observer.New(zap.WarnLevel)
		late := g.add("late@host", "")
		g.nodes[late].versions, g.nodes[late].log = oldProgram(t), zap.New(core)
		g.start(late)
		g.wait("a refusal", func() bool {
			return slices.ContainsFunc(logs.All(), func(e observer.LoggedEntry) bool {
				return strings.Contains(fmt.Sprint(e.ContextMap()["error"]), fmt.Sprintf("node late@host knows version %d of the cluster; the metadata are of version %d", ClusterVersion, ClusterVersion+1))
			})
		})
		if _, ok := g.meta(0).Node("late@host"); ok {
			t.Error("it is a member")
		}
		// No other node can bring it in either.
		wantKind(t, g.meta(0).PutNode(t.Context(), Node{Name: "late@host", ClusterVersion: ClusterVersion}), fault.BadRequest)
		// It is taken in as soon as its program is a new one.
		g.stopJoining(late)
		g.nodes[late].versions = newProgram()
		g.start(late)
		g.waitReady(late)

		create(t, g.meta(late), "plays")
		if err := g.meta(late).raft.Load().Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		g.stop(late)
		g.nodes[late].versions = versions{ClusterVersion, func(*metapb.Command) uint64 { return 0 }}
		g.start(late)
		if err := <-g.nodes[late].ended; err == nil || !strings.Contains(err.Error(), errNewer(ClusterVersion+1, ClusterVersion).Error()) {
			t.Errorf("it started: %v", err)
		}
		g.nodes[late].running = false
	})
}

// stopJoining stops a node that was not taken in.
func (g *testCluster) stopJoining(i int) {
	g.t.Helper()
	p := g.nodes[i]
	if err := p.meta.Close(); err != nil {
		g.t.Error(err)
	}
	<-p.ended //nolint:errcheck // it was to end
	g.mu.Lock()
	p.running = false
	g.mu.Unlock()
	g.wire()
	if err := p.transport.Close(); err != nil {
		g.t.Error(err)
	}
}

// TestVersionWhileANodeJoins: an operation of the new version and the entry of a node
// that does not know it come in some order, and never so that the node gets the operation.
func TestVersionWhileANodeJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testCluster{t: t}
		t.Cleanup(g.close)
		g.nodes[g.add("n0@host", "")].versions = newProgram()
		g.nodes[0].founder = true
		g.start(0)
		g.waitReady(0)
		m := g.meta(0)
		joined, deleted := 0, 0
		for i := range 40 {
			db, node := fmt.Sprintf("db%d", i), fmt.Sprintf("old%d@host", i)
			create(t, m, db)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			errs := make(chan error, 1)
			go func() { errs <- m.PutNode(ctx, Node{Name: node, ClusterVersion: ClusterVersion}) }()
			_, err := m.DeleteDatabase(ctx, db)
			put := <-errs
			cancel()
			if err == nil {
				deleted++
			}
			if put == nil {
				joined++
			}
			if v := m.ClusterVersions(); put == nil && v.Written > ClusterVersion {
				t.Fatalf("round %d: a member that does not know version %d: %+v", i, v.Written, v)
			}
			if put == nil {
				if err := m.RemoveNode(t.Context(), node); err != nil {
					t.Fatal(err)
				}
			}
			if m.ClusterVersions().Written > ClusterVersion {
				break // no old node joins any more
			}
		}
		if deleted+joined == 0 {
			t.Error("neither of them was ever done")
		}
	})
}

// TestVersionOfEarlierTerm: a leader that lost the lead and has it again, and has not
// noticed, may not know of a member that came between: it does not decide by its state.
func TestVersionOfEarlierTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testCluster{t: t}
		t.Cleanup(g.close)
		g.nodes[g.add("n0@host", "")].versions = newProgram()
		g.nodes[0].founder = true
		g.start(0)
		g.waitReady(0)
		m := g.meta(0)
		create(t, m, "films")
		led := m.term.Swap(m.term.Load() + 1)
		c := &metapb.Command{Op: &metapb.Command_DeleteDatabase{DeleteDatabase: &metapb.DeleteDatabase{Name: "films"}}}
		if _, err := m.proposer.enqueue(t.Context(), m.raft.Load(), c, encode(c)); !errors.Is(err, errNotProposed) {
			t.Errorf("got %v", err)
		}
		m.term.Store(led)
		if _, err := m.DeleteDatabase(t.Context(), "films"); err != nil {
			t.Error(err)
		}
	})
}

// A call that waits for its turn at a leader ends with its context, and does not stop the clock of
// the bubble meanwhile.
func TestWaitForTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testCluster{t: t}
		t.Cleanup(g.close)
		g.add("n0@host", "")
		g.nodes[0].founder = true
		g.start(0)
		g.waitReady(0)
		m := g.meta(0)
		for _, tc := range []struct {
			turn chan struct{}
			do   func(ctx context.Context) error
		}{
			{m.proposer.versionTurn, func(ctx context.Context) error {
				return m.PutNode(ctx, Node{Name: "n1@host", ClusterVersion: ClusterVersion})
			}},
			{m.Config.turn, func(ctx context.Context) error {
				_, err := m.Config.Set(ctx, ConfigChange{Section: "couchdb", Key: "max_document_size", Value: "1000"})
				return err
			}},
		} {
			tc.turn <- struct{}{}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begin := time.Now()
			if err := tc.do(ctx); err == nil || time.Since(begin) > 2*time.Second {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
			cancel()
			<-tc.turn
			if err := tc.do(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

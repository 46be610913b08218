package meta

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/config"
	"divan/cluster/meta/dbsetting"
	"divan/cluster/meta/raftlog"
	"divan/storage/fault"
)

// Nodes join by themselves; a change through any of them is seen there at once
// and everywhere after catching up.
func TestThreeNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		for i := range g.nodes {
			m := g.meta(i)
			name := fmt.Sprintf("db%d", i)
			db, err := m.CreateDatabase(t.Context(), Create{Name: name, Q: 2, N: 3})
			if err != nil || db.N != 3 {
				t.Fatalf("create on node %d: %+v, %v", i, db, err)
			}
			if got, ok := m.Database(name); !ok || got.ID != db.ID || got.Suffix != db.Suffix {
				t.Errorf("node %d does not see what it made", i)
			}
			wantKind(t, second(m.CreateDatabase(t.Context(), Create{Name: name, Q: 1, N: 1})), fault.Exists)
			for j := range g.nodes {
				if err := g.meta(j).Set(t.Context(), whichever(name), dbsetting.RevsLimit, 10+j); err != nil {
					t.Fatalf("node %d: %v", j, err)
				}
				if got, _ := g.meta(j).Database(name); got.Settings[dbsetting.RevsLimit] != 10+j {
					t.Errorf("node %d sees limit %d", j, got.Settings[dbsetting.RevsLimit])
				}
			}
			old, err := g.meta((i+1)%3).DeleteDatabase(t.Context(), name)
			if err != nil || old.ID != db.ID || old.Settings[dbsetting.RevsLimit] != 12 {
				t.Errorf("deleted %+v, %v", old, err)
			}
			for j := range g.nodes {
				wantKind(t, second(g.meta(j).DeleteDatabase(t.Context(), name)), fault.NotFound)
			}
		}
		set(t, g.meta(g.follower()), ConfigChange{Section: "admins", Key: "root", Value: "secret"})
		for i := range g.nodes {
			if err := g.meta(i).CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := get(g.meta(i), "admins", "root"); !config.IsHashed(got) {
				t.Errorf("node %d has %q", i, got)
			}
			if g.meta(i).UUID() != g.meta(0).UUID() || len(g.meta(i).Nodes()) != 3 || g.meta(i).Leader() == "" || len(g.meta(i).Voters()) != 3 {
				t.Errorf("node %d: uuid %s, nodes %v, leader %s, voters %v", i, g.meta(i).UUID(), g.meta(i).Nodes(), g.meta(i).Leader(), g.meta(i).Voters())
			}
		}
	})
}

// A node that has others to wait for one day does not wait while it is alone.
func TestAloneWithPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 1)
		for range 3 {
			create(t, g.meta(0), fmt.Sprintf("db%d", time.Now().UnixNano()))
			time.Sleep(time.Minute)
			g.stop(0)
			begin := time.Now()
			g.start(0)
			g.waitReady(0)
			if took := time.Since(begin); took > 100*time.Millisecond {
				t.Errorf("ready after %v", took)
			}
		}
	})
}

// A change through a follower costs a question to the leader, not the wait for
// Raft's next message.
func TestForwardingIsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		m := g.meta(g.follower())
		begin := time.Now()
		for i := range 20 {
			create(t, m, fmt.Sprintf("db%d", i))
		}
		if took := time.Since(begin); took > 200*time.Millisecond {
			t.Errorf("20 creations took %v", took)
		}
	})
}

// With a majority gone metadata answers at once that it cannot decide, another
// leader takes over with all that was acknowledged, and the old one catches up.
func TestLossOfTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		ctx := t.Context()
		first := g.leader()
		kept := create(t, g.meta(first), "kept")

		g.cut(first)
		begin := time.Now()
		_, err := g.meta(first).CreateDatabase(ctx, Create{Name: "lost", Q: 1, N: 1})
		wantKind(t, err, fault.Unavailable)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("without a majority a creation took %v to fail", took)
		}
		begin = time.Now()
		_, err = g.meta(first).Require(ctx, "unknown")
		wantKind(t, err, fault.Unavailable)
		if took := time.Since(begin); took > 0 {
			t.Errorf("without a majority a look-up took %v to fail", took)
		}
		if db, err := g.meta(first).Require(ctx, "kept"); err != nil || db.ID != kept.ID {
			t.Errorf("what is known cannot be read without a majority: %v", err)
		}

		next := g.leader()
		if db, ok := g.meta(next).Database("kept"); !ok || db.ID != kept.ID {
			t.Error("a new leader does not know what was acknowledged")
		}
		created := create(t, g.meta(next), "lost")

		g.heal()
		g.wait("the old leader follows", func() bool { return g.meta(first).CatchUp(ctx) == nil })
		for i := range g.nodes {
			if err := g.meta(i).CatchUp(ctx); err != nil {
				t.Fatal(err)
			}
			if db, ok := g.meta(i).Database("lost"); !ok || db.ID != created.ID {
				t.Errorf("node %d has not caught up", i)
			}
		}
	})
}

// While the leader changes, a request waits for the next one.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		for i := range 3 {
			gone := g.leader()
			g.stop(gone)
			m := g.meta((gone + 1) % 3)
			begin := time.Now()
			create(t, m, fmt.Sprintf("by%d", i))
			if took := time.Since(begin); took > 500*time.Millisecond { // the old leader handed over
				t.Errorf("after an orderly stop a creation took %v", took)
			}
			g.start(gone)
			g.waitReady(gone)
			gone = g.leader()
			g.cut(gone)
			m = g.meta((gone + 1) % 3)
			begin = time.Now()
			create(t, m, fmt.Sprintf("after%d", i))
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("after the loss of the leader a creation took %v", took)
			}
			g.heal()
		}
	})
}

// Of five nodes three decide and two cannot.
func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 5)
		ctx := t.Context()
		leader := g.leader()
		minority := []int{leader, (leader + 1) % 5}
		g.cut(minority...)
		for _, i := range minority {
			_, err := g.meta(i).CreateDatabase(ctx, Create{Name: "split", Q: 1, N: 1})
			wantKind(t, err, fault.Unavailable)
			begin := time.Now()
			wantKind(t, g.meta(i).CatchUp(ctx), fault.Unavailable)
			if took := time.Since(begin); took > 0 {
				t.Errorf("node %d took %v to say so", i, took)
			}
		}
		g.leader() // with not one vote to spare this may take more than one round
		db := create(t, g.meta((leader+2)%5), "split")
		g.heal()
		for _, i := range minority {
			g.wait("the minority follows", func() bool { return g.meta(i).CatchUp(ctx) == nil })
			if got, ok := g.meta(i).Database("split"); !ok || got.ID != db.ID {
				t.Errorf("node %d does not know the database", i)
			}
		}
	})
}

// When the leader's answer is lost, the outcome is unknown, and nothing is
// proposed again.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		m := g.meta(g.follower())
		if err := m.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := m.Applied()
		g.lose(func(string, string) bool { return true })
		_, err := m.CreateDatabase(t.Context(), Create{Name: "films", Q: 1, N: 1})
		wantKind(t, err, fault.Unavailable)
		g.lose(nil)
		if _, err := m.Require(t.Context(), "films"); err != nil {
			t.Errorf("the creation whose answer was lost: %v", err)
		}
		entries, err := readLog(m.proposer.stores.log(), before+1, m.Applied())
		if err != nil {
			t.Fatal(err)
		}
		entries = slices.DeleteFunc(entries, func(l *raft.Log) bool { return l.Type != raft.LogCommand })
		if len(entries) != 1 {
			t.Errorf("%d commands for one creation", len(entries))
		}
	})
}

// What was committed is known after a start without a majority, and the node
// is ready with it.
func TestStartWithoutMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		db := create(t, g.meta(g.follower()), "films")
		for i := range g.nodes {
			if err := g.meta(i).CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range g.nodes {
			g.stop(i)
		}
		g.start(1)
		m := g.meta(1)
		begin := time.Now()
		g.waitReady(1)
		if took := time.Since(begin); took < readyAnyway || took > readyAnyway+time.Second {
			t.Errorf("ready after %v", took)
		}
		if got, err := m.Require(t.Context(), "films"); err != nil || got.ID != db.ID {
			t.Errorf("after a start alone: %v, %v", got, err)
		}
		wantKind(t, second(m.Require(t.Context(), "books")), fault.Unavailable)
		wantKind(t, second(m.CreateDatabase(t.Context(), Create{Name: "books", Q: 1, N: 1})), fault.Unavailable)
		g.start(0)
		g.wait("two decide again", func() bool { return m.CatchUp(t.Context()) == nil })
		create(t, m, "books")
	})
}

// A node whose disk was lost joins anew under its name, and not as the voter
// that it was.
func TestLostDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		db := create(t, g.meta(0), "films")
		for _, lost := range []int{g.follower(), g.leader()} {
			name := g.nodes[lost].name
			g.stop(lost)
			g.loseDisk(lost)
			g.start(lost)
			g.waitReady(lost)
			if slices.Contains(g.meta(g.leader()).Voters(), name) {
				t.Error("an empty log still counts as a voter's")
			}
			if got, ok := g.meta(lost).Database("films"); !ok || got.ID != db.ID {
				t.Error("a node that came back empty does not know the database")
			}
			g.wait("it votes again", func() bool { return slices.Contains(g.meta(lost).Voters(), name) })
		}
	})
}

func TestRaftErrors(t *testing.T) {
	for _, c := range []struct {
		err   error
		want  fault.Kind
		later bool // the reason says that it may still be decided
	}{
		{raft.ErrLeadershipLost, fault.Unavailable, true},
		{raft.ErrEnqueueTimeout, fault.Unavailable, false},
		{fmt.Errorf("wrapped: %w", raft.ErrAbortedByRestore), fault.Unavailable, true},
		{raft.ErrRaftShutdown, fault.Closed, false},
		{errors.New("disk on fire"), fault.Internal, false},
	} {
		err := raftError(c.err)
		wantKind(t, err, c.want)
		if !errors.Is(err, c.err) {
			t.Errorf("%v lost its cause", err)
		}
		if later := strings.HasSuffix(fault.Reason(err), "this one may still be decided later."); later != c.later {
			t.Errorf("%v says that it may still be decided: %v", err, later)
		}
	}
}

// Raft's errors are warnings, a few of each kind; everything else is for those
// who look for a fault.
func TestRaftLog(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	l := raftlog.New(zap.New(core))
	sub := l.With("a", 1).Named("net").ResetNamed("x")
	sub.Debug("hidden")
	sub.Trace("hidden")
	sub.Warn("hidden")
	for range 10 {
		sub.Error("shown", "b", "two", "odd")
	}
	if logs.Len() != 3 {
		t.Fatalf("logged %v", logs.All())
	}
	e := logs.All()[0]
	if e.Level != zapcore.WarnLevel || e.ContextMap()["a"] != int64(1) || e.ContextMap()["b"] != "two" || e.LoggerName != "raft.net.x" {
		t.Errorf("logged %+v", e)
	}
	if l.GetLevel() != hclog.Error || l.IsDebug() || l.IsTrace() || l.IsInfo() || l.IsWarn() || !l.IsError() {
		t.Errorf("level %v", l.GetLevel())
	}
	if sub.Name() == "" || len(sub.ImpliedArgs()) != 2 || raftlog.New(zap.NewNop()).Name() != "raft" {
		t.Errorf("named %q with %v", sub.Name(), sub.ImpliedArgs())
	}
	sub.StandardLogger(nil).Print("shown")
	if logs.Len() != 4 {
		t.Errorf("a standard logger's line is lost: %v", logs.All())
	}
}

// A message to a follower must get there in time, also when it has the largest
// entries that clients can make: at 10 MB in a second, which any network has.
func TestMessagesFitTheirTimeout(t *testing.T) {
	const perSecond, timeout = 10 << 20, 10 // of the transport, in seconds
	if most := raftConfig("", raftTimeout, raftlog.New(zap.NewNop())).MaxAppendEntries * maxSecurity; most > perSecond*timeout {
		t.Errorf("a message can have %d MB", most>>20)
	}
}

package meta

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/config"
	"divan/storage/fault"
)

// trio is three nodes whose transports can be cut.
type trio struct {
	metas      [3]*Meta
	transports [3]*raft.InmemTransport
}

// newTrio founds a group on the first node and has the others join it.
func newTrio(t *testing.T) *trio {
	t.Helper()
	g := &trio{}
	ended := make(chan error, len(g.metas))
	for i := range g.metas {
		name := fmt.Sprintf("n%d@host", i)
		_, g.transports[i] = raft.NewInmemTransportWithTimeout(raft.ServerAddress(name), 100*time.Millisecond)
		m, err := New(Options{Self: Node{Name: name}, Config: holder(t, config.Options{}), Transport: g.transports[i], Bootstrap: i == 0})
		if err != nil {
			t.Fatal(err)
		}
		g.metas[i] = m
		go func() { ended <- m.Run(t.Context()) }()
	}
	t.Cleanup(func() {
		for i, m := range g.metas {
			g.connect(i) // a leader that still waits for an answer cannot stop
			if err := errors.Join(m.Close(), <-ended); err != nil {
				t.Error(err)
			}
		}
		for _, tr := range g.transports {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range g.metas {
		g.connect(i)
	}
	if err := g.metas[0].WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range g.metas[1:] {
		id := m.Self()
		f := g.metas[0].raft.Load().AddVoter(raft.ServerID(id), raft.ServerAddress(id), 0, time.Minute)
		if err := f.Error(); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func (g *trio) connect(i int) {
	for j := range g.transports {
		if i != j {
			g.transports[i].Connect(g.transports[j].LocalAddr(), g.transports[j])
			g.transports[j].Connect(g.transports[i].LocalAddr(), g.transports[i])
		}
	}
}

func (g *trio) cut(i int) {
	g.transports[i].DisconnectAll()
	for j := range g.transports {
		if i != j {
			g.transports[j].Disconnect(g.transports[i].LocalAddr())
		}
	}
}

// leader waits for a node other than not that leads and can be relied on.
func (g *trio) leader(t *testing.T, not int) int {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for range 600 {
		for i, m := range g.metas {
			if i != not && m.leading.Load() && m.CatchUp(t.Context()) == nil {
				return i
			}
		}
		<-again.C
	}
	t.Fatal("nobody leads")
	return -1
}

// With a majority gone metadata answers at once that it cannot decide, another
// leader takes over with all that was acknowledged, and the old one catches up.
func TestLossOfTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTrio(t)
		ctx := t.Context()
		first := g.leader(t, -1)
		kept := create(t, g.metas[first], "kept")

		g.cut(first)
		begin := time.Now()
		_, err := g.metas[first].CreateDatabase(ctx, Create{Name: "lost", Q: 1, N: 1})
		wantKind(t, err, fault.Unavailable)
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("without a majority a creation took %v to fail", took)
		}
		_, err = g.metas[first].Require(ctx, "unknown")
		wantKind(t, err, fault.Unavailable)
		if db, err := g.metas[first].Require(ctx, "kept"); err != nil || db.ID != kept.ID {
			t.Errorf("what is known cannot be read without a majority: %v", err)
		}

		next := g.leader(t, first)
		if db, ok := g.metas[next].Database("kept"); !ok || db.ID != kept.ID {
			t.Error("a new leader does not know what was acknowledged")
		}
		created := create(t, g.metas[next], "lost")

		g.connect(first)
		time.Sleep(10 * time.Second)
		for i, m := range g.metas {
			if db, ok := m.Database("lost"); !ok || db.ID != created.ID {
				t.Errorf("node %d has not caught up", i)
			}
		}
		last := g.leader(t, -1)
		follower := (last + 1) % 3
		_, err = g.metas[follower].CreateDatabase(ctx, Create{Name: "another", Q: 1, N: 1})
		wantKind(t, err, fault.Unavailable)
		wantKind(t, g.metas[follower].CatchUp(ctx), fault.Unavailable)
	})
}

func TestRaftErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fault.Kind
	}{
		{raft.ErrNotLeader, fault.Unavailable},
		{raft.ErrLeadershipLost, fault.Unavailable},
		{raft.ErrLeadershipTransferInProgress, fault.Unavailable},
		{raft.ErrEnqueueTimeout, fault.Unavailable},
		{fmt.Errorf("wrapped: %w", raft.ErrAbortedByRestore), fault.Unavailable},
		{raft.ErrRaftShutdown, fault.Closed},
		{errors.New("disk on fire"), fault.Internal},
	} {
		err := raftError(c.err)
		wantKind(t, err, c.want)
		if !errors.Is(err, c.err) {
			t.Errorf("%v lost its cause", err)
		}
	}
}

func TestRaftLog(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	l := newRaftLog(zap.New(core))
	sub := l.With("a", 1).Named("net").ResetNamed("x")
	sub.Debug("hidden")
	sub.Trace("hidden")
	sub.Warn("shown", "b", "two", "odd")
	sub.Error("shown")
	sub.StandardLogger(nil).Print("shown")
	if logs.Len() != 3 {
		t.Fatalf("logged %v", logs.All())
	}
	e := logs.All()[0]
	if e.Level != zapcore.WarnLevel || e.ContextMap()["a"] != int64(1) || e.ContextMap()["b"] != "two" || e.LoggerName != "raft.net.x" {
		t.Errorf("logged %+v", e)
	}
	if l.GetLevel() != hclog.Info || l.IsDebug() || l.IsTrace() || !l.IsInfo() || !l.IsWarn() || !l.IsError() {
		t.Errorf("level %v", l.GetLevel())
	}
	l.quiet.Store(true)
	sub.Warn("an election of one")
	if logs.Len() != 3 || l.GetLevel() != hclog.Error || sub.Name() == "" || len(sub.ImpliedArgs()) != 2 {
		t.Errorf("a quiet log logs: %v", logs.All())
	}
}

package meta

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"divan/storage/fault"
)

// TestReadOfPausedLeader: a leader is paused while answers to its heartbeats are on their
// way. The others elect another one. The first, as it goes on, finds the answers, which
// say that it led once, and must not take them for a proof that it leads now.
func TestReadOfPausedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		paused := g.leader()
		old, next, third := g.nodes[paused], g.nodes[(paused+1)%3], g.nodes[(paused+2)%3]
		onTheirWay, goesOn := make(chan struct{}, 100), make(chan struct{})
		held := func() {
			onTheirWay <- struct{}{}
			<-goesOn
		}
		old.answered.Store(&held)
		for range 2 { // of both others
			<-onTheirWay
		}
		g.muteRaft(paused, true)
		request := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(third.name), Addr: []byte(third.name)}}
		if err := third.transport.TimeoutNow(raft.ServerID(next.name), raft.ServerAddress(next.name), &request, &raft.TimeoutNowResponse{}); err != nil {
			t.Fatal(err)
		}
		for next.meta.term.Load() == 0 {
			<-time.After(time.Millisecond)
		}
		create(t, next.meta, "new")
		if old.meta.term.Load() == 0 {
			t.Fatal("the first leader knows already that it does not lead")
		}
		answer := make(chan error, 1)
		go func() { answer <- old.meta.CatchUp(t.Context()) }()
		synctest.Wait()
		close(goesOn)
		err := <-answer
		wantKind(t, err, fault.Unavailable)
		g.muteRaft(paused, false)
		g.wait("it follows", func() bool { return old.meta.CatchUp(t.Context()) == nil })
		if _, ok := old.meta.Database("new"); !ok {
			t.Error("it does not know what was acknowledged")
		}
	})
}

// TestReadOfLeader: of three voters one other is enough for a leader to know that it leads, and
// one that says nothing is not waited for.
func TestReadOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		leader := g.leader()
		hung, third := g.nodes[(leader+1)%3], g.nodes[(leader+2)%3]
		hung.hung.Store(true)
		defer hung.hung.Store(false)
		begun := time.Now()
		if err := g.meta(leader).CatchUp(t.Context()); err != nil || time.Since(begun) > 0 {
			t.Errorf("with one that hangs: %v after %v", err, time.Since(begun))
		}
		g.lose(func(_, to string) bool { return to == third.name })
		wantKind(t, g.meta(leader).CatchUp(t.Context()), fault.Unavailable)
		g.lose(nil)
	})
}

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
		g.cut(paused)
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
		g.heal()
		g.wait("it follows", func() bool { return old.meta.CatchUp(t.Context()) == nil })
		if _, ok := old.meta.Database("new"); !ok {
			t.Error("it does not know what was acknowledged")
		}
	})
}

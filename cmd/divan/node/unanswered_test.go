package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"divan/cluster/wire/simnet"
)

// The leader dies when the others have taken the entry that creates a database, and before
// the node that asked for it has heard so: that node cannot say what came of it. The
// database can be used all the same, without the leader.
func TestLeaderDiesDuringCreation(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		var leader, asked *home
		for _, h := range []*home{a, b, c} {
			if h.name == a.node.meta.Leader() {
				leader = h
			} else {
				asked = h
			}
		}
		ip := func(h *home) string { return fmt.Sprint("10.0.0.", h.i) }
		w.net.SetLink(ip(leader), ip(asked), simnet.Link{Latency: 5 * time.Second})
		answer := make(chan string, 1)
		go func() { answer <- asked.ask("PUT", "/pond", "") }()
		<-time.After(100 * time.Millisecond)
		if _, ok := leader.node.meta.Database("pond"); !ok {
			w.t.Fatal("the leader has no entry")
		}
		leader.kill()
		w.net.Heal()
		if got := <-answer; !strings.HasPrefix(got, "503") && !strings.HasPrefix(got, "201") {
			w.t.Errorf("creation: %s", got)
		} else {
			w.t.Log(got)
		}
		took := asked.soon("PUT", "/pond/frog", "{}", "20")
		w.t.Logf("it can be written to after %v", took)
		asked.want("GET", "/pond/frog", "", "200")
	})
}

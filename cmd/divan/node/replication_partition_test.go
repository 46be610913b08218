package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"divan/cluster/wire/simnet"
)

// The node that runs a replication is cut off from the other nodes, not from the
// databases that it copies: it stops before another one goes on, and no two run
// it at any moment.
func TestPartitionRunsNoReplicationTwice(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		d := w.build(4, "DIVAN_COUCHDB__SINGLE_NODE=true", openToAll)
		d.start()
		d.soon("PUT", "/pond", "", "201")
		d.soon("PUT", "/lake", "", "201")
		a.soon("PUT", "/_replicator/job", `{`+d.sides("pond", "lake")+`,"continuous":true,"checkpoint_interval":100}`, "201")
		homes := []*home{a, b, c}
		docs := 0
		copied := func() time.Duration {
			docs++
			d.want("PUT", fmt.Sprintf("/pond/%d", docs), "{}", "201")
			return d.soon("GET", fmt.Sprintf("/lake/%d", docs), "", "200")
		}
		copied()
		for range 3 {
			<-time.After(20 * time.Second) // the slots have found their places
			copied()
			first := replicating(w.t, homes)
			for i, h := range homes {
				if i != first {
					w.net.SetLink(h.host.IP(), homes[first].host.IP(), simnet.Link{Cut: true})
					w.net.SetLink(homes[first].host.IP(), h.host.IP(), simnet.Link{Cut: true})
				}
			}
			ended := w.eventually("the first one stops", func() bool { return replicating(w.t, homes) < 0 })
			next := w.eventually("another one goes on", func() bool { return replicating(w.t, homes) >= 0 })
			if replicating(w.t, homes) == first {
				w.t.Error("a node that is cut off replicates")
			}
			w.t.Logf("node %d stops after %v, node %d begins %v later, and copies after %v more", first, ended, replicating(w.t, homes), next, copied())
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
				replicating(w.t, homes)
			}
			w.net.Heal()
		}
	})
}

// replicating returns which node runs the replication, -1 for none; more are an
// error.
func replicating(t *testing.T, homes []*home) int {
	t.Helper()
	count := func(h *home) bool { return h.node.replicator.Figures().Jobs.Running > 0 }
	at := slices.IndexFunc(homes, count)
	if at >= 0 && slices.ContainsFunc(homes[at+1:], count) {
		t.Error("two nodes run the same replication")
	}
	return at
}

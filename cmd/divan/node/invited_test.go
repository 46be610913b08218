package node

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// addNode is the request by which a member invites a node.
func addNode(h *home) string {
	return fmt.Sprintf(`{"action":"add_node","host":"10.0.0.%d","port":5984,"username":"adm","password":"pass"}`, h.i)
}

// A node that was invited by one that told it a wrong address cannot join, and
// says so to a load balancer; invited again, it joins.
func TestInvitedAgain(t *testing.T) {
	inTown(t, func(w *town) {
		open := "DIVAN_COUCHDB__SINGLE_NODE=false"
		a := w.build(1, open, secret0, openToAll, "DIVAN_CLUSTER__ADVERTISE=10.0.0.9:5986")
		b := w.build(2, open, secret0, openToAll)
		w.start(a, b)
		for _, h := range []*home{a, b} {
			h.soon("GET", "/_up", "", "200")
		}
		b.want("PUT", "/_node/_local/_config/log/level", `"warning"`, "200")
		a.want("POST", "/_cluster_setup", addNode(b), "503")
		b.want("GET", "/_up", "", `404 {"status":"seeding"`)

		a.end()
		a.cfg.Environ = settings("NODENAME="+a.name, open, secret0, openToAll)
		a.start()
		a.soon("GET", "/_up", "", "200")
		<-time.After(20 * time.Second)
		b.want("GET", "/_up", "", `404 {"status":"seeding"`)
		a.want("POST", "/_cluster_setup", addNode(b), "201")
		b.soon("GET", "/_up", "", `200 {"status":"ok"`)
		if got, want := b.node.meta.UUID(), a.node.meta.UUID(); got != want {
			w.t.Errorf("uuid %s, want %s", got, want)
		}
		b.soon("GET", "/_node/_local/_config/log/level", "", `200 "warning"`)
		w.eventually("that is noted", func() bool { id := b.node.links.members.id.load(); return !id.Invited && !id.Archived })
	})
}

// A node that an invitation leads nowhere joins another cluster than that one.
func TestInvitedByAnother(t *testing.T) {
	inTown(t, func(w *town) {
		open := "DIVAN_COUCHDB__SINGLE_NODE=false"
		a := w.build(1, open, openToAll, "DIVAN_CLUSTER__ADVERTISE=10.0.0.9:5986")
		b, c := w.build(2, open, openToAll), w.build(3, open, openToAll)
		w.start(a, b, c)
		for _, h := range []*home{a, b, c} {
			h.soon("GET", "/_up", "", "200")
		}
		a.want("POST", "/_cluster_setup", addNode(b), "503")
		c.want("POST", "/_cluster_setup", addNode(b), "201")
		w.eventually("it belongs to the other cluster", func() bool { return b.node.links.members.joined() })
		if got, want := b.node.meta.UUID(), c.node.meta.UUID(); got != want {
			w.t.Errorf("uuid %s, want %s", got, want)
		}
		if got := a.ask("POST", "/_cluster_setup", addNode(b)); !strings.HasPrefix(got, "400") || !strings.Contains(got, c.name) {
			w.t.Errorf("a member of another cluster: %s", got)
		}
	})
}

// A node without a seed list that has lost its metadata, and not what it knew of
// its cluster, has not joined before the others are back.
func TestLostMetadata(t *testing.T) {
	inTown(t, func(w *town) {
		open := "DIVAN_COUCHDB__SINGLE_NODE=false"
		a, b := w.build(1, open, secret0, openToAll), w.build(2, open, secret0, openToAll)
		w.start(a, b)
		for _, h := range []*home{a, b} {
			h.soon("GET", "/_up", "", "200")
		}
		a.want("POST", "/_cluster_setup", addNode(b), "201")
		b.soon("GET", "/_up", "", "200")
		w.eventually("that is noted", func() bool { return len(b.node.links.members.id.load().Nodes) == 2 })
		a.end()
		b.end()
		*b.cfg.Meta = memoryStores()
		b.start()
		<-time.After(2 * settlePatience)
		b.want("GET", "/_up", "", `404 {"status":"seeding"`)
	})
}

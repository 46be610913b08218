package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
)

// wipe kills a node and gives it an empty disk.
func (w *town) wipe(h *home, environ ...string) *home {
	w.t.Helper()
	if h.cancel != nil {
		h.kill()
	}
	return w.build(h.i, environ...)
}

// errorsAbout returns what a node logged as errors about another one.
func (h *home) errorsAbout(other *home) []string {
	var out []string
	for _, e := range h.logs.All() {
		if e.Level >= zapcore.ErrorLevel && e.ContextMap()["node"] == other.name {
			out = append(out, e.Message+" "+fmt.Sprint(e.ContextMap()["remedy"]))
		}
	}
	return out
}

// fill makes a database with a few documents.
func (h *home) fill(db string) {
	h.town.t.Helper()
	h.want("PUT", "/"+db, "", "201")
	for i := range 10 {
		h.want("PUT", fmt.Sprintf("/%s/frog%d", db, i), "{}", "201")
	}
}

// wantWhole checks that nodes are one cluster, with the uuid that it had, whose
// members have all that fill has made.
func (w *town) wantWhole(uuid, db string, all ...*home) {
	w.t.Helper()
	for _, h := range all {
		h.soon("GET", "/_up", "", `200 {"status":"ok"`)
		h.soon("GET", "/"+db+"/frog7", "", "200")
	}
	w.eventually("all vote, and each copy has everything", func() bool {
		return !slices.ContainsFunc(all, func(h *home) bool {
			copies, docs := h.docs(db)
			return len(h.node.meta.Voters()) != len(all) || copies == 0 || docs != 10
		})
	})
	for _, h := range all {
		if got := h.node.meta.UUID(); got != uuid {
			w.t.Errorf("%s: uuid %s, want %s", h.name, got, uuid)
		}
		if got := len(h.node.meta.Nodes()); got != len(all) {
			w.t.Errorf("%s: %d nodes", h.name, got)
		}
		h.want("PUT", "/lake-"+fmt.Sprint(h.i), "", "201")
	}
}

// wantApart checks for a while that a node is a cluster by itself, of which the
// others have heard, and nothing more.
func (w *town) wantApart(uuid string, stray *home, others ...*home) {
	w.t.Helper()
	<-time.After(30 * time.Second)
	if got := stray.node.meta.Voters(); !slices.Equal(got, []string{stray.name}) {
		w.t.Errorf("with %s vote %v", stray.name, got)
	}
	if got := len(stray.node.meta.Nodes()); got != 1 {
		w.t.Errorf("%s: %d nodes", stray.name, got)
	}
	if got := stray.node.meta.Databases().Len(); got > 3 {
		w.t.Errorf("%s has %d databases", stray.name, got)
	}
	for _, h := range others {
		if got := h.node.meta.UUID(); got != uuid {
			w.t.Errorf("%s: uuid %s, want %s", h.name, got, uuid)
		}
		h.want("GET", "/pond/frog3", "", "200")
		h.soon("PUT", "/sea-"+fmt.Sprint(h.i), "", "201")
		if got := h.errorsAbout(stray); len(got) != 1 || !strings.Contains(got[0], "lost its data directory") || !strings.Contains(got[0], "_cluster_setup") {
			w.t.Errorf("%s says of the stray node: %q", h.name, got)
		}
	}
	told := 0
	for _, h := range others {
		got := stray.errorsAbout(h)
		told += len(got)
		if len(got) > 1 || len(got) == 1 && (!strings.Contains(got[0], "lost its data directory") || !strings.Contains(got[0], "_cluster_setup")) {
			w.t.Errorf("the stray node says of %s: %q", h.name, got)
		}
	}
	if told == 0 {
		w.t.Error("the stray node does not know what happened")
	}
}

// All nodes are started together, and the first of the seed list has lost its
// disk: the others are members that cannot say so yet.
func TestFounderLosesDiskWhileAllAreDown(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.fill("pond")
		uuid := a.node.meta.UUID()
		<-time.After(10 * time.Second)
		for _, h := range []*home{a, b, c} {
			h.kill()
		}
		a = w.wipe(a, seedList, secret0, openToAll)
		w.start(a, b, c)
		w.wantWhole(uuid, "pond", a, b, c)
		for _, h := range []*home{a, b, c} {
			for _, e := range h.logs.All() {
				if e.Level >= zapcore.ErrorLevel && strings.Contains(e.Message, "cluster") {
					w.t.Errorf("%s: %s %v", h.name, e.Message, e.ContextMap())
				}
			}
		}
	})
}

// The members of a node's seed list are away for long, but for one that has its
// state and no majority: no other cluster is founded beside it.
func TestFounderWaitsForMajority(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.fill("pond")
		uuid := a.node.meta.UUID()
		for _, h := range []*home{a, b, c} {
			h.kill()
		}
		a = w.wipe(a, seedList, secret0, openToAll)
		w.start(a, b)
		<-time.After(30 * time.Second)
		if got := a.node.meta.UUID(); got != "" {
			w.t.Errorf("uuid %s", got)
		}
		w.start(c)
		w.wantWhole(uuid, "pond", a, b, c)
	})
}

// The only node of every node's seed list loses its disk.
func TestOnlySeedLosesDisk(t *testing.T) {
	for _, also := range []string{"", "DIVAN_COUCHDB__UUID=0123456789abcdef0123456789abcdef"} {
		t.Run(also, func(t *testing.T) {
			inTown(t, func(w *town) {
				settings := []string{"DIVAN_CLUSTER__SEEDLIST=divan@10.0.0.1", secret0, openToAll}
				if also != "" {
					settings = append(settings, also) // as one does who comes from CouchDB
				}
				a, b, c := w.build(1, settings...), w.build(2, settings...), w.build(3, settings...)
				w.start(a, b, c)
				w.eventually("all vote", func() bool { return len(a.node.meta.Voters()) == 3 })
				a.fill("pond")
				uuid := a.node.meta.UUID()
				a = w.wipe(a, settings...)
				a.start()
				w.wantApart(uuid, a, b, c)

				a = w.wipe(a, "DIVAN_CLUSTER__SEEDLIST=divan@10.0.0.2,divan@10.0.0.3", secret0, openToAll)
				a.start()
				w.wantWhole(uuid, "pond", a, b, c)
			})
		})
	}
}

// A node without a seed list loses its disk.
func TestSetUpNodeLosesDisk(t *testing.T) {
	for _, again := range []string{"as it is", "empty", "the leader, empty"} {
		t.Run(again, func(t *testing.T) {
			inTown(t, func(w *town) {
				open := "DIVAN_COUCHDB__SINGLE_NODE=false"
				a, b, c := w.build(1, open, secret0, openToAll), w.build(2, open, secret0, openToAll), w.build(3, open, secret0, openToAll)
				w.start(a, b, c)
				add := func(h *home) string {
					return fmt.Sprintf(`{"action":"add_node","host":"10.0.0.%d","port":5984,"username":"adm","password":"pass"}`, h.i)
				}
				for _, h := range []*home{a, b, c} {
					h.soon("GET", "/_up", "", "200")
				}
				a.want("POST", "/_cluster_setup", add(b), "201")
				a.want("POST", "/_cluster_setup", add(c), "201")
				a.want("POST", "/_cluster_setup", `{"action":"finish_cluster"}`, "201")
				w.eventually("all vote", func() bool { return len(a.node.meta.Voters()) == 3 })
				b.fill("pond")
				uuid := b.node.meta.UUID()
				if strings.HasPrefix(again, "the leader") {
					a, c = c, a
				}
				c = w.wipe(c, open, secret0, openToAll)
				c.start()
				w.wantApart(uuid, c, a, b)

				if again != "as it is" {
					c = w.wipe(c, open, secret0, openToAll)
					c.start()
					c.soon("GET", "/_up", "", "200")
				}
				a.want("POST", "/_cluster_setup", add(c), "201")
				w.wantWhole(uuid, "pond", a, b, c)
			})
		})
	}
}

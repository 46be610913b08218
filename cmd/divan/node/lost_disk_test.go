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

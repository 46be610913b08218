package node

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"divan/cluster/meta"
)

// rebalanced is what GET /_cluster/rebalance says.
type rebalanced struct {
	State, Reason          string
	Planned, Moved, Failed struct {
		Copies int
		Bytes  int64
	}
	Running []any
}

// awaitRebalance waits until a rebalance has ended, and wants it complete.
func (h *home) awaitRebalance() rebalanced {
	h.town.t.Helper()
	var is rebalanced
	h.town.eventually("the rebalance ends", func() bool {
		is = rebalanced{}
		h.json("/_cluster/rebalance", &is)
		return is.State != "running" && is.State != "none" && len(is.Running) == 0
	})
	if is.State != "completed" || is.Failed.Copies > 0 {
		h.town.t.Fatalf("%+v", is)
	}
	return is
}

// dryRun is what POST /_cluster/rebalance says.
type dryRun struct {
	TotalMoves int   `json:"total_moves"`
	Bytes      int64 `json:"bytes"`
	MustMove   int64 `json:"must_move"`
	Nodes      []struct {
		Node                string
		Before, After, Goal int64
	}
}

func (h *home) dryRun() dryRun {
	h.town.t.Helper()
	var out dryRun
	text := h.ask("POST", "/_cluster/rebalance", `{"dry_run":true}`)
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "200 ")), &out); err != nil {
		h.town.t.Errorf("%s: %s", h.name, text)
	}
	return out
}

// copiesOn counts the copies on a node, as another one knows the maps.
func (h *home) copiesOn(name string) (n int) {
	for db := range h.node.meta.Databases().All() {
		n += len(db.CopiesOn(name))
	}
	return n
}

// wantCopies wants so many full copies of each shard of the databases, none of a point on one node twice.
func (h *home) wantCopies(n int, nodes ...string) {
	h.town.t.Helper()
	for db := range h.node.meta.Databases().All() {
		for _, s := range db.Shards {
			if len(s.Full()) != n || len(s.Copies) != n {
				h.town.t.Errorf("%s: %s has copies %+v", db.Name, s.Range, s.Copies)
			}
			for _, c := range s.Copies {
				if len(nodes) > 0 && !strings.Contains(strings.Join(nodes, " "), c.Node) {
					h.town.t.Errorf("%s: %s has a copy on %s", db.Name, s.Range, c.Node)
				}
			}
		}
	}
}

// fillTown makes databases of three nodes, with clients that write to one.
func (w *town) fillTown(databases int) (a, b, c *home) {
	a, b, c = w.seeded()
	for i := range databases {
		a.want("PUT", fmt.Sprintf("/db%d?q=2&n=3", i), "", "201")
		a.want("PUT", fmt.Sprintf("/db%d/doc", i), fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 1000*(i%7))), "201")
	}
	a.want("PUT", "/pond?q=2&n=3", "", "201")
	a.want("PUT", "/pond/_design/v", viewOfRevs, "201")
	return a, b, c
}

// largest returns the bytes of the largest copy, which may be what cannot be divided any better.
func (w *town) largest(m *meta.Meta) (most int64) {
	for db := range m.Databases().All() {
		for _, h := range w.homes {
			for _, name := range db.CopiesOn(h.name) {
				if n, err := h.node.engine.Catalog().DiskUsage(name); err == nil {
					most = max(most, n)
				}
			}
		}
	}
	return most
}

// A fourth node joins, takes its part while clients write, and is emptied again.
func TestRebalanceToNewNodeAndDrain(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.fillTown(12)
		a.want("GET", "/_cluster/rebalance", "", `200 {"state":"none"`)
		if p := a.dryRun(); p.TotalMoves != 0 {
			t.Errorf("three nodes with three copies: %+v", p)
		}
		d := w.build(4, seedList, secret0, openToAll)
		w.start(d)
		d.soon("GET", "/_up", "", "200")
		p := b.dryRun()
		if p.TotalMoves < 12 || len(p.Nodes) != 4 || p.Bytes > p.MustMove*13/10 {
			t.Errorf("%+v", p)
		}
		w.inUse(a, func() {
			c.want("POST", "/_cluster/rebalance", "", "202")
			d.want("POST", "/_cluster/rebalance", "", "409")
			is := a.awaitRebalance()
			if is.Moved.Copies < p.TotalMoves/2 || is.Moved.Copies > 2*p.TotalMoves {
				t.Errorf("%+v after a plan of %+v", is, p)
			}
		})
		a.wantCopies(3)
		for _, n := range b.dryRun().Nodes {
			if off := max(n.Before-n.Goal, n.Goal-n.Before); off*10 > n.Goal && off > w.largest(a.node.meta) {
				t.Errorf("%+v", n)
			}
		}

		a.want("POST", "/_node/"+b.name+"/_drain", "", "202")
		a.want("PUT", "/new?q=2&n=3", "", "201")
		if a.copiesOn(b.name) == 0 {
			t.Error("it is empty at once")
		}
		d.awaitRebalance()
		a.want("GET", "/_node/"+b.name+"/_drain", "", `200 {"node":"`+b.name+`","draining":true,"copies":0,"drained":true,"state":"completed"`)
		a.wantCopies(3, a.name, c.name, d.name)
		a.want("DELETE", "/_node/"+b.name+"/_drain", "", "200")
		a.want("GET", "/_node/"+b.name+"/_drain", "", `200 {"node":"`+b.name+`","draining":false,"copies":0,"drained":false`)
		a.want("POST", "/_node/nobody@x/_drain", "", "404")
		w.wantClean("pond")
	})
}

// A node that was taken out of the cluster while it was away has its copies made anew on those that are left.
func TestRebalanceReplacesCopiesOfRemovedNode(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.fillTown(6)
		d := w.build(4, seedList, secret0, openToAll)
		e := w.build(5, seedList, secret0, openToAll)
		w.start(d, e)
		d.soon("GET", "/_up", "", "200")
		e.soon("GET", "/_up", "", "200")
		a.want("PUT", "/_node/_local/_config/cluster/replace_after", `"60"`, "200")
		b.kill()
		for n := 0; a.copiesOn(b.name) > 0 || n == 0; n++ {
			a.want("PUT", fmt.Sprintf("/pond/doc%d", n), "{}", "20")
			if n > 3000 {
				t.Fatal("its copies are where they were")
			}
			<-time.After(50 * time.Millisecond)
		}
		if _, member := a.node.meta.Node(b.name); member {
			t.Error("it is a member still")
		}
		a.awaitRebalance()
		a.wantCopies(3, a.name, c.name, d.name, e.name)
		if d.copiesOn(d.name) == 0 || d.copiesOn(e.name) == 0 {
			t.Errorf("%d on %s, %d on %s", d.copiesOn(d.name), d.name, d.copiesOn(e.name), e.name)
		}
	})
}

// takeOut takes a node out of the cluster.
func (h *home) takeOut(name string) {
	h.town.t.Helper()
	var doc struct {
		Rev string `json:"_rev"`
	}
	h.json("/_node/_local/_nodes/"+name, &doc)
	h.want("DELETE", "/_node/_local/_nodes/"+name+"?rev="+doc.Rev, "", "200")
}

// A node is gone for good while copies move from it, or to it: what is under way comes to an end
// all the same, and nothing has to be given up.
func TestRebalanceWhileNodeIsLost(t *testing.T) {
	for _, tc := range []struct {
		name  string
		begin func(a, lost *home)
		until func(a, lost *home) bool // something is under way with the node
	}{
		{"from it", func(a, lost *home) { a.want("POST", "/_node/"+lost.name+"/_drain", "", "202") }, func(a, lost *home) bool {
			return a.node.meta.Databases().AnyChanging()
		}},
		{"to it", func(a, _ *home) { a.want("POST", "/_cluster/rebalance", "", "202") }, func(a, lost *home) bool {
			return a.copiesOn(lost.name) > 0
		}},
	} {
		for _, after := range someOf([]time.Duration{0, 300 * time.Millisecond, time.Second, 3 * time.Second}, 1) {
			t.Run(fmt.Sprint(tc.name, ", ", after), func(t *testing.T) {
				inTown(t, func(w *town) {
					a, b, c := w.fillTown(6)
					d := w.build(4, seedList, secret0, openToAll)
					w.start(d)
					d.soon("GET", "/_up", "", "200")
					lost := d
					if tc.name == "from it" {
						lost = b
					}
					for i := range 50 {
						a.want("PUT", fmt.Sprint("/pond/doc", i), "{}", "201")
					}
					tc.begin(a, lost)
					w.eventually("it has begun", func() bool { return tc.until(a, lost) })
					<-time.After(after)
					lost.kill()
					<-time.After(5 * time.Second)
					a.takeOut(lost.name)
					a.ask("POST", "/_cluster/rebalance", "") // one may be under way
					w.eventually("nothing is on it", func() bool { return a.copiesOn(lost.name) == 0 })
					a.awaitRebalance()
					a.wantCopies(3)
					delete(w.homes, lost.i)
					for i := range 50 {
						c.want("GET", fmt.Sprint("/pond/doc", i, "?r=3"), "", "200")
					}
				})
			})
		}
	}
}

// When several nodes are away none is taken out, and when one is whose copies have no other place it stays.
func TestReplaceAfterKeepsWhatIsNeeded(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.fillTown(2)
		a.want("PUT", "/_node/_local/_config/cluster/replace_after", `"60"`, "200")
		for _, h := range []*home{b, c} {
			h.want("PUT", "/_node/_local/_config/cluster/replace_after", `"60"`, "200")
		}
		c.kill() // three copies, three nodes: there is no other place
		<-time.After(3 * time.Minute)
		if _, member := a.node.meta.Node(c.name); !member {
			t.Error("it was taken out without another place for its copies")
		}
		c.start()
		c.soon("GET", "/_up", "", "200")
		d, e := w.build(4, seedList, secret0, openToAll), w.build(5, seedList, secret0, openToAll)
		w.start(d, e)
		d.soon("GET", "/_up", "", "200")
		e.soon("GET", "/_up", "", "200")
		w.eventually("all vote", func() bool { return len(a.node.meta.Voters()) == 5 })
		a.want("PUT", "/_cluster/rebalance", `{"state":"running"}`, "4")
		b.kill()
		c.kill()
		<-time.After(3 * time.Minute)
		for _, h := range []*home{b, c} {
			if _, member := a.node.meta.Node(h.name); !member {
				t.Errorf("%s was taken out although two are away", h.name)
			}
		}
		b.start()
		c.start()
		c.soon("GET", "/_up", "", "200")
		w.wantClean("pond")
	})
}

// With [cluster] rebalance = auto a new node gets its part by itself; what is stopped or cancelled begins nothing more.
func TestRebalanceByItself(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, _ := w.fillTown(8)
		a.want("PUT", "/_node/_local/_config/cluster/rebalance", `"auto"`, "200")
		a.awaitRebalance() // which moves nothing, and knows who is there
		d := w.build(4, seedList, secret0, openToAll)
		w.start(d)
		d.soon("GET", "/_up", "", "200")
		w.eventually("the new node gets copies", func() bool { return a.copiesOn(d.name) > 0 })
		a.want("PUT", "/_cluster/rebalance", `{"state":"stopped","reason":"lunch"}`, "200")
		var is rebalanced
		w.eventually("what runs has ended", func() bool {
			is = rebalanced{}
			a.json("/_cluster/rebalance", &is)
			return len(is.Running) == 0
		})
		n := a.copiesOn(d.name)
		<-time.After(time.Minute)
		if a.json("/_cluster/rebalance", &is); is.State != "stopped" || is.Reason != "lunch" || a.copiesOn(d.name) != n {
			t.Errorf("%+v; %d copies, %d before", is, a.copiesOn(d.name), n)
		}
		a.want("PUT", "/_cluster/rebalance", `{"state":"running"}`, "200")
		a.awaitRebalance()
		a.wantCopies(3)
		a.want("PUT", "/_cluster/rebalance", `{"state":"running"}`, "409")
	})
}

// A rebalance that is cancelled gives up what is under way.
func TestRebalanceCancelled(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, _ := w.fillTown(8)
		d := w.build(4, seedList, secret0, openToAll)
		w.start(d)
		d.soon("GET", "/_up", "", "200")
		a.want("POST", "/_cluster/rebalance", "", "202")
		w.eventually("copies join", func() bool { return a.copiesOn(d.name) > 0 })
		a.want("DELETE", "/_cluster/rebalance", "", "200")
		w.eventually("nothing changes any more", func() bool { return !a.node.meta.Databases().AnyChanging() })
		a.wantCopies(3)
		var is rebalanced
		w.eventually("what ran is forgotten", func() bool {
			is = rebalanced{}
			a.json("/_cluster/rebalance", &is)
			return len(is.Running) == 0
		})
		if is.State != "cancelled" {
			t.Errorf("%+v", is)
		}
	})
}

// Shards that have become too large are split by themselves.
func TestSplitAbove(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, _ := w.seeded()
		a.want("PUT", "/large?q=1&n=3", "", "201")
		a.want("PUT", "/small?q=1&n=3", "", "201")
		a.want("PUT", "/small/doc", "{}", "201")
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 150 {
			text := make([]byte, 10_000)
			for k := range text {
				text[k] = 'a' + byte(rng.IntN(26))
			}
			a.want("PUT", fmt.Sprintf("/large/doc%d", i), fmt.Sprintf(`{"text":%q}`, text), "201")
		}
		a.want("PUT", "/_node/_local/_config/reshard/split_above", `"1100000"`, "200")
		w.eventually("the large one is split", func() bool {
			db, _ := a.node.meta.Database("large")
			return len(db.Shards) == 2 && len(db.Shards[0].Full()) == 3 && len(db.Shards[1].Full()) == 3
		})
		if db, _ := a.node.meta.Database("small"); len(db.Shards) != 1 {
			t.Errorf("%+v", db.Shards)
		}
		w.wantClean("large")
	})
}

// What is refused, to whom, and in which words.
func TestRebalanceRefusals(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, _ := w.seeded()
		a.want("PUT", "/_users/org.couchdb.user:frog", `{"name":"frog","password":"pw","roles":[],"type":"user"}`, "201")
		for _, path := range []string{"/_cluster/rebalance", "/_node/" + b.name + "/_drain", "/_node/_local/_drain"} {
			for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
				if got := a.as("frog", method, path, "{}"); !strings.HasPrefix(got, "401") {
					t.Errorf("%s %s of a user: %s", method, path, got)
				}
			}
		}
		for _, h := range []*home{a, b} {
			if n, _ := h.node.meta.Node(b.name); n.Draining {
				t.Fatal("a user has drained a node")
			}
		}
		a.want("PUT", "/_cluster/rebalance", `{"state":"stopped"}`, "404")
		a.want("DELETE", "/_cluster/rebalance", "", "404")
		a.want("POST", "/_cluster/rebalance", `{"dry_run":1}`, "400")
		a.want("POST", "/_cluster/rebalance", `[]`, "400")
		a.want("POST", "/_cluster/rebalance?limit=-1", `{"dry_run":true}`, "400")
		a.want("POST", "/_cluster/rebalance?limit=0", `{"dry_run":true}`, `200 {"ok":true,"dry_run":true,"total_moves":0`)
		a.want("PUT", "/_node/"+b.name+"/_drain", "{}", "405")
		a.want("POST", "/_node/"+b.name+"/_drain", `{"dry_run":true}`, `200 {"ok":true,"node":"`+b.name+`","draining":false`)
		a.want("GET", "/_cluster", "", "404")
		a.want("GET", "/_node/_local/_prometheus", "", "200")
		// Three copies on three nodes: there is no other place, and the drain has an end.
		a.want("POST", "/_node/"+b.name+"/_drain", "", "202")
		if is := a.awaitRebalance(); is.Moved.Copies != 0 || is.Reason == "" {
			t.Errorf("%+v", is)
		}
		a.want("PUT", "/_cluster/rebalance", `{"state":"paused"}`, "400")
		a.want("PUT", "/_cluster/rebalance", `{"state":"stopped"}`, "409")
		if text := a.ask("GET", "/_node/_local/_prometheus", ""); !strings.Contains(text, `couchdb_rebalance_copies{state="moved"} 0`) {
			t.Error(text)
		}
	})
}

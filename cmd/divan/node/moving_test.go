package node

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"divan/cluster/wire/simnet"
	"divan/shard/ring"
)

// away is what happens to a node meanwhile.
func (w *town) away(h *home, cutOff bool) {
	if !cutOff {
		h.kill()
		<-time.After(5 * time.Second)
		h.start()
		h.soon("GET", "/_up", "", "200")
		return
	}
	for _, other := range w.homes {
		if other != h {
			one, two := fmt.Sprintf("10.0.0.%d", h.i), fmt.Sprintf("10.0.0.%d", other.i)
			w.net.SetLink(one, two, simnet.Link{Cut: true})
			w.net.SetLink(two, one, simnet.Link{Cut: true})
		}
	}
	<-time.After(5 * time.Second)
	w.net.Heal()
}

// moved moves a copy of each shard of a database to a node that has none.
func (w *town) moved(db string, during func(from, to *home)) {
	m, _ := w.homes[1].node.meta.Database(db)
	for _, s := range m.Shards {
		var from, to *home
		for _, h := range w.homes {
			if s.On(h.name) {
				from = h
			} else {
				to = h
			}
		}
		body := fmt.Sprintf(`{"type":"move","db":%q,"range":"%s","node":%q,"target":%q}`, db, s.Range, from.name, to.name)
		w.homes[1].reshard(db, body, func() { during(from, to) })
		is, _ := w.homes[1].node.meta.Database(db)
		for _, now := range is.Shards {
			if now.Range == s.Range && (now.On(from.name) || !now.On(to.name)) {
				w.t.Errorf("%s is on %q after the move from %s to %s", s.Range, now.Nodes(), from.name, to.name)
			}
		}
	}
}

// Copies are moved and merged while clients write, a feed goes on, and a node is killed or cut off.
func TestMoveWhileInUse(t *testing.T) {
	ways := map[string]func(w *town, from, to *home){
		"undisturbed":    func(*town, *home, *home) {},
		"source killed":  func(w *town, from, _ *home) { w.away(from, false) },
		"target killed":  func(w *town, _, to *home) { w.away(to, false) },
		"source cut off": func(w *town, from, _ *home) { w.away(from, true) },
		"target cut off": func(w *town, _, to *home) { w.away(to, true) },
	}
	for _, n := range []int{1, 2} {
		for _, how := range someOf(slices.Collect(maps.Keys(ways)), 2) {
			interrupt := ways[how]
			t.Run(fmt.Sprintf("n=%d, %s", n, how), func(t *testing.T) {
				inTown(t, func(w *town) {
					a, _, c := w.seeded()
					a.want("PUT", fmt.Sprintf("/pond?q=2&n=%d", n), "", "201")
					a.want("PUT", "/pond/_design/v", viewOfRevs, "201")
					w.inUse(a, func() {
						w.moved("pond", func(from, to *home) {
							<-time.After(300 * time.Millisecond)
							interrupt(w, from, to)
						})
					})
					if m, _ := c.node.meta.Database("pond"); len(m.Shards) != 2 || len(m.Shards[0].Copies) != n || len(m.Shards[1].Copies) != n {
						w.t.Errorf("%+v", m.Shards)
					}
				})
			})
		}
	}
}

func TestMergeWhileInUse(t *testing.T) {
	for _, how := range someOf([]string{"undisturbed", "killed", "cut off"}, 1) {
		t.Run(how, func(t *testing.T) {
			inTown(t, func(w *town) {
				a, b, c := w.seeded()
				a.want("PUT", "/pond?q=4&n=3", "", "201")
				a.want("PUT", "/pond/_design/v", viewOfRevs, "201")
				w.inUse(a, func() {
					for _, r := range []string{"00000000-7fffffff", "80000000-ffffffff", "00000000-ffffffff"} {
						c.reshard("pond", `{"type":"merge","db":"pond","range":"`+r+`"}`, func() {
							if <-time.After(300 * time.Millisecond); how != "undisturbed" {
								w.away(b, how == "cut off")
							}
						})
					}
				})
				if m, _ := c.node.meta.Database("pond"); len(m.Shards) != 1 || m.Shards[0].Range != ring.Full() || len(m.Shards[0].Copies) != 3 {
					w.t.Errorf("%+v", m.Shards)
				}
			})
		})
	}
}

// inUse does something while clients write to a database and a feed follows it, and checks that nothing
// that was acknowledged is missed.
func (w *town) inUse(a *home, f func()) {
	for i := range 20 {
		a.want("PUT", fmt.Sprintf("/pond/_local/l%d", i), `{"n":1}`, "201")
	}
	feed := a.follow("pond")
	writing := w.write("pond", 3)
	<-time.After(time.Second)
	f()
	revs := writing.end()
	<-time.After(pushed)
	w.wantClean("pond")
	for _, h := range w.homes {
		h.wantAll("pond", revs)
	}
	for i := range 20 {
		a.want("GET", fmt.Sprint("/pond/_local/l", i), "", `200 {"_id":"_local/l`)
	}
	w.eventually("the feed has shown all", func() bool { return len(feed.lacks(revs)) == 0 })
	feed.cancel()
	<-feed.ended
	if len(revs) == 0 {
		w.t.Error("nothing was written")
	}
}

// A move brings the local documents of the copy that it moves, and none of those that a copy which was
// away has still: what a majority has deleted or replaced stays so.
func TestMoveBringsLocalDocs(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		d := w.build(4, seedList, secret0, openToAll)
		a.want("PUT", "/pond?q=1&n=3", "", "201")
		for range 3 {
			a.want("PUT", "/pond/_local/gone", `{"n":7,"_rev":"0-6"}`, "201")
			a.want("PUT", "/pond/_local/anew", `{"n":7,"_rev":"0-6"}`, "201")
		}
		<-time.After(time.Second)
		b.kill()
		<-time.After(5 * time.Second)
		for i := range 300 {
			a.want("PUT", fmt.Sprint("/pond/_local/l", i), `{"n":1}`, "201")
		}
		a.want("DELETE", "/pond/_local/gone?rev=0-7", "", "200")
		a.want("DELETE", "/pond/_local/anew?rev=0-7", "", "200")
		a.want("PUT", "/pond/_local/anew", `{"n":1}`, "201")
		b.start()
		b.soon("GET", "/_up", "", "200")
		w.start(d)
		d.soon("GET", "/_up", "", "200")
		a.reshard("pond", fmt.Sprintf(`{"type":"move","db":"pond","node":%q,"target":%q}`, a.name, d.name), func() {})
		w.wantClean("pond")
		for _, h := range []*home{a, c, d} {
			h.want("GET", "/pond/_local/gone", "", "404")
			h.want("GET", "/pond/_local/anew", "", `200 {"_id":"_local/anew","_rev":"0-1","n":1}`)
			for i := range 300 {
				h.want("GET", fmt.Sprint("/pond/_local/l", i), "", "200")
			}
		}
		m, _ := a.node.meta.Database("pond")
		for name, want := range map[string]bool{"_local/gone": false, "_local/anew": true, "_local/l299": true} {
			if _, err := d.node.local.LocalDocs.Get(w.t.Context(), m.CopyName(m.Shards[0].Range), name); (err == nil) != want {
				w.t.Errorf("%s at the new copy: %v", name, err)
			}
		}
	})
}

// A move whose target is gone for good is given up, and another one takes its place.
func TestMoveIsGivenUp(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, _ := w.seeded()
		d := w.build(4, seedList, secret0, openToAll)
		a.want("PUT", "/pond?q=1&n=1", "", "201")
		w.start(d)
		d.soon("GET", "/_up", "", "200")
		m, _ := a.node.meta.Database("pond")
		var from, to, through *home
		for _, h := range w.homes {
			switch {
			case h == d:
			case m.Shards[0].On(h.name):
				from = h
			case to == nil:
				to = h
			default:
				through = h
			}
		}
		from.kill() // so that the new copy is not filled
		<-time.After(20 * time.Second)
		move := `{"type":"move","db":"pond","node":"` + from.name + `","target":"`
		through.want("POST", "/_reshard/jobs", move+d.name+`"}`, "201")
		w.eventually("the new copy joins", func() bool {
			m, _ := through.node.meta.Database("pond")
			return m.Shards[0].On(d.name)
		})
		d.kill()
		from.start()
		from.soon("GET", "/_up", "", "200")
		for _, j := range through.node.resharder.Table().Jobs() {
			through.want("DELETE", "/_reshard/jobs/"+j.ID(), "", "200")
		}
		through.reshard("pond", move+to.name+`"}`, func() {})
		if m, _ = through.node.meta.Database("pond"); m.Shards[0].Copies[0].Node != to.name || len(m.Shards[0].Copies) != 1 {
			w.t.Errorf("%+v", m.Shards)
		}
	})
}

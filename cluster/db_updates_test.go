package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"divan/cluster/config"
	"divan/cluster/events"
	"divan/shard"
	"divan/storage/doc"
)

// told returns the ids of the events in the order of the feed.
func (w *world) told() string {
	w.tb.Helper()
	feed, err := w.open(events.GlobalChanges).Changes(w.tb.Context(), ChangesQuery{Limit: NoLimit})
	if err != nil {
		w.tb.Fatal(err)
	}
	defer feed.Close()
	var ids []string
	for feed.Next() {
		ids = append(ids, strings.Clone(feed.Row().ID))
	}
	if feed.Err() != nil {
		w.tb.Fatal(feed.Err())
	}
	return strings.Join(ids, " ")
}

// tells waits until the feed has these events.
func (w *world) tells(want string) {
	w.tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	got := ""
	for range 10_000 {
		if got = w.told(); got == want {
			return
		}
		<-tick.C
	}
	w.tb.Fatalf("the feed tells %q, want %q", got, want)
}

// tellsOf waits until the feed has an event.
func (w *world) tellsOf(id string) {
	w.tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 10_000 {
		if slices.Contains(strings.Fields(w.told()), id) {
			return
		}
		<-tick.C
	}
	w.tb.Fatalf("the feed tells %q, want %s", w.told(), id)
}

// updated does what a node does when copies of a database have moved on.
func (w *world) updated(db string) {
	for _, t := range w.open(db).routing.All() {
		w.Updated(t.Name)
	}
}

// telling starts a node and waits until it takes notice of events.
func telling(t *testing.T) *world {
	t.Helper()
	w := start(t, setup{config: quickEvents()})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if w.events.Active() {
			return w
		}
		<-tick.C
	}
}

func quickEvents() config.Values {
	return config.Values{"global_changes": {"max_event_delay": "1", "max_write_delay": "2"}}
}

func TestEventsOfDatabases(t *testing.T) {
	w := telling(t)
	d := w.create(events.GlobalChanges, CreateOptions{Q: 1})
	w.updated(events.GlobalChanges)
	w.create("a", CreateOptions{Q: 2})
	w.tells("created:a")
	w.updated("a")
	w.tells("created:a updated:a")
	w.create("b", CreateOptions{})
	w.tells("created:a updated:a created:b")
	w.updated("a")
	w.tells("created:a created:b updated:a")
	if err := w.DeleteDB(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	w.tells("created:a created:b updated:a deleted:a")
	w.create("a", CreateOptions{Q: 2})
	w.tells("created:b updated:a deleted:a created:a")
	// A deleted document comes back.
	rows, err := globalChanges{d}.winners(t.Context(), []string{"updated:a"})
	if err != nil {
		t.Fatal(err)
	}
	remove(t, d, "updated:a", rows["updated:a"])
	w.updated("a")
	w.tells("created:b deleted:a created:a updated:a")
}

// remove deletes a document.
func remove(t *testing.T, d *DB, id string, rev doc.Rev) {
	t.Helper()
	e := shard.Edit{ID: id, Parent: rev, Deleted: true, Body: []byte("{}")}
	if r := update(t, d, UpdateOptions{NewEdits: true}, e)[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
}

// The database of the events may come and go.
func TestEventsWithoutTheirDatabase(t *testing.T) {
	w := telling(t)
	w.create(events.GlobalChanges, CreateOptions{Q: 1})
	w.create("a", CreateOptions{Q: 1})
	w.tells("created:a")
	if err := w.DeleteDB(t.Context(), events.GlobalChanges); err != nil {
		t.Fatal(err)
	}
	w.updated("a")
	w.create("b", CreateOptions{Q: 1})
	w.create(events.GlobalChanges, CreateOptions{Q: 2})
	w.create("c", CreateOptions{Q: 1})
	w.tellsOf("created:c")
	w.config.SetVolatile("global_changes", "update_db", "false")
	w.create("d", CreateOptions{Q: 1})
	w.updated("c")
	quiet := time.NewTimer(20 * time.Millisecond)
	defer quiet.Stop()
	<-quiet.C
	w.config.SetVolatile("global_changes", "update_db", "true")
	w.updated("c")
	w.tellsOf("updated:c")
	if got := w.told(); strings.Contains(got, "created:d") {
		t.Errorf("told although nothing was to be told: %s", got)
	}
}

// Of several nodes that hold a range, the first one that can be reached tells.
func TestWhoTells(t *testing.T) {
	w := start(t, setup{nodes: 3, config: quickEvents()})
	w.create("a", CreateOptions{Q: 1, N: 3})
	n := w.eventWriter()
	s := w.open("a").meta.Shards[0]
	name := w.open("a").meta.CopyName(s.Range)
	if db, ok := n.Mine(name); ok != (s.Nodes()[0] == node1) || ok && db != "a" {
		t.Errorf("%v: mine %v", s.Nodes(), ok)
	}
	for _, other := range []string{"shards/00000000-ffffffff/a.1000000000", "shards/00000000-ffffffff/none.1000000000", "x"} {
		if _, ok := n.Mine(other); ok {
			t.Errorf("%s is mine", other)
		}
	}
	if n.Node.IsFirst([]string{nodeName(2), node1}) || !n.Node.IsFirst([]string{node1, nodeName(2)}) || !n.Node.IsFirst([]string{"gone@127.0.0.1", node1}) || n.Node.IsFirst(nil) {
		t.Error("not the first one that can be reached")
	}
}

// TestEventOnTopOfAnother: the copy of this node lags behind the one that
// decides, which has an earlier event: this one is told all the same.
func TestEventOnTopOfAnother(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		d = d.ordered(node2, node1, node3)
		behind := d.without(node1)
		old := put(t, d, "old", doc.Rev{}, "{}")
		gone := put(t, d, "gone", doc.Rev{}, "{}")
		w.settleWrites()
		want := map[string]int{"new": 2, "old": 3, "gone": 3, "fresh": 1}
		put(t, behind, "new", doc.Rev{}, "{}")
		put(t, behind, "old", old, "{}")
		remove(t, behind, "gone", gone)
		w.settleWrites()
		if err := (globalChanges{d}).touch(t.Context(), []string{"new", "old", "gone", "fresh"}); err != nil {
			t.Fatal(err)
		}
		for id, pos := range want {
			got, err := d.Open(t.Context(), OpenOptions{ID: id, R: 3})
			if err != nil || int(got.Rev.Pos) != pos {
				t.Errorf("%s: %+v, %v, want revision %d", id, got, err, pos)
			}
		}
	})
}

package rebalance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/reshard/reshardtest"
	"divan/shard/ring"
)

// base is a database with a full copy of each of two ranges on each node.
func base(t *testing.T, name string, nodes ...string) *meta.Database {
	t.Helper()
	return reshardtest.NewGroup(nodes...).Create(name, ring.Split(2)...)
}

// setOf returns a set of databases.
func setOf(dbs ...*meta.Database) meta.Databases {
	var out meta.Databases
	for _, db := range dbs {
		out.Set = out.With(db)
	}
	return out
}

func itemOf(db *meta.Database, from, to string) Item {
	return Item{Database: db.Name, Suffix: db.Suffix, Range: db.Shards[0].Range, From: from, To: to, Bytes: 7}
}

func jobOf(it Item, state job.State, reason string) map[string]*job.Job {
	j := &job.Job{State: state, Reason: reason}
	j.Type, j.Node, j.Database, j.Suffix, j.Range, j.To = job.Move, it.From, it.Database, it.Suffix, it.Range, it.To
	return map[string]*job.Job{j.ID(): j}
}

// place puts the copy of the first shard on a node into a state, StateGone for none.
func place(db *meta.Database, node string, state ring.State) *meta.Database {
	out := *db
	out.Shards = slices.Clone(db.Shards)
	s := &out.Shards[0]
	s.Copies = slices.DeleteFunc(slices.Clone(s.Copies), func(c ring.Copy) bool { return c.Node == node })
	if state != ring.StateGone {
		s.Copies = append(s.Copies, ring.Copy{ID: 99, Node: node, State: state})
	}
	return &out
}

// What becomes of a move of a batch.
func TestSettle(t *testing.T) {
	db := base(t, "db", "a", "b", "c")
	move := itemOf(db, "a", "d")
	lost := move
	lost.Lost = true
	arrived := place(place(db, "a", ring.StateGone), "d", ring.StateFull)
	older := move
	older.Suffix = "1700000000"
	for _, tc := range []struct {
		name string
		item Item
		db   *meta.Database
		jobs map[string]*job.Job

		still, moved, failed, pointless int
	}{
		{name: "runs", item: move, db: db, jobs: jobOf(move, job.Running, ""), still: 1},
		{name: "stopped", item: move, db: db, jobs: jobOf(move, job.Stopped, ""), still: 1},
		{name: "complete", item: move, db: arrived, jobs: jobOf(move, job.Completed, ""), moved: 1},
		{name: "complete, and forgotten", item: move, db: arrived, moved: 1},
		{name: "complete, and moved on", item: move, db: db, jobs: jobOf(move, job.Completed, "")},
		{name: "never begun", item: move, db: db},
		{name: "failed", item: move, db: db, jobs: jobOf(move, job.Failed, "why"), failed: 1, pointless: 1},
		{name: "database deleted", item: move, jobs: jobOf(move, job.Running, ""), pointless: 1},
		{name: "database deleted, job too", item: move},
		{name: "another database of that name", item: older, db: db, jobs: jobOf(older, job.Running, ""), pointless: 1},
		{name: "replaced, being filled", item: lost, db: place(db, "d", ring.StateJoining), still: 1},
		{name: "replaced", item: lost, db: arrived, moved: 1},
		{name: "replaced by another one", item: lost, db: db},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := &Record{Batch: []Item{tc.item}}
			var dbs meta.Databases
			if tc.db != nil {
				dbs = setOf(tc.db)
			}
			changed, pointless := rec.settle(dbs, tc.jobs)
			if changed != (tc.still == 0) || len(rec.Batch) != tc.still || rec.Moved.Copies != tc.moved || rec.Failed.Copies != tc.failed || len(pointless) != tc.pointless {
				t.Errorf("changed: %t, pointless: %q, %+v", changed, pointless, rec)
			}
			if rec.Moved.Bytes != int64(7*tc.moved) || tc.failed > 0 && rec.Failures[0].Reason != "why" {
				t.Errorf("%+v", rec)
			}
		})
	}
}

// A batch of any plan has few moves to one node and one of a shard; and its record fits.
func TestChoose(t *testing.T) {
	p := &Plan{Nodes: []Node{{Name: "a", Member: true}, {Name: "gone"}}}
	long := strings.Repeat("x", 200)
	for i := range 2000 {
		db := base(t, fmt.Sprint(long, i), "a", "b")
		from := []string{"a", "gone"}[i%2]
		for _, to := range []string{fmt.Sprint("n", i%3), "other"} {
			p.Moves = append(p.Moves, Move{DB: db, Range: db.Shards[0].Range, From: from, To: to, Bytes: 1})
		}
	}
	to := map[string]int{}
	batch := choose(p, []Item{{To: "n0"}, {To: "n0"}}, 5)
	for _, it := range batch {
		to[it.To]++
		if it.Lost != (it.From == "gone") {
			t.Errorf("%+v", it)
		}
	}
	if to["n0"] != 3 || to["n1"] != 5 || to["n2"] != 5 || to["other"] != 5 {
		t.Errorf("%v", to)
	}
	rec := &Record{Batch: choose(p, nil, 10_000)}
	if text := encoded(t, rec); len(text) > 44<<10 || len(text) < 30<<10 {
		t.Errorf("%d moves, %d bytes", len(rec.Batch), len(text))
	}
	if next := choose(p, rec.Batch, 10_000); len(next) != 0 {
		t.Errorf("%d more", len(next))
	}
	failed := len(p.Moves)
	for i := range p.Moves[:100] {
		rec.fail(p.item(&p.Moves[i]), "why")
	}
	if rec.withoutFailed(p); len(p.Moves) != failed-100 {
		t.Errorf("%d moves of %d are left when 100 have failed", len(p.Moves), failed)
	}
}

// However many moves fail, for any reason, the record fits.
func TestFailuresAreBounded(t *testing.T) {
	rec := &Record{}
	db := base(t, strings.Repeat("x", 230), "a")
	for range 100 {
		rec.fail(itemOf(db, "a", "b"), strings.Repeat("ä", 1000)+"\xff")
	}
	if text := encoded(t, rec); rec.Failed.Copies != 100 || len(rec.Failures) != maxFailures || len(text) > 20<<10 {
		t.Errorf("%d failures, %d kept, %d bytes", rec.Failed.Copies, len(rec.Failures), len(text))
	}
}

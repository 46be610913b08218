package repair

import (
	"testing"

	"divan/cluster/meta"
	"divan/shard/ring"
)

// TestReplacedByHolderOfMore: a node that has the whole takes the place of one that has split it. What
// joins there can never be full, and is given up.
func TestReplacedByHolderOfMore(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(3)
		w.node(2).stopRepair()
		by, lost, other := w.names[1], w.names[2], "other@x"
		db, _ := w.group.Database("db")
		whole, half := db.Shards[0].Range, ring.Split(2)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		// change gives the copies of a node other states, by their ranges, together.
		change := func(node string, to map[ring.Range]ring.State) {
			t.Helper()
			now, _ := w.group.Database("db")
			var full []uint64
			var changes []ring.Change
			for _, s := range now.Shards {
				for _, c := range s.Full() {
					full = append(full, c.ID)
				}
			}
			for _, s := range now.Shards {
				c, there := s.CopyOn(node)
				state, wanted := to[s.Range]
				if !there || !wanted {
					continue
				}
				ch := ring.Change{Copy: c.ID, To: state}
				if state == ring.StateFull {
					ch.Filled = full
				} else if moved, came := ring.Moved(now.Shards, &s, node); came && state == ring.StateLeaving {
					ch = moved
				}
				changes = append(changes, ch)
			}
			must(w.group.ChangeCopies(w.ctx, changesOf(db, changes...)))
		}
		must(w.group.PutNode(w.ctx, meta.Node{Name: other, ClusterVersion: meta.ClusterVersion}))
		must(w.group.AddCopies(w.ctx, "db", db.ID, []ring.Addition{{Range: half[0], Node: lost}, {Range: half[1], Node: lost}}))
		change(lost, map[ring.Range]ring.State{half[0]: ring.StateJoining, half[1]: ring.StateJoining})
		change(lost, map[ring.Range]ring.State{half[0]: ring.StateFull, half[1]: ring.StateFull, whole: ring.StateLeaving})
		change(lost, map[ring.Range]ring.State{whole: ring.StateGone})
		must(w.group.AddCopies(w.ctx, "db", db.ID, []ring.Addition{{Range: half[1], Node: other, Instead: lost}}))
		change(other, map[ring.Range]ring.State{half[1]: ring.StateFull})
		change(lost, map[ring.Range]ring.State{half[1]: ring.StateLeaving})
		change(lost, map[ring.Range]ring.State{half[1]: ring.StateGone})

		must(w.group.ReplaceNode(w.ctx, lost, by, false))
		if now, _ := w.group.Database("db"); len(now.Shards) != 3 || !now.Shards[0].On(by) || now.Shards[2].On(by) {
			t.Fatalf("after the replacement: %v", now.Shards)
		}
		w.wait(joinTime)
		if now, _ := w.group.Database("db"); len(now.Shards) != 2 || now.Shards[0].Range != whole || !now.Shards[0].On(by) || now.Shards[1].Range != half[1] {
			t.Errorf("in the end: %v", now.Shards)
		}
	})
}

package repair

import (
	"testing"

	"divan/cluster/meta"
	"divan/shard/ring"
)

// TestLeavingCopy: a copy that leaves for one on another node hands over to all full copies at
// once, and goes as soon as its heir has everything, whichever of them is asked first.
func TestLeavingCopy(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		w.fill(20)
		db, _ := w.group.Database("db")
		leaves := w.node(2)
		comes := &member{world: w, node: &node{t: t, name: "z@x", fs: newFS(), copy: w.copyName()}}
		w.nodes[comes.name] = comes
		w.names = append(w.names, comes.name)
		comes.open()
		comes.startRepair()
		for _, err := range []error{
			w.group.PutNode(w.ctx, meta.Node{Name: comes.name, ClusterVersion: meta.ClusterVersion}),
			w.group.AddCopies(w.ctx, "db", db.ID, []ring.Addition{{Range: db.Shards[0].Range, Node: comes.name, Instead: leaves.name}}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		comes.make(comes.copyID())
		w.wait(2 * joinTime) // it becomes full, then the other one leaves
		if one := comes.inMap(); one.State != ring.StateFull {
			t.Errorf("the copy that comes is %s", one.State)
		}
		if _, one, there := w.group.CopyIn(leaves.copy, leaves.name); there {
			t.Errorf("the copy that leaves is %s", one.State)
		}
		if got := comes.info().Live; got != 20 {
			t.Errorf("%d documents", got)
		}
		if err := leaves.Copies.Drop(w.ctx, leaves.copy); err != nil {
			t.Fatal(err)
		}
	})
}

package index

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
)

// leftOut is what the index tells of documents that it has left out.
func (u *Use) leftOut(t *testing.T) (uint64, []LeftOut) {
	t.Helper()
	snap, err := u.Index.Snapshot()
	must(t, err)
	defer snap.Close()
	st, err := u.Status(t.Context(), snap)
	must(t, err)
	return st.LeftOut, st.Left
}

// An index goes on without documents that cannot be indexed, and tells of them, after a start
// too, until they are changed.
func TestLeftOut(t *testing.T) {
	for _, filled := range []bool{false, true} {
		fs := vfs.NewMem()
		n := startOn(t, fs)
		must(t, n.shards.Copies.Create(t.Context(), copyName, shard.CreateOptions{}))
		if filled {
			n.built()
		}
		n.write(0, 1000, 1, false)
		n.kind.fails("d00003", "d00004", "d00600")
		n.kind.leaves = true
		u, release := n.use()
		must(t, u.Update(t.Context()))
		if got := u.indexed(t); len(got) != 997 || got["d00003"] != "" || got["d00005"] == "" {
			t.Errorf("filled %t: %d documents", filled, len(got))
		}
		count, first := u.leftOut(t)
		if count != 3 || len(first) != 3 || first[2].ID != "d00600" || !strings.Contains(first[2].Reason, "Too many rows.") || n.m.LeftOut() != 3 {
			t.Errorf("filled %t: %d left out, %v", filled, count, first)
		}
		release()
		n.stop()
		n = startOn(t, fs)
		n.write(3, 4, 2, false)
		n.write(4, 5, 2, true)
		u, release = n.use()
		must(t, u.Update(t.Context()))
		if count, first := u.leftOut(t); count != 1 || len(first) != 1 || first[0].ID != "d00600" {
			t.Errorf("filled %t: after changes %d left out, %v", filled, count, first)
		}
		n.write(600, 601, 2, false)
		n.check(u)
		if count, first := u.leftOut(t); count != 0 || len(first) != 0 {
			t.Errorf("filled %t: in the end %d left out, %v", filled, count, first)
		}
		release()
		n.stop()
	}
}

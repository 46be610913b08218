package index

import (
	"fmt"
	"strings"
	"testing"

	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
)

// TestPurgesOfOtherRange: a copy that was cloned has the purge sequence of its source, also when the
// last purges are of documents that it does not have. Its index gets there.
func TestPurgesOfOtherRange(t *testing.T) {
	n := start(t)
	n.write(0, 20, 1, false)
	half := ring.Split(2)[0]
	target := ring.CopyName(half, "db", "1763600000")
	must(t, n.shards.Copies.Create(t.Context(), target, shard.CreateOptions{}))
	clone := func() {
		_, err := n.shards.Clones.Range(t.Context(), shard.CloneOptions{Source: copyName, Target: target, Range: half})
		must(t, err)
	}
	clone()
	u, err := n.m.Acquire(t.Context(), target, n.spec())
	must(t, err)
	defer u.Release()
	must(t, u.Update(t.Context()))
	for i := range 20 {
		if id := fmt.Sprintf("d%05d", i); !half.Contains(ring.Hash(id, false)) {
			_, err := n.shards.Purge(t.Context(), copyName, []shard.PurgeItem{{ID: id, Revs: []doc.Rev{{Pos: 1, ID: strings.Repeat("0", 31) + "1"}}}})
			must(t, err)
			clone()
			must(t, u.Update(t.Context()))
		}
	}
}

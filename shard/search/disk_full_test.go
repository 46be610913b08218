package search

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/storage/diskspace"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/storagetest"
)

// putWords writes documents of many words that no other document has, from number first on.
func (n *world) putWords(first, docs int) {
	n.t.Helper()
	rng := rand.New(rand.NewPCG(uint64(first), 0))
	req := shard.DecideRequest{Copy: copyName}
	for i := first; i < first+docs; i++ {
		text := fmt.Appendf(nil, `{"Text":"all w%d`, i)
		for range 500 {
			text = fmt.Appendf(text, " %x", rng.Uint64())
		}
		req.Edits = append(req.Edits, shard.Edit{ID: fmt.Sprint("d", i), Body: append(text, `"}`...), Path: doc.Path{Start: 1, IDs: []string{fmt.Sprintf("%032x", 1)}}})
	}
	results, err := n.shards.Decide(n.t.Context(), req)
	must(n.t, err)
	for _, r := range results {
		must(n.t, r.Err)
	}
}

// TestBuildOnFullDisk: an index that finds no space while it is built says so, leaves space for
// documents, and has all of them when there is space again.
func TestBuildOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storagetest.NewSizedFS(vfs.NewMem(), 1<<30)
		n := start(t, disk)
		defer n.stop()
		n.create()
		for i := range 4 {
			n.putWords(i*200, 200)
		}
		<-time.After(time.Second)
		before := disk.Used()
		size := before + 3<<20
		size += size / diskspace.KeptFraction * 2 // which indexes leave
		disk.Resize(size)
		for range 3 {
			<-time.After(diskspace.ResumeAfter)
			if _, err := n.indexes.Query(t.Context(), n.request("t:all")); !fault.Is(err, fault.InsufficientStorage) {
				t.Fatalf("%d of %d bytes are used: %v", disk.Used(), size, err)
			}
		}
		if disk.Used() <= before {
			t.Error("nothing was built")
		}
		n.putWords(800, 10)
		disk.Resize(1 << 30)
		<-time.After(diskspace.ResumeAfter + time.Second)
		n.expectTotal("t:all", 810)
		for _, i := range []int{0, 399, 799, 809} {
			n.expectTotal(fmt.Sprint("t:w", i), 1)
		}
	})
}

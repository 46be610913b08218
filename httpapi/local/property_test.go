package local_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster"
	"divan/cluster/attachment"
	"divan/httpapi/apitest"
	"divan/replicator/endpoint"
	"divan/replicator/local"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestBothSidesEndEqual: after any writes on both sides, with conflicts, deletions and
// attachments, both have the same leaves once each was replicated to the other, from where
// the last time ended.
func TestBothSidesEndEqual(t *testing.T) {
	w := newWorld(t, 2)
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		names := [2]string{fmt.Sprint("x", run), fmt.Sprint("y", run)}
		for i, name := range names {
			apitest.Must(t, w.Coordinator.CreateDB(t.Context(), name, cluster.CreateOptions{Q: i + 1}))
		}
		since := [2]endpoint.Seq{}
		n := 0
		edit := func(r *rapid.T) {
			n++
			name := names[rapid.IntRange(0, 1).Draw(r, "side")]
			w.edit(t, r, name, rapid.SampledFrom([]string{"a", "b", "ü/1", "_design/d"}).Draw(r, "id"), n)
		}
		both := func(r *rapid.T) {
			for i := range names {
				from, to := w.opener.Open(names[i], local.Of(admin())), w.opener.Open(names[1-i], local.Of(admin()))
				out, err := replicate(t.Context(), from, to, since[i], rapid.IntRange(1, 5).Draw(r, "batch"))
				if err != nil || len(out.refused) > 0 {
					r.Fatalf("%+v, %v", out, err)
				}
				since[i] = out.last
			}
			x, y := w.leaves(t, names[0]), w.leaves(t, names[1])
			if !slices.Equal(x, y) {
				r.Fatalf("differ:\n%s\n\n%s", strings.Join(x, "\n"), strings.Join(y, "\n"))
			}
		}
		r.Repeat(map[string]func(*rapid.T){"edit": edit, "edit again": edit, "replicate": both})
		both(r)
	})
}

// edit writes one revision: on top of a leaf, or as a conflict of it.
func (w *world) edit(t *testing.T, r *rapid.T, db, id string, n int) {
	t.Helper()
	d := w.db(t, db)
	leaves, err := d.OpenRevs(t.Context(), cluster.OpenRevsOptions{ID: id, All: true, WithPath: true})
	apitest.Must(t, err)
	e := shard.Edit{ID: id, Body: fmt.Appendf(nil, `{"n":%d}`, n)}
	path := doc.Path{Start: 1, IDs: []string{fmt.Sprint("r", n)}}
	if len(leaves) > 0 && rapid.Bool().Draw(r, "on top") {
		on := rapid.SampledFrom(leaves).Draw(r, "leaf").Doc
		e.Deleted = rapid.IntRange(0, 3).Draw(r, "deleted") == 0
		path.Start, path.IDs = on.Rev.Pos+1, append(path.IDs, on.Revisions.IDs...)
		for i := range on.Atts {
			if rapid.Bool().Draw(r, "kept") {
				e.Atts = append(e.Atts, shard.EditAttachment{Attachment: on.Atts[i], Stub: true, HasRevPos: true})
			}
		}
	}
	e.Path = path
	if size := rapid.SampledFrom([]int{-1, -1, 0, 10, 100 << 10}).Draw(r, "attachment"); size >= 0 {
		a := w.uploadTo(t, db, id, attachment.Options{Name: fmt.Sprint("att", n)}, noise(size))
		a.RevPos, a.HasRevPos = path.Start, true
		e.Atts = append(e.Atts, a)
	}
	results, err := d.Update(t.Context(), cluster.UpdateOptions{User: admin()}, []shard.Edit{e})
	if fault.Is(err, fault.MissingStub) { // of a tombstone whose content is gone
		return
	}
	apitest.Must(t, err)
	apitest.Must(t, results[0].Err)
}

package cluster

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster/attachment"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// settleWrites waits for the writes to slower copies.
func (w *world) settleWrites() { w.running.Wait() }

// everywhere returns what each copy of a document's route holds.
func (w *world) everywhere(t tester, d *DB, id string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range d.routing.Owner(id).Copies {
		got, err := w.locals[c.Node].Open(t.Context(), shard.OpenRequest{Copy: c.Name, ID: id, AllowDeleted: true, Revs: true})
		switch {
		case fault.Is(err, fault.NotFound):
			out[c.Node] = "missing"
		case err != nil:
			t.Fatal(err)
		default:
			out[c.Node] = fmt.Sprintf("%s %s %d", got.Rev, got.Body, len(got.Revisions.IDs))
		}
	}
	return out
}

func TestWriteReachesAllCopies(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("db", CreateOptions{N: 3, Q: 2})
	rev := put(t, d, "a", doc.Rev{}, `{"n":1}`)
	rev = put(t, d, "a", rev, `{"n":2}`)
	rev = put(t, d, "a", rev, `{"n":3}`)
	w.settleWrites()
	want := fmt.Sprintf(`%s {"n":3} 3`, rev)
	got := w.everywhere(t, d, "a")
	if len(got) != 3 {
		t.Fatalf("%v", got)
	}
	for node, has := range got {
		if has != want {
			t.Fatalf("%s has %s, want %s", node, has, want)
		}
	}
	if _, err := d.LocalPut(t.Context(), "_local/l", doc.Rev{ID: "7"}, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	w.settleWrites()
	for _, c := range d.routing.Owner("_local/l").Copies {
		l, err := w.locals[c.Node].LocalDocs.Get(t.Context(), c.Name, "_local/l")
		if err != nil || l.Rev != 8 {
			t.Fatalf("%s: %+v, %v", c.Node, l, err)
		}
	}
}

// TestQuorum follows golden cluster/03, 05 and 06.
func TestQuorum(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("db", CreateOptions{N: 3, Q: 1})
	put(t, d, "there", doc.Rev{}, `{}`)
	w.settleWrites()
	n := 0
	for _, tc := range []struct {
		name     string
		down     int // peers that are not there
		w        int
		accepted bool
	}{
		{name: "all up"},
		{name: "w=3", w: 3},
		{name: "w=4", w: 4, accepted: true},
		{name: "one down", down: 1},
		{name: "one down, w=3", down: 1, w: 3, accepted: true},
		{name: "two down", down: 2, accepted: true},
		{name: "two down, w=1", down: 2, w: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer w.down([]string{nodeName(2), nodeName(3)}[:tc.down]...)()
			n++
			id := fmt.Sprintf("doc%d", n)
			r := update(t, d, UpdateOptions{NewEdits: true, W: tc.w}, shard.Edit{ID: id, Body: []byte("{}")}, shard.Edit{ID: "there", Body: []byte("{}")})
			if r[0].Err != nil || r[0].Accepted != tc.accepted {
				t.Fatalf("%+v", r[0])
			}
			if !fault.Is(r[1].Err, fault.Conflict) || r[1].Accepted {
				t.Fatalf("conflict: %+v", r[1])
			}
			w.settleWrites() // r=1 promises nothing about a write of w=2 that is under way
			for _, need := range []int{0, 1, 3, 9} {
				if got, err := d.Open(t.Context(), OpenOptions{ID: id, R: need}); err != nil || got.Rev != r[0].Rev {
					t.Fatalf("r=%d: %+v, %v", need, got, err)
				}
			}
			if _, err := d.Open(t.Context(), OpenOptions{ID: "nothing", R: 3}); fault.Reason(err) != "missing" {
				t.Fatal(err)
			}
			for _, node := range d.routing.Owner(id).Copies {
				if w.replica(node).Away() {
					continue
				}
				if has := w.everywhere(t, d, id)[node.Node]; has == "missing" {
					t.Fatalf("%s misses it", node.Node)
				}
			}
		})
	}
	defer w.down(nodeName(2), nodeName(3))()
	lone := d.without(node1)
	if _, err := lone.Update(t.Context(), UpdateOptions{NewEdits: true}, []shard.Edit{{ID: "x", Body: []byte("{}")}}); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("no copy: %v", err)
	}
	if _, err := lone.Open(t.Context(), OpenOptions{ID: "x"}); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("no copy: %v", err)
	}
}

// TestReadSeesNewest: copies that missed a write do not hide it.
func TestReadSeesNewest(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("db", CreateOptions{N: 3, Q: 1})
	first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
	w.settleWrites()
	up := w.down(nodeName(2), nodeName(3))
	r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Parent: first, Body: []byte(`{"n":2}`)})[0]
	if r.Err != nil || !r.Accepted {
		t.Fatalf("%+v", r)
	}
	up()
	got, err := d.Open(t.Context(), OpenOptions{ID: "a", R: 3})
	if err != nil || got.Rev != r.Rev || len(got.Revisions.IDs) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if old, err := d.Open(t.Context(), OpenOptions{ID: "a", Rev: r.Rev}); err != nil || string(old.Body) != `{"n":2}` {
		t.Fatalf("a revision that one copy has: %+v, %v", old, err)
	}
}

// TestRefusedEditLeavesNoTrace writes through the coordinator with nodes
// coming and going, and checks that what was refused is nowhere, what was
// acknowledged on as many copies as promised, and that copies which saw the
// same edits agree.
func TestRefusedEditLeavesNoTrace(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		name := fmt.Sprintf("db%d", run)
		d := w.create(name, CreateOptions{N: 3, Q: 2})
		defer func() {
			if err := w.DeleteDB(t.Context(), name); err != nil {
				t.Error(err)
			}
		}()
		revs := map[string][]doc.Rev{}
		for step := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			away := rapid.SampledFrom([][]string{nil, nil, {nodeName(2)}, {nodeName(3)}, {nodeName(2), nodeName(3)}}).Draw(rt, "down")
			up := w.down(away...)
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "id")
			e := shard.Edit{ID: id, Body: fmt.Appendf(nil, `{"step":%d}`, step)}
			if known := revs[id]; len(known) > 0 && rapid.IntRange(0, 3).Draw(rt, "fresh") > 0 {
				e.Parent = rapid.SampledFrom(known).Draw(rt, "parent")
			}
			need := rapid.IntRange(0, 3).Draw(rt, "w")
			r := update(rt, d, UpdateOptions{NewEdits: true, W: need}, e)[0]
			w.settleWrites()
			holders := 0
			for _, has := range w.everywhere(rt, d, id) {
				if bytes.Contains([]byte(has), fmt.Appendf(nil, `{"step":%d}`, step)) {
					holders++
				}
			}
			up()
			if need == 0 {
				need = 2
			}
			switch {
			case r.Err != nil && holders > 0:
				rt.Fatalf("refused (%v), but %d copies have it", r.Err, holders)
			case r.Err == nil && holders == 0 && e.Parent.IsZero():
				rt.Fatalf("acknowledged, but no copy has it as winner")
			case r.Err == nil && r.Accepted == (3-len(away) >= need):
				rt.Fatalf("w=%d with %d nodes down: accepted %v", need, len(away), r.Accepted)
			case r.Err == nil:
				revs[id] = append(revs[id], r.Rev)
			}
		}
	})
}

func TestAttachmentsOnAllCopies(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("db", CreateOptions{N: 3, Q: 2})
	content := noise(1 << 20)
	att, err := d.Upload(t.Context(), "a", attachment.Options{Name: "att", Length: -1}, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	first := update(t, d, UpdateOptions{NewEdits: true, W: 3}, shard.Edit{ID: "a", Body: []byte("{}"), Atts: []shard.EditAttachment{att}})[0]
	if first.Err != nil || first.Accepted {
		t.Fatalf("%+v", first)
	}
	stub := shard.EditAttachment{Attachment: doc.Attachment{Name: "att"}, Stub: true}
	second := update(t, d, UpdateOptions{NewEdits: true, W: 3}, shard.Edit{ID: "a", Parent: first.Rev, Body: []byte("{}"), Atts: []shard.EditAttachment{stub}})[0]
	if second.Err != nil || second.Accepted {
		t.Fatalf("%+v", second)
	}
	for _, c := range d.routing.Owner("a").Copies {
		got, err := w.locals[c.Node].Open(t.Context(), shard.OpenRequest{Copy: c.Name, ID: "a"})
		if err != nil || got.Rev != second.Rev || len(got.Atts) != 1 || got.Atts[0].RevPos != 1 {
			t.Fatalf("%s: %+v, %v", c.Node, got, err)
		}
		r, err := w.locals[c.Node].Attachments.Read(t.Context(), shard.AttachmentRange{Copy: c.Name, ID: "a", Key: got.Atts[0].Key, Length: -1})
		if err != nil {
			t.Fatal(err)
		}
		back, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(back, content) {
			t.Fatalf("%s: %d bytes, %v", c.Node, len(back), err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Listings read one copy per range.
	if ids, total, _ := list(t, d, DocsQuery{Limit: NoLimit}); ids != "a" || total != 1 {
		t.Fatalf("%s, %d", ids, total)
	}
	info, err := d.Info(t.Context())
	if err != nil || info.N != 3 || info.W != 2 || info.R != 2 || info.DocCount != 1 {
		t.Fatalf("%+v, %v", info, err)
	}
	got, err := d.Purge(t.Context(), 3, []shard.PurgeItem{{ID: "a", Revs: []doc.Rev{second.Rev}}})
	if err != nil || got[0].Accepted || len(got[0].Purged) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	for node, has := range w.everywhere(t, d, "a") {
		if has != "missing" {
			t.Fatalf("%s still has %s", node, has)
		}
	}
}

// TestListingsWithoutThisNode reads from other nodes what this one does not
// hold, and fails over.
func TestListingsWithoutThisNode(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("db", CreateOptions{N: 2, Q: 8})
	var ids []string
	for i := range 50 {
		ids = append(ids, fmt.Sprintf("doc%02d", i))
	}
	bulk(t, d, ids...)
	w.settleWrites()
	for _, away := range [][]string{nil, {nodeName(2)}, {nodeName(3)}} {
		up := w.down(away...)
		for _, handle := range []*DB{d, newDB(w.Coordinator, d.meta)} {
			if _, total, _ := list(t, handle, DocsQuery{Limit: NoLimit}); total != 50 {
				t.Fatalf("without %v: %d rows", away, total)
			}
			if rows, _, _ := changes(t, handle, ChangesQuery{Limit: NoLimit}); len(rows) != 50 {
				t.Fatalf("without %v: %d changes", away, len(rows))
			}
		}
		up()
	}
	defer w.down(nodeName(2), nodeName(3))()
	if _, err := d.AllDocs(t.Context(), DocsQuery{Limit: NoLimit}); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("ranges without a copy: %v", err)
	}
}

// TestFeedGoesOnFromAnotherCopy: the sequence names a copy that is gone, so
// its range starts again.
func TestFeedGoesOnFromAnotherCopy(t *testing.T) {
	w := start(t, setup{nodes: 2, still: true})
	d := w.create("db", CreateOptions{N: 2, Q: 1})
	bulk(t, d, "a", "b", "c")
	w.settleWrites()
	_, last, _ := changes(t, d, ChangesQuery{Limit: NoLimit})
	put(t, d, "d", doc.Rev{}, `{}`)
	w.settleWrites()
	if rows, _, _ := changes(t, d, ChangesQuery{Limit: NoLimit, Since: since(t, last)}); len(rows) != 1 {
		t.Fatalf("same copy: %v", rows)
	}
	if rows, _, _ := changes(t, d.without(node1), ChangesQuery{Limit: NoLimit, Since: since(t, last)}); len(rows) != 4 {
		t.Fatalf("another copy: %v", rows)
	}
}

// TestLocalCounts: the client's count decides the revision of a local document
// alone, so an acknowledged write may count less than what it replaced.
func TestLocalCounts(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("db", CreateOptions{N: 3, Q: 1})
	write := func(count, body string, missedBy ...string) {
		t.Helper()
		defer w.down(missedBy...)()
		if _, err := d.LocalPut(t.Context(), "_local/l", doc.Rev{ID: count}, []byte(body)); err != nil {
			t.Fatal(err)
		}
		w.settleWrites()
	}
	reads := func(want string, away ...string) {
		t.Helper()
		defer w.down(away...)()
		got, err := d.LocalGet(t.Context(), "_local/l")
		if err != nil || string(got.Body) != want {
			t.Fatalf("%+v, %v, want %s", got, err, want)
		}
	}
	write("7", `{"n":1}`)
	for _, pair := range [][2]string{{nodeName(2), nodeName(3)}, {nodeName(3), nodeName(2)}} {
		missing, other := pair[0], pair[1]
		write("8", `{"n":2}`)
		write("2", `{"n":3}`, missing)
		reads(`{"n":3}`)
		write("9", `{"n":4}`, missing)
		reads(`{"n":4}`)
		reads(`{"n":4}`, other)
	}
}

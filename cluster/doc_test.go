package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"divan/cluster/attachment"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

func TestDocuments(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{})
	ctx := t.Context()

	if _, err := d.Open(ctx, OpenOptions{ID: "a"}); !fault.Is(err, fault.NotFound) || fault.Reason(err) != "missing" {
		t.Fatalf("open what is not there: %v", err)
	}
	first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
	second := put(t, d, "a", first, `{"n":2}`)
	got, err := d.Open(ctx, OpenOptions{ID: "a", Revs: true})
	if err != nil || got.Rev != second || string(got.Body) != `{"n":2}` || len(got.Revisions.IDs) != 2 {
		t.Fatalf("open: %+v, %v", got, err)
	}
	old, err := d.Open(ctx, OpenOptions{ID: "a", Rev: first})
	if err != nil || string(old.Body) != `{"n":1}` {
		t.Fatalf("open an older revision: %+v, %v", old, err)
	}
	r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Parent: first, Body: []byte(`{}`)})[0]
	if !fault.Is(r.Err, fault.Conflict) || r.Accepted {
		t.Fatalf("edit an inner revision: %+v", r)
	}
	r = update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Parent: second, Deleted: true, Body: []byte(`{}`)})[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if _, err := d.Open(ctx, OpenOptions{ID: "a"}); fault.Reason(err) != "deleted" {
		t.Fatalf("open what is deleted: %v", err)
	}
	revs, err := d.OpenRevs(ctx, OpenRevsOptions{ID: "a", All: true, WithPath: true})
	if err != nil || len(revs) != 1 || revs[0].Doc == nil || len(revs[0].Doc.Revisions.IDs) != 3 {
		t.Fatalf("open_revs=all: %+v, %v", revs, err)
	}
}

// TestUpdateKeepsOrder writes to all shards at once, refused edits among the
// others, and finds every answer in its place.
func TestUpdateKeepsOrder(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 8})
	var edits []shard.Edit
	for i := range 100 {
		edits = append(edits, shard.Edit{ID: fmt.Sprintf("doc%02d", i/2), Body: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	results := update(t, d, UpdateOptions{NewEdits: true}, edits...)
	for i, r := range results {
		if i%2 == 0 && (r.Err != nil || r.Rev.Pos != 1) {
			t.Fatalf("edit %d: %+v", i, r)
		}
		if i%2 == 1 && !fault.Is(r.Err, fault.Conflict) {
			t.Fatalf("second edit of a document, %d: %+v", i, r)
		}
		if i%2 == 0 {
			got, err := d.Open(t.Context(), OpenOptions{ID: edits[i].ID})
			if err != nil || got.Rev != r.Rev || string(got.Body) != string(edits[i].Body) {
				t.Fatalf("document %d: %+v, %v", i, got, err)
			}
		}
	}
}

func TestUpdateAccepted(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 4})
	for _, n := range []int{1, 3} { // one shard and several
		var edits []shard.Edit
		for i := range n {
			edits = append(edits, shard.Edit{ID: fmt.Sprintf("doc%d-%d", n, i), Body: []byte("{}")})
		}
		for _, r := range update(t, d, UpdateOptions{NewEdits: true, W: 2}, edits...) {
			if r.Err != nil || !r.Accepted {
				t.Fatalf("w=2 of one copy: %+v", r)
			}
		}
		for _, r := range update(t, d, UpdateOptions{NewEdits: true, W: 2}, edits...) {
			if !fault.Is(r.Err, fault.Conflict) || r.Accepted {
				t.Fatalf("a refusal is final whatever w: %+v", r)
			}
		}
	}
}

func TestMissing(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 8})
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprintf("doc%d", i))
	}
	revs := bulk(t, d, ids...)
	other := doc.Rev{Pos: 2, ID: "other"}
	var ask []shard.IDRevs
	for i, id := range ids {
		ask = append(ask, shard.IDRevs{ID: id, Revs: []doc.Rev{revs[i], other}}, shard.IDRevs{ID: id + "none", Revs: []doc.Rev{other}})
	}
	got, err := d.Missing(t.Context(), ask)
	if err != nil || len(got) != len(ask) {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	for i, m := range got {
		if m.ID != ask[i].ID || len(m.Missing) != 1 || m.Missing[0] != other {
			t.Fatalf("answer %d: %+v", i, m)
		}
	}
}

func TestLocalDocuments(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 4})
	ctx := t.Context()
	if _, err := d.LocalDelete(ctx, "_local/a"); !fault.Is(err, fault.NotFound) {
		t.Fatalf("delete what is not there: %v", err)
	}
	rev, err := d.LocalPut(ctx, "_local/a", doc.Rev{}, []byte(`{"v":1}`))
	if err != nil || rev.String() != "0-1" {
		t.Fatalf("%s, %v", rev, err)
	}
	rev, err = d.LocalPut(ctx, "_local/a", doc.Rev{ID: "41"}, []byte(`{"v":2}`))
	if err != nil || rev.String() != "0-42" {
		t.Fatalf("%s, %v", rev, err)
	}
	got, err := d.LocalGet(ctx, "_local/a")
	if err != nil || got.Rev != 42 || string(got.Body) != `{"v":2}` {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range 3000 { // several batches
		if i%500 == 0 {
			_, err = d.LocalPut(ctx, fmt.Sprintf("_local/doc%d", i), doc.Rev{}, fmt.Appendf(nil, `{"i":%d}`, i))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	rows, err := d.AllDocs(ctx, DocsQuery{Namespace: LocalDocs, Limit: NoLimit, IncludeDocs: true, StartKey: ptr("_local/doc")})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		r := rows.Row()
		if want := fmt.Sprintf(`{"i":%s}`, r.ID[len("_local/doc"):]); r.Doc == nil || string(r.Doc.Body) != want {
			t.Fatalf("%s: %+v", r.ID, r.Doc)
		}
		n++
	}
	if n != 6 || rows.Err() != nil {
		t.Fatalf("%d rows, %v", n, rows.Err())
	}
}

func TestPurge(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 4})
	ctx := t.Context()
	revs := bulk(t, d, "a", "b", "c")
	items := []shard.PurgeItem{{ID: "a", Revs: revs[:1]}, {ID: "none", Revs: revs[:1]}, {ID: "c", Revs: []doc.Rev{{Pos: 9, ID: "x"}}}}
	got, err := d.Purge(ctx, 0, items)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range got {
		if o.ID != items[i].ID || o.Err != nil || o.Accepted {
			t.Fatalf("item %d: %+v", i, o)
		}
		if want := map[bool]int{true: 1, false: 0}[i == 0]; len(o.Purged) != want {
			t.Fatalf("item %d: %+v", i, o)
		}
	}
	if got, err = d.Purge(ctx, 2, items[:1]); err != nil || !got[0].Accepted || len(got[0].Purged) != 0 {
		t.Fatalf("again with w=2: %+v, %v", got, err)
	}
	if ids, total, _ := list(t, d, DocsQuery{Limit: NoLimit}); ids != "b c" || total != 2 {
		t.Fatalf("left: %s, %d", ids, total)
	}
	infos, err := d.PurgedInfos(ctx)
	if err != nil || len(infos) != 3 || infos[0].ID != "a" || infos[1].ID != "c" || infos[2].ID != "none" {
		t.Fatalf("log: %+v, %v", infos, err)
	}
	info, err := d.Info(ctx)
	if err != nil || !strings.HasPrefix(info.PurgeSeq, "4-") || info.DocCount != 2 {
		t.Fatalf("%+v, %v", info, err)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{})
	put(t, d, "a", doc.Rev{}, `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Open(ctx, OpenOptions{ID: "a"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("open: %v", err)
	}
	if _, err := d.AllDocs(ctx, DocsQuery{Limit: NoLimit}); !errors.Is(err, context.Canceled) {
		t.Fatalf("list: %v", err)
	}
}

// TestMissingStubLeavesOtherShards: what other shards have done is answered
// along with the refusal, and giving up the content of the whole request leaves
// them theirs.
func TestMissingStubLeavesOtherShards(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		w := start(t, setup{nodes: nodes})
		d := w.create("db", CreateOptions{Q: 4, N: nodes})
		content := noise(attachment.MaxInline + 1)
		var edits []shard.Edit
		for i := range 8 {
			e := shard.Edit{ID: fmt.Sprintf("doc%d", i), Body: []byte("{}")}
			att, err := d.Upload(t.Context(), e.ID, attachment.Options{Name: "att", Length: -1}, bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			e.Atts = []shard.EditAttachment{att}
			edits = append(edits, e)
		}
		stub := []shard.EditAttachment{{Attachment: doc.Attachment{Name: "none"}, Stub: true}}
		edits = append(edits, shard.Edit{ID: "a", Body: []byte("{}"), Atts: stub})
		results, err := d.Update(t.Context(), UpdateOptions{NewEdits: true}, edits)
		if !fault.Is(err, fault.MissingStub) || len(results) != len(edits) {
			t.Fatalf("%d nodes: %d answers, %v", nodes, len(results), err)
		}
		w.settleWrites()
		done := 0
		for i := range 8 {
			e := &edits[i]
			d.Discard(t.Context(), e.ID, e.Atts)
			w.settleWrites()
			if d.routing.Owner(e.ID) == d.routing.Owner("a") {
				if !fault.Is(results[i].Err, fault.MissingStub) {
					t.Errorf("%d nodes, %s, in the shard of the stub: %v", nodes, e.ID, results[i].Err)
				}
				continue
			}
			done++
			if results[i].Err != nil {
				t.Errorf("%d nodes, %s: %v", nodes, e.ID, results[i].Err)
			}
			if back := contentOf(t, d, e.ID, e.Atts[0].Attachment); !bytes.Equal(back, content) {
				t.Errorf("%d nodes, %s: %d bytes", nodes, e.ID, len(back))
			}
		}
		if done == 0 || done == 8 {
			t.Fatalf("%d of 8 documents are in other shards", done)
		}
	}
}

// TestMissingStubRefusesAll follows golden attachments/03.
func TestMissingStubRefusesAll(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		w := start(t, setup{nodes: nodes})
		d := w.create("db", CreateOptions{Q: 4, N: nodes})
		stub := []shard.EditAttachment{{Attachment: doc.Attachment{Name: "none"}, Stub: true}}
		edits := []shard.Edit{{ID: "a", Body: []byte("{}"), Atts: stub}}
		for range 2 { // alone, and among others
			_, err := d.Update(t.Context(), UpdateOptions{NewEdits: true}, edits)
			if !fault.Is(err, fault.MissingStub) {
				t.Fatalf("%d nodes, %d edits: %v", nodes, len(edits), err)
			}
			for i := range 10 {
				edits = append(edits, shard.Edit{ID: fmt.Sprintf("doc%d", i), Body: []byte("{}")})
			}
		}
	}
}

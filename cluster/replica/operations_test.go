package replica

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"divan/cluster/sequence"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

func update(t *testing.T, at Copies, edits ...shard.Edit) []shard.EditResult {
	t.Helper()
	results, err := Decide.On(t.Context(), Copy{At: at}, shard.DecideRequest{Copy: testCopy, Edits: edits, NewEdits: true, DB: "db"})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

// as fails unless both calls gave the same.
func as[T any](t *testing.T, what string) func(got T, err error) func(want T, err error) {
	t.Helper()
	return func(got T, gotErr error) func(want T, err error) {
		return func(want T, wantErr error) {
			t.Helper()
			if gotErr != nil || wantErr != nil {
				t.Fatalf("%s: %v, %v", what, gotErr, wantErr)
			}
			same(t, what, got, want)
		}
	}
}

func TestDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		ctx := t.Context()
		results := update(t, p, shard.Edit{ID: "a", Body: []byte(`{"x":1}`)}, shard.Edit{ID: "b", Body: []byte(`{}`)})
		rev := results[0].Rev
		results = update(t, p,
			shard.Edit{ID: "a", Parent: rev, Body: []byte(`{"x":2}`)},
			shard.Edit{ID: "a", Parent: rev, Body: []byte(`{"x":3}`)},
			shard.Edit{ID: "_local/l", Body: []byte(`{"y":1}`)},
			shard.Edit{ID: "b", Parent: results[1].Rev, Deleted: true, Body: []byte(`{}`)},
		)
		if results[0].Err != nil || len(results[0].Path.IDs) != 2 || !fault.Is(results[1].Err, fault.Conflict) {
			t.Fatalf("got %+v", results)
		}
		open := shard.OpenRequest{Copy: testCopy, ID: "a", Revs: true, RevsInfo: true, Conflicts: true, LocalSeq: true}
		as[*shard.Doc](t, "Open")(Open.On(ctx, Copy{At: p}, open))(Open.On(ctx, Copy{At: local}, open))
		if _, err := Open.On(ctx, Copy{At: p}, shard.OpenRequest{Copy: testCopy, ID: "b"}); !fault.Is(err, fault.NotFound) || fault.Reason(err) != "deleted" {
			t.Fatalf("got %v", err)
		}
		if _, err := Open.On(ctx, Copy{At: p}, shard.OpenRequest{Copy: "shards/none", ID: "b"}); !fault.Is(err, fault.NoCopy) || fault.Reason(err) != "no_db_file" {
			t.Fatalf("got %v", err)
		}
		revs := shard.OpenRevsRequest{Copy: testCopy, ID: "a", Revs: []doc.Rev{rev, {Pos: 9, ID: "nine"}}, WithPath: true}
		as[[]shard.RevResult](t, "OpenRevs")(OpenRevs.On(ctx, Copy{At: p}, revs))(OpenRevs.On(ctx, Copy{At: local}, revs))
		many := OpenRevsManyRequest{testCopy, []shard.OpenRevsRequest{revs, {ID: "a", All: true}, {ID: "none", Revs: []doc.Rev{rev}}}, 0}
		as[[]shard.RevsAnswer](t, "OpenRevsMany")(OpenRevsMany.On(ctx, Copy{At: p}, many))(OpenRevsMany.On(ctx, Copy{At: local}, many))
		many.MaxBytes = 1
		as[[]shard.RevsAnswer](t, "OpenRevsMany")(OpenRevsMany.On(ctx, Copy{At: p}, many))(OpenRevsMany.On(ctx, Copy{At: local}, many))
		if got, err := OpenRevsMany.On(ctx, Copy{At: p}, many); err != nil || got[0].Err != nil || !fault.Is(got[1].Err, fault.RequestTooLarge) {
			t.Fatalf("got %+v, %v", got, err)
		}
		many.Copy = "shards/none"
		if got, err := OpenRevsMany.On(ctx, Copy{At: p}, many); !fault.Is(err, fault.NoCopy) {
			t.Fatalf("got %+v, %v", got, err)
		}
		ids := []shard.IDRevs{{ID: "a", Revs: []doc.Rev{rev, {Pos: 2, ID: "x"}}}, {ID: "none", Revs: []doc.Rev{{Pos: 1, ID: "x"}}}}
		as[[]shard.IDMissing](t, "Missing")(Missing.On(ctx, Copy{At: p}, MissingRequest{testCopy, ids}))(Missing.On(ctx, Copy{At: local}, MissingRequest{testCopy, ids}))
		byID := DocsByIDRequest{testCopy, []string{"a", "b", "c", "a"}, shard.ByIDOptions{IncludeDocs: true, Conflicts: true}}
		as[[]shard.Row](t, "DocsByID")(DocsByID.On(ctx, Copy{At: p}, byID))(DocsByID.On(ctx, Copy{At: local}, byID))
		byID.MaxBytes = 1
		as[[]shard.Row](t, "DocsByID")(DocsByID.On(ctx, Copy{At: p}, byID))(DocsByID.On(ctx, Copy{At: local}, byID))
		if got, err := DocsByID.On(ctx, Copy{At: p}, byID); err != nil || len(got) != 1 || got[0].ID != "a" {
			t.Fatalf("got %+v, %v", got, err)
		}
		as[*shard.LocalDoc](t, "LocalGet")(LocalGet.On(ctx, Copy{At: p}, LocalGetRequest{testCopy, "_local/l"}))(LocalGet.On(ctx, Copy{At: local}, LocalGetRequest{testCopy, "_local/l"}))
		as[shard.Info](t, "Info")(Info.On(ctx, Copy{At: p}, testCopy))(Info.On(ctx, Copy{At: local}, testCopy))
		as[At](t, "Position")(Position.On(ctx, Copy{At: p}, testCopy))(Position.On(ctx, Copy{At: local}, testCopy))
		purged, err := Purge.On(ctx, Copy{At: p}, PurgeRequest{testCopy, []shard.PurgeItem{{ID: "a", Revs: []doc.Rev{results[0].Rev, rev}}}})
		if err != nil || len(purged) != 1 || len(purged[0].Purged) != 1 || purged[0].Purged[0] != results[0].Rev {
			t.Fatalf("got %+v, %v", purged, err)
		}
		as[[]shard.PurgeInfo](t, "Purges")(Purges.On(ctx, Copy{At: p}, PurgesRequest{Copy: testCopy}))(Purges.On(ctx, Copy{At: local}, PurgesRequest{Copy: testCopy}))
	})
}

// TestCreateRefused: a copy is made only where the map of this node has it.
func TestCreateRefused(t *testing.T) {
	local := newLocal(t)
	const name = "shards/00000000-ffffffff/made.1763600000"
	asked := ring.Replica{Copy: ring.Copy{ID: 5}, Name: name, Generation: 7}
	for _, tc := range []struct {
		what    string
		place   ring.Replica
		refusal fault.Kind
	}{
		{"another copy", ring.Replica{Copy: ring.Copy{ID: 6}, Generation: 7}, fault.NoCopy},
		{"a newer map with another copy", ring.Replica{Copy: ring.Copy{ID: 6}, Generation: 8}, fault.StaleMap},
	} {
		local.held.Place = func(string) ring.Replica { return tc.place }
		if err := local.Create(t.Context(), asked, false); !fault.Is(err, tc.refusal) {
			t.Errorf("%s: %v", tc.what, err)
		}
		if local.Has(name) {
			t.Errorf("%s: it was made", tc.what)
		}
	}
	local.held.Place = func(string) ring.Replica { return asked }
	if err := local.Create(t.Context(), asked, false); err != nil || !local.Has(name) {
		t.Errorf("the copy of the map: %v", err)
	}
}

func TestWholeCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		ctx, other := t.Context(), "shards/00000000-ffffffff/other.1763600000"
		if err := local.Create(ctx, ring.Replica{Name: other}, true); err != nil {
			t.Fatal(err)
		}
		if err := local.Create(ctx, ring.Replica{Name: other}, true); !fault.Is(err, fault.Exists) {
			t.Fatalf("got %v", err)
		}
		_, err := Decide.On(ctx, Copy{At: p}, shard.DecideRequest{
			Copy: other, NewEdits: true, Limits: shard.Limits{Partitioned: true},
			Edits: []shard.Edit{{ID: "p:1", Body: []byte(`{}`)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		as[shard.PartitionInfo](t, "Partition")(Partition.On(ctx, Copy{At: p}, PartitionRequest{other, "p"}))(Partition.On(ctx, Copy{At: local}, PartitionRequest{other, "p"}))
		if _, err := Compact.On(ctx, Copy{At: p}, CompactRequest{other, shard.Limits{Revs: 5}, "other"}); err != nil {
			t.Fatal(err)
		}
		if _, err := Drop.On(ctx, Copy{At: p}, other); err != nil {
			t.Fatal(err)
		}
		if _, err := Drop.On(ctx, Copy{At: p}, other); !fault.Is(err, fault.NoCopy) {
			t.Fatalf("got %v", err)
		}
	})
}

// fill1000 writes documents d000 … d999, of which each third is deleted and
// each seventh has a conflict.
func fill1000(t *testing.T, local *Local) {
	t.Helper()
	var edits []shard.Edit
	for i := range 1000 {
		edits = append(edits, shard.Edit{ID: fmt.Sprintf("d%03d", i), Body: fmt.Appendf(nil, `{"i":%d,"text":%q}`, i, strings.Repeat("x", i))})
	}
	results := update(t, local, edits...)
	edits = nil
	for i := range 1000 {
		if i%3 == 0 {
			edits = append(edits, shard.Edit{ID: fmt.Sprintf("d%03d", i), Parent: results[i].Rev, Deleted: true, Body: []byte(`{}`)})
		}
	}
	update(t, local, edits...)
	edits = nil
	for i := range 1000 {
		if i%7 == 0 {
			edits = append(edits, shard.Edit{
				ID: fmt.Sprintf("d%03d", i), Body: []byte(`{"other":true}`),
				Path: doc.Path{Start: 1, IDs: []string{"0123456789abcdef"}},
			})
		}
	}
	if _, err := Follow.On(t.Context(), Copy{At: local}, shard.FollowRequest{Copy: testCopy, Edits: edits}); err != nil {
		t.Fatal(err)
	}
}

func TestAllDocs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		fill1000(t, local)
		ctx := t.Context()
		for _, req := range []shard.DocsRequest{
			{},
			{IncludeDocs: true, Conflicts: true},
			{Desc: true, Lo: "d1", Hi: "d2", HasHi: true, HiExclusive: true},
			{Limit: 5},
			{Lo: "z"},
		} {
			req.Copy = testCopy
			got, err := AllDocs.On(ctx, Copy{At: p}, req)
			if err != nil {
				t.Fatal(err)
			}
			want, err := AllDocs.On(ctx, Copy{At: local}, req)
			if err != nil {
				t.Fatal(err)
			}
			if got.Head != want.Head {
				t.Fatalf("heads differ: %+v, %+v", got, want)
			}
			// Two batches by turns, as a reader ahead of time uses them.
			var gb [2]shard.RowBatch
			var wb shard.RowBatch
			var before []shard.Row
			for turn := 0; ; turn++ {
				gmore, err := got.Next(&gb[turn%2])
				if err != nil {
					t.Fatal(err)
				}
				wmore, err := want.Next(&wb)
				if err != nil {
					t.Fatal(err)
				}
				if gmore != wmore || len(gb[turn%2].Rows) != len(wb.Rows) {
					t.Fatalf("batch %d: %d rows, %t; want %d, %t", turn, len(gb[turn%2].Rows), gmore, len(wb.Rows), wmore)
				}
				if len(wb.Rows) > 0 {
					same(t, "rows", gb[turn%2].Rows, wb.Rows)
				}
				if turn > 0 {
					same(t, "the batch before", gb[1-turn%2].Rows, before)
				}
				before = cloneRows(gb[turn%2].Rows)
				if !gmore {
					break
				}
			}
			if more, err := got.Next(&gb[0]); more || err != nil || len(gb[0].Rows) != 0 {
				t.Fatalf("after the end: %t, %v", more, err)
			}
			got.Close()
			got.Close()
			want.Close()
		}
		if _, err := AllDocs.On(ctx, Copy{At: p}, shard.DocsRequest{Copy: "shards/none"}); !fault.Is(err, fault.NoCopy) {
			t.Fatalf("got %v", err)
		}
	})
}

func cloneRows(rows []shard.Row) []shard.Row {
	out := append([]shard.Row{}, rows...)
	for i := range out {
		if out[i].Doc != nil {
			d := *out[i].Doc
			d.Body = bytes.Clone(d.Body)
			out[i].Doc = &d
		}
	}
	return out
}

func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		fill1000(t, local)
		ctx := t.Context()
		for _, req := range []shard.ChangesRequest{
			{},
			{AllLeaves: true, IncludeDocs: true, Conflicts: true},
			{Desc: true, Since: 100},
			{Filter: shard.Filter{Kind: shard.FilterDocIDs, IDs: []string{"d001", "d500", "none"}}, IncludeDocs: true},
			{Filter: shard.Filter{Kind: shard.FilterDesign}},
			{Limit: 3},
			{Since: 1 << 40},
		} {
			req.Copy = testCopy
			got, err := Changes.On(ctx, Copy{At: p}, req)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Changes.On(ctx, Copy{At: local}, req)
			if err != nil {
				t.Fatal(err)
			}
			if got.Head.Seq != want.Head.Seq || got.Head.UUID != want.Head.UUID {
				t.Fatal("heads differ")
			}
			var gb, wb shard.ChangeBatch
			for turn := 0; ; turn++ {
				gmore, err := got.Next(&gb)
				if err != nil {
					t.Fatal(err)
				}
				wmore, err := want.Next(&wb)
				if err != nil {
					t.Fatal(err)
				}
				if gmore != wmore || gb.Upto != wb.Upto || len(gb.Rows) != len(wb.Rows) {
					t.Fatalf("batch %d: %d rows to %d, %t; want %d to %d, %t", turn, len(gb.Rows), gb.Upto, gmore, len(wb.Rows), wb.Upto, wmore)
				}
				if len(wb.Rows) > 0 {
					same(t, "changes", gb.Rows, wb.Rows)
				}
				if turn%2 == 1 || !gmore { // also in the middle, with parts under way
					as[uint64](t, "Pending")(got.Pending(gb.Upto))(want.Pending(gb.Upto))
				}
				if !gmore {
					break
				}
			}
			got.Close()
			want.Close()
		}
		req := shard.ChangesRequest{Copy: testCopy, Filter: shard.Filter{Kind: shard.FilterSelector, Selector: []byte(`{}`)}}
		_, err := Changes.On(ctx, Copy{At: p}, req)
		_, want := Changes.On(ctx, Copy{At: local}, req)
		if fault.KindOf(err) != fault.KindOf(want) || fault.Reason(err) != fault.Reason(want) {
			t.Fatalf("got %v, want %v", err, want)
		}
	})
}

func TestLocalDocs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		ctx := t.Context()
		for i := range 300 {
			update(t, local, shard.Edit{ID: fmt.Sprintf("_local/%03d", i), Body: fmt.Appendf(nil, `{"i":%d}`, i)})
		}
		req := shard.LocalDocsRequest{Copy: testCopy, Lo: "_local/01", Desc: true}
		got, err := LocalDocs.On(ctx, Copy{At: p}, req)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		want, err := LocalDocs.On(ctx, Copy{At: local}, req)
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		var gb, wb shard.LocalBatch
		for more := true; more; {
			if more, err = got.Next(&gb); err != nil {
				t.Fatal(err)
			}
			if _, err = want.Next(&wb); err != nil {
				t.Fatal(err)
			}
			same(t, "local documents", gb.Rows, wb.Rows)
		}
	})
}

// putAttachment stores content and a document with it.
func putAttachment(t *testing.T, p Copies, key [16]byte, content []byte) {
	t.Helper()
	s, err := PutAttachment.On(t.Context(), Copy{At: p}, PutAttachmentRequest{testCopy, "doc", key})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write(content); n != len(content) || err != nil {
		t.Fatal(n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Abort()
	a := shard.EditAttachment{Attachment: doc.Attachment{
		Name: "file", ContentType: "text/plain", Digest: md5.Sum(content),
		Length: int64(len(content)), StoredLength: int64(len(content)), Key: key,
	}}
	results := update(t, p, shard.Edit{ID: "doc", Body: []byte(`{}`), Atts: []shard.EditAttachment{a}})
	if results[0].Err != nil {
		t.Fatal(results[0].Err)
	}
}

func TestAttachments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		ctx := t.Context()
		content := make([]byte, 5<<20+3)
		for i := range content {
			content[i] = byte(i * i >> 7)
		}
		key := [16]byte{1}
		putAttachment(t, p, key, content)
		for _, r := range []struct{ offset, length int64 }{{0, -1}, {100, 1000}, {5 << 20, -1}, {1, 4 << 20}} {
			in := shard.AttachmentRange{Copy: testCopy, ID: "doc", Key: key, Offset: r.offset, Length: r.length}
			got, err := ReadAttachment.On(ctx, Copy{At: p}, in)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(got)
			if err != nil {
				t.Fatal(err)
			}
			end := int64(len(content))
			if r.length >= 0 {
				end = r.offset + r.length
			}
			if !bytes.Equal(b, content[r.offset:end]) {
				t.Fatalf("read %d bytes of %v", len(b), r)
			}
			if err := got.Close(); err != nil {
				t.Fatal(err)
			}
		}
		none := shard.AttachmentRange{Copy: testCopy, ID: "doc", Key: [16]byte{9}, Length: -1}
		_, err := ReadAttachment.On(ctx, Copy{At: p}, none)
		_, want := ReadAttachment.On(ctx, Copy{At: local}, none)
		if fault.KindOf(err) != fault.KindOf(want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		if _, err := PutAttachment.On(ctx, Copy{At: p}, PutAttachmentRequest{"shards/none", "doc", key}); !fault.Is(err, fault.NoCopy) {
			t.Fatalf("got %v", err)
		}
		// Given up: nothing is left, and nothing more can be written.
		s, err := PutAttachment.On(ctx, Copy{At: p}, PutAttachmentRequest{testCopy, "doc", [16]byte{2}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(content); err != nil {
			t.Fatal(err)
		}
		s.Abort()
		if _, err := s.Write(content); err == nil {
			t.Fatal("wrote after Abort")
		}
		if err := s.Close(); err == nil {
			t.Fatal("closed after Abort")
		}
		// Stored and dropped again.
		if s, err = PutAttachment.On(ctx, Copy{At: p}, PutAttachmentRequest{testCopy, "doc", [16]byte{3}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := DropAttachments.On(ctx, Copy{At: p}, DropAttachmentsRequest{testCopy, "doc", [][16]byte{{3}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadAttachment.On(ctx, Copy{At: local}, shard.AttachmentRange{Copy: testCopy, ID: "doc", Key: [16]byte{3}, Length: -1}); err == nil {
			t.Fatal("dropped content can be read")
		}
	})
}

// The head of the changes of a copy that was cloned tells where it comes from, and a
// feed that has read from the source goes on.
func TestChangesTellOrigins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, p, _ := remoteCopies(t)
		fill1000(t, local)
		ctx := t.Context()
		const half = "shards/00000000-7fffffff/db.1763600000"
		if err := local.held.Shards.Copies.Create(ctx, half, shard.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r := ring.Range{End: 1<<31 - 1}
		upto, err := local.held.Shards.Clones.Range(ctx, shard.CloneOptions{Source: testCopy, Target: half, Range: r})
		if err != nil {
			t.Fatal(err)
		}
		source, _, err := local.held.Shards.Position(ctx, testCopy)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []Copies{local, p} {
			feed, err := Changes.On(ctx, Copy{At: at}, shard.ChangesRequest{Copy: half})
			if err != nil {
				t.Fatal(err)
			}
			feed.Close()
			same(t, "origins", feed.Head.Origins, []sequence.Origin{{UUID: source, Upto: upto}})
			seen := sequence.Of([]sequence.Mark{{End: 1<<32 - 1, Copy: sequence.PrefixOf(source), Seq: 500}})
			if got := seen.Resume(r, feed.Head, nil); got != 500 {
				t.Errorf("goes on from %d", got)
			}
		}
	})
}

package shard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

// Golden local/01.
func TestLocalDocuments(t *testing.T) {
	n := start(t, Options{})
	ctx := context.Background()
	put := func(r string, want string) {
		t.Helper()
		got, err := n.LocalDocs.Put(ctx, copyName, "_local/a", rev(t, r), []byte(`{"r":"`+r+`"}`))
		if err != nil || got.String() != want {
			t.Fatalf("put with %q: %v %v", r, got, err)
		}
	}
	for _, c := range [][2]string{{"", "0-1"}, {"0-1", "0-2"}, {"0-2", "0-3"}, {"0-2", "0-3"}, {"", "0-1"}, {"0-100", "0-101"}} {
		put(c[0], c[1])
	}
	for _, bad := range []doc.Rev{{Pos: 1, ID: "1"}, {ID: "x"}, {ID: "-1"}} {
		if _, err := n.LocalDocs.Put(ctx, copyName, "_local/a", bad, []byte("{}")); !fault.Is(err, fault.BadRequest) || fault.Reason(err) != reasonBadRev {
			t.Errorf("put with %v: %v", bad, err)
		}
	}
	d, err := n.LocalDocs.Get(ctx, copyName, "_local/a")
	if err != nil || d.Rev != 101 || string(d.Body) != `{"r":"0-100"}` {
		t.Fatalf("%+v %v", d, err)
	}
	e := Edit{ID: "_local/l", Path: doc.Path{IDs: []string{"7"}}, Body: []byte("{}")}
	if r := n.edits(false, e)[0]; r.Rev.String() != "0-8" {
		t.Fatalf("replicated: %+v", r)
	}
	for _, id := range []string{"_local/shard-sync-x-y", "_local/purge-mem3-x", "_local/z"} {
		if _, err := n.LocalDocs.Put(ctx, copyName, id, doc.Rev{}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		req  LocalDocsRequest
		want string
	}{
		{LocalDocsRequest{}, "_local/a _local/l _local/z"},
		{LocalDocsRequest{System: true}, "_local/a _local/l _local/purge-mem3-x _local/shard-sync-x-y _local/z"},
		{LocalDocsRequest{Desc: true}, "_local/z _local/l _local/a"},
		{LocalDocsRequest{Lo: "_local/b", Hi: "_local/z", HasHi: true, HiExclusive: true}, "_local/l"},
		{LocalDocsRequest{Lo: "_local/z", Hi: "_local/a", HasHi: true}, ""},
	} {
		if got := n.locals(c.req); got != c.want {
			t.Errorf("%+v: %s", c.req, got)
		}
	}
	if r, err := n.LocalDocs.Delete(ctx, copyName, "_local/a", doc.Rev{}); err != nil || r.String() != "0-0" {
		t.Fatal(r, err)
	}
	if _, err := n.LocalDocs.Get(ctx, copyName, "_local/a"); !fault.Is(err, fault.NotFound) || fault.Reason(err) != "missing" {
		t.Fatal(err)
	}
	if _, err := n.LocalDocs.Delete(ctx, copyName, "_local/a", doc.Rev{}); !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	if i := n.info(); i.Seq != 0 || i.Live != 0 {
		t.Fatalf("local documents count: %+v", i)
	}
}

func (n *node) locals(req LocalDocsRequest) string {
	n.t.Helper()
	req.Copy = copyName
	s, err := n.LocalDocs.List(context.Background(), req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer s.Close()
	var out []string
	var b LocalBatch
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			n.t.Fatal(err)
		}
		for _, d := range b.Rows {
			out = append(out, d.ID)
		}
	}
	return strings.Join(out, " ")
}

func (n *node) purge(id string, revs ...string) string {
	n.t.Helper()
	item := PurgeItem{ID: id}
	for _, r := range revs {
		item.Revs = append(item.Revs, rev(n.t, r))
	}
	res, err := n.Purge(context.Background(), copyName, []PurgeItem{item})
	if err != nil {
		n.t.Fatal(err)
	}
	var out []string
	for _, r := range res[0].Purged {
		out = append(out, r.String())
	}
	return strings.Join(out, " ")
}

// Golden bulk/08.
func TestPurge(t *testing.T) {
	n := start(t, Options{})
	n.replicate("one", "1-1", `{"v":1}`)
	n.replicate("two", "2-a 1", `{"v":"winner"}`)
	n.replicate("two", "2-5 1", string(body(3000)))
	n.replicate("long", "3-3 2 1", `{"v":3}`)
	n.replicate("long", "3-7 2 1", `{"v":7}`)
	seq := n.info().Seq
	if got := n.purge("one", "1-1"); got != "1-1" || n.show("one") != "missing" || n.showRev("one", "1-1") != "missing" {
		t.Fatal(got)
	}
	if now := n.info(); now.Seq != seq+1 || now.PurgeSeq != 1 || now.Live != 2 {
		t.Fatalf("the sequence moves: %+v", now)
	}
	if got := n.purge("two", "2-a"); got != "2-a" || n.show("two") != "2-5 "+string(body(3000)) {
		t.Fatal(got)
	}
	for _, c := range [][2]string{{"long", "2-2"}, {"long", "3-9"}, {"none", "1-1"}, {"one", "1-1"}} {
		if got := n.purge(c[0], c[1]); got != "" {
			t.Errorf("purged %s of %s", got, c[0])
		}
	}
	if now := n.info(); now.Seq != seq+2 || now.PurgeSeq != 6 {
		t.Fatalf("what removes nothing is only logged: %+v", now)
	}
	if got := n.purge("long", "2-2", "3-7"); got != "3-7" {
		t.Fatal(got)
	}
	if got := n.feed(ChangesRequest{}); !equal(got, fmt.Sprintf("%d two 2-5", seq+2), fmt.Sprintf("%d long 3-3", seq+3)) {
		t.Fatalf("feed %v", got)
	}
	n.purge("two", "2-5")
	n.purge("long", "3-3")
	if now := n.info(); now.Live != 0 || now.External != 0 || now.Active != 0 {
		t.Fatalf("something is left: %+v", now)
	}
	if r := n.must(n.edit("one", "", "{}")); !strings.HasPrefix(r, "1-") {
		t.Fatalf("created anew as %s", r)
	}
	n.replicate("long", "3-3 2 1", `{"v":3}`)
	if got := n.show("long"); got != `3-3 {"v":3}` {
		t.Fatal(got)
	}
	infos, err := n.Purges(context.Background(), copyName, 1)
	if err != nil || len(infos) != 8 || infos[0].ID != "two" || infos[0].Seq != 2 || infos[7].ID != "long" || infos[0].UUID == ([16]byte{}) {
		t.Fatalf("%+v %v", infos, err)
	}
	n.check()
	if err := n.compactNow(Limits{PurgedInfos: 3}); err != nil {
		t.Fatal(err)
	}
	if infos, _ := n.Purges(context.Background(), copyName, 0); len(infos) != 3 || n.info().PurgeOldest != 7 {
		t.Fatalf("%d entries left, oldest %d", len(infos), n.info().PurgeOldest)
	}
	n.check()
}

// Several items of one document in one request see each other.
func TestPurgeItemsInOrder(t *testing.T) {
	n := start(t, Options{})
	n.replicate("d", "1-a", "{}")
	n.replicate("d", "1-b", "{}")
	res, err := n.Purge(context.Background(), copyName, []PurgeItem{
		{ID: "d", Revs: []doc.Rev{rev(t, "1-a")}, UUID: [16]byte{1}},
		{ID: "d", Revs: []doc.Rev{rev(t, "1-a"), rev(t, "1-b")}, UUID: [16]byte{2}},
	})
	if err != nil || len(res[0].Purged) != 1 || len(res[1].Purged) != 1 || n.show("d") != "missing" {
		t.Fatalf("%+v %v", res, err)
	}
	n.check()
}

func TestPartitions(t *testing.T) {
	n := open(t, newFS(), Options{})
	defer n.stop()
	n.create(CreateOptions{Partitioned: true})
	ctx := context.Background()
	limits := Limits{Partitioned: true, MaxPartitionSize: 2000}
	write := func(newEdits bool, e Edit) EditResult {
		t.Helper()
		res, err := n.Decide(ctx, DecideRequest{Copy: copyName, NewEdits: newEdits, Edits: []Edit{e}, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		return res[0]
	}
	put := func(newEdits bool, e Edit) error { t.Helper(); return write(newEdits, e).Err }
	var revs [2]doc.Rev
	for i := range revs {
		res := write(true, Edit{ID: fmt.Sprintf("p:%d", i), Body: body(1000)})
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		revs[i] = res.Rev
	}
	err := put(true, Edit{ID: "p:x", Body: body(1)})
	if !fault.Is(err, fault.PartitionOverflow) || fault.Reason(err) != "Partition limit exceeded due to update on 'p:x'" {
		t.Fatal(err)
	}
	for _, e := range []Edit{{ID: "q:x", Body: body(1)}, {ID: "p;", Body: body(1)}, {ID: "_design/p:x", Body: body(1)}} {
		if err := put(true, e); err != nil {
			t.Errorf("%s: %v", e.ID, err)
		}
	}
	text := []EditAttachment{{Attachment: doc.Attachment{Name: "t", Length: 100, StoredLength: 100}, Data: bytes.Repeat([]byte("t"), 100)}}
	for _, e := range []Edit{
		{ID: "p:none", Deleted: true, Body: []byte("{}")}, // a tombstone is more than nothing
		{ID: "p:0", Parent: revs[0], Body: body(1001)},
		{ID: "p:0", Parent: revs[0], Body: body(1001), Deleted: true},
		{ID: "p:0", Parent: revs[0], Body: body(901), Atts: text},
	} {
		if err := put(true, e); !fault.Is(err, fault.PartitionOverflow) {
			t.Errorf("%s %.20s grows: %v", e.ID, e.Body, err)
		}
	}
	if err := put(true, Edit{ID: "p:0", Body: body(2000)}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a conflict that would grow: %v", err)
	}
	anew := false
	for _, e := range []Edit{
		{Body: body(900), Atts: text},
		{Body: body(900), Atts: []EditAttachment{{Attachment: doc.Attachment{Name: "t"}, Stub: true}}},
		{Body: body(1000)},
		{Body: body(999)},
		{Body: []byte("{}"), Deleted: true},
		{Body: []byte("{}")}, // made anew, as large as its tombstone
		{Body: []byte("{}"), Deleted: true},
	} {
		if err := put(false, replicated(t, "p:r", "1-x", `{"fills":"`+strings.Repeat("x", 1100)+`"}`)); err != nil {
			t.Fatal(err)
		}
		e.ID = "p:0"
		if !anew {
			e.Parent = revs[0]
		}
		anew = e.Deleted
		res := write(true, e)
		if res.Err != nil {
			t.Fatalf("%.20s does not grow: %v", e.Body, res.Err)
		}
		revs[0] = res.Rev
	}
	i, err := n.Partition(ctx, copyName, "p")
	if err != nil || i.Live != 2 || i.Deleted != 1 || i.External < 2000 || i.Active < i.External {
		t.Fatalf("%+v %v", i, err)
	}
	if i, err := n.Partition(ctx, copyName, "none"); err != nil || i != (PartitionInfo{}) {
		t.Fatalf("%+v %v", i, err)
	}
}

// Content that came in as a stream, shared between revisions, read in parts.
func TestLargeAttachments(t *testing.T) {
	n := start(t, Options{})
	ctx := context.Background()
	data := bytes.Repeat([]byte("0123456789abcdef"), 20000)
	upload := func(key byte) EditAttachment {
		t.Helper()
		s, err := n.Attachments.Put(ctx, copyName, "d", [16]byte{key})
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; from < len(data); from += 1000 {
			if _, err := s.Write(data[from : from+1000]); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.Abort() // does nothing now
		return EditAttachment{Attachment: doc.Attachment{
			Name: "big", Key: [16]byte{key}, Length: int64(len(data)), StoredLength: int64(len(data)),
		}}
	}
	r1 := n.must(n.edits(true, Edit{ID: "d", Body: []byte("{}"), Atts: []EditAttachment{upload(1)}})[0])
	stub := EditAttachment{Attachment: doc.Attachment{Name: "big"}, Stub: true}
	r2 := n.must(n.edits(true, Edit{ID: "d", Parent: rev(t, r1), Body: []byte(`{"v":2}`), Atts: []EditAttachment{stub}})[0])
	if got := n.read("d", [16]byte{1}); got != string(data) {
		t.Fatalf("%d bytes", len(got))
	}
	r, err := n.Attachments.Read(ctx, AttachmentRange{Copy: copyName, ID: "d", Key: [16]byte{1}, Offset: 100000, Length: 100})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, data[100000:100100]) {
		t.Fatalf("%q %v", b, err)
	}
	_ = r.Close()
	// Content that no edit took is dropped; given up content never was.
	upload(2)
	if err := n.Attachments.Drop(ctx, copyName, "d", [][16]byte{{2}}); err != nil {
		t.Fatal(err)
	}
	s, err := n.Attachments.Put(ctx, copyName, "d", [16]byte{3})
	if err != nil {
		t.Fatal(err)
	}
	s.Abort()
	for _, key := range []byte{2, 3} {
		if r, err := n.Attachments.Read(ctx, AttachmentRange{Copy: copyName, ID: "d", Key: [16]byte{key}, Length: -1}); err == nil {
			_ = r.Close()
			t.Errorf("content %d is still there", key)
		} else if !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	}
	// An edit must not refer to content that is not here.
	lost := EditAttachment{Attachment: doc.Attachment{Name: "lost", Key: [16]byte{3}, Length: 1 << 20, StoredLength: 1 << 20}}
	two := n.edits(true, Edit{ID: "d", Parent: rev(t, r2), Atts: []EditAttachment{lost}}, Edit{ID: "e", Body: []byte("{}")})
	if !fault.Is(two[0].Err, fault.Unavailable) || two[1].Err != nil {
		t.Errorf("content that is not here: %v, %v", two[0].Err, two[1].Err)
	}
	n.must(n.remove("e", two[1].Rev.String()))
	n.check()
	n.must(n.remove("d", r2))
	if err := n.compactNow(Limits{}); err != nil {
		t.Fatal(err)
	}
	if r, err := n.Attachments.Read(ctx, AttachmentRange{Copy: copyName, ID: "d", Key: [16]byte{1}, Length: -1}); err == nil {
		_ = r.Close()
		t.Error("compaction left the content of inner revisions")
	}
	if got := n.showRev("d", r2); got != "missing" {
		t.Errorf("compaction left the content of an inner revision: %s", got)
	}
	if i := n.info(); i.External != 4 { // two tombstones
		t.Errorf("sizes after deletion: %+v", i)
	}
	n.check()
}

// Copies come, go, and come again.
func TestCreateAndDrop(t *testing.T) {
	n := start(t, Options{})
	ctx := context.Background()
	if err := n.Copies.Create(ctx, copyName, CreateOptions{}); !fault.Is(err, fault.Exists) {
		t.Fatal(err)
	}
	n.must(n.edit("a", "", "{}"))
	w, err := n.Watch(copyName)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	uuid := n.info().UUID
	if err := n.Compactions.Start(ctx, copyName, Limits{}, "db"); err != nil {
		t.Fatal(err)
	}
	if err := n.Copies.Drop(ctx, copyName); err != nil {
		t.Fatal(err)
	}
	<-w.C()
	if _, err := n.get(OpenRequest{ID: "a"}); !fault.Is(err, fault.NoCopy) || fault.Reason(err) != "no_db_file" {
		t.Fatal(err)
	}
	if _, err := n.Decide(ctx, DecideRequest{Copy: copyName, Edits: []Edit{{ID: "a"}}}); !fault.Is(err, fault.NoCopy) {
		t.Fatal(err)
	}
	if err := n.Copies.Drop(ctx, copyName); !fault.Is(err, fault.NoCopy) {
		t.Fatal(err)
	}
	n.create(CreateOptions{})
	if got := n.show("a"); got != "missing" || n.info().UUID == uuid {
		t.Fatal(got)
	}
	n.must(n.edit("a", "", "{}"))
	if names, err := n.Copies.Names(); err != nil || len(names) != 1 || names[0] != copyName {
		t.Fatal(names, err)
	}
}

// Every operation on a copy that is not here says so in the words the
// coordinator looks for.
func TestNoSuchCopy(t *testing.T) {
	n := open(t, newFS(), Options{})
	defer n.stop()
	ctx := context.Background()
	for name, op := range map[string]func() error{
		"update": func() error {
			_, err := n.Decide(ctx, DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{{ID: "a", Body: []byte("{}")}}})
			return err
		},
		"open": func() error { _, err := n.Open(ctx, OpenRequest{Copy: copyName, ID: "a"}); return err },
		"open revs": func() error {
			_, err := n.OpenRevs(ctx, OpenRevsRequest{Copy: copyName, ID: "a", All: true})
			return err
		},
		"missing":   func() error { _, err := n.Missing(ctx, copyName, []IDRevs{{ID: "a"}}); return err },
		"all docs":  func() error { _, err := n.AllDocs(ctx, DocsRequest{Copy: copyName}); return err },
		"by id":     func() error { _, err := n.DocsByID(ctx, copyName, []string{"a"}, ByIDOptions{}); return err },
		"changes":   func() error { _, err := n.Changes(ctx, ChangesRequest{Copy: copyName}); return err },
		"local get": func() error { _, err := n.LocalDocs.Get(ctx, copyName, "_local/a"); return err },
		"local put": func() error {
			_, err := n.LocalDocs.Put(ctx, copyName, "_local/a", doc.Rev{}, []byte("{}"))
			return err
		},
		"local docs": func() error { _, err := n.LocalDocs.List(ctx, LocalDocsRequest{Copy: copyName}); return err },
		"purge":      func() error { _, err := n.Purge(ctx, copyName, []PurgeItem{{ID: "a"}}); return err },
		"purges":     func() error { _, err := n.Purges(ctx, copyName, 0); return err },
		"info":       func() error { _, err := n.Info(ctx, copyName); return err },
		"partition":  func() error { _, err := n.Partition(ctx, copyName, "p"); return err },
		"compact":    func() error { return n.Compactions.Start(ctx, copyName, Limits{}, "db") },
		"drop":       func() error { return n.Copies.Drop(ctx, copyName) },
		"put att":    func() error { _, err := n.Attachments.Put(ctx, copyName, "a", [16]byte{1}); return err },
		"read att":   func() error { _, err := n.Attachments.Read(ctx, AttachmentRange{Copy: copyName, ID: "a"}); return err },
		"drop att":   func() error { return n.Attachments.Drop(ctx, copyName, "a", [][16]byte{{1}}) },
	} {
		if err := op(); !fault.Is(err, fault.NoCopy) || fault.Reason(err) != "no_db_file" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeLocal(t *testing.T) {
	for _, bad := range [][]byte{nil, {0x80}, bytes.Repeat([]byte{0xff}, 20)} {
		if _, err := decodeLocal("_local/a", bad); !fault.Is(err, fault.Corruption) {
			t.Errorf("%x: %v", bad, err)
		}
	}
	if d, err := decodeLocal("_local/a", append([]byte{0x81, 1}, "{}"...)); err != nil || d.Rev != 129 || string(d.Body) != "{}" {
		t.Error(d, err)
	}
}

func TestAdmin(t *testing.T) {
	if (User{Roles: []string{"a"}}).Admin() || !(User{Roles: []string{"a", AdminRole}}).Admin() {
		t.Error("the role counts")
	}
}

// Content that an edit refers to goes away after the request has looked for it
// and before the writer takes it.
func TestContentDroppedMeanwhile(t *testing.T) {
	n := start(t, Options{})
	ctx := context.Background()
	s, err := n.Attachments.Put(ctx, copyName, "d", [16]byte{1})
	if err == nil {
		_, err = s.Write([]byte("content"))
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	big := EditAttachment{Attachment: doc.Attachment{Name: "big", Key: [16]byte{1}, Length: 7, StoredLength: 7}}
	req := DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{{ID: "d", Body: []byte("{}"), Atts: []EditAttachment{big}}, {ID: "e", Body: []byte("{}")}}}
	task := newDecide(ctx, n.states, req)
	task.open = n.openCopy()
	defer task.open.Close()
	if err := task.prepare(ctx); err != nil || task.results[0].Err != nil {
		t.Fatal(err, task.results)
	}
	if err := n.Attachments.Drop(ctx, copyName, "d", [][16]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	if err := n.states.submit(ctx, task.open.store, task, false); err != nil {
		t.Fatal(err)
	}
	res := task.results
	if !fault.Is(res[0].Err, fault.Unavailable) || res[1].Err != nil {
		t.Errorf("%v, %v", res[0].Err, res[1].Err)
	}
	if got := n.show("d"); got != "missing" {
		t.Error(got)
	}
	n.check()
}

// TestWriteToDropped: a request that has opened a copy before it was dropped writes nothing
// to it, nor to the copy that has its name since.
func TestWriteToDropped(t *testing.T) {
	n := start(t, Options{})
	ctx := context.Background()
	for _, delayed := range []bool{false, true} {
		open := n.openCopy()
		if err := n.Copies.Drop(ctx, copyName); err != nil {
			t.Fatal(err)
		}
		edits := []Edit{{ID: "late", Body: []byte("{}")}}
		if _, err := n.Decide(ctx, DecideRequest{Copy: copyName, Open: open, NewEdits: true, Delayed: delayed, Edits: edits}); !fault.Is(err, fault.NoCopy) {
			t.Errorf("delayed %t: %v", delayed, err)
		}
		open.Close()
		n.create(CreateOptions{})
		if got := n.show("late"); got != "missing" {
			t.Errorf("delayed %t: %s", delayed, got)
		}
	}
	n.check()
}

package cluster

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/meta/dbsetting"
	"divan/shard"
	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

func TestDatabaseLife(t *testing.T) {
	w := start(t, setup{})
	ctx := t.Context()
	if _, err := w.DB(ctx, "db"); !fault.Is(err, fault.NotFound) || fault.Reason(err) != "Database does not exist." {
		t.Fatalf("open what is not there: %v", err)
	}
	d := w.create("db", CreateOptions{})
	if err := w.CreateDB(ctx, "db", CreateOptions{}); !fault.Is(err, fault.Exists) {
		t.Fatalf("create again: %v", err)
	}
	put(t, d, "a", doc.Rev{}, `{}`)
	before := d.InstanceStart()
	if err := w.DeleteDB(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteDB(ctx, "db"); !fault.Is(err, fault.NotFound) {
		t.Fatalf("delete again: %v", err)
	}
	// The handle is older than the deletion.
	if _, err := d.Open(ctx, OpenOptions{ID: "a"}); fault.Reason(err) != "Database does not exist." {
		t.Fatalf("open a document of a deleted database: %v", err)
	}
	if _, err := d.Update(ctx, UpdateOptions{NewEdits: true}, []shard.Edit{{ID: "b", Body: []byte("{}")}}); fault.Reason(err) != "Database does not exist." {
		t.Fatalf("write to a deleted database: %v", err)
	}
	if _, err := d.AllDocs(ctx, DocsQuery{Limit: NoLimit}); fault.Reason(err) != "Database does not exist." {
		t.Fatalf("list a deleted database: %v", err)
	}
	d = w.create("db", CreateOptions{})
	if d.InstanceStart() == before {
		t.Fatal("the new database cannot be told from the old one")
	}
	if ids, total, _ := list(t, d, DocsQuery{Limit: NoLimit}); ids != "" || total != 0 {
		t.Fatalf("left over: %q", ids)
	}
}

func TestCreateRefusals(t *testing.T) {
	w := start(t, setup{})
	for _, tc := range []struct {
		name   string
		o      CreateOptions
		kind   fault.Kind
		reason string
	}{
		{name: "Golden", kind: fault.IllegalDatabaseName},
		{name: "_golden", kind: fault.IllegalDatabaseName},
		{name: strings.Repeat("x", 300), kind: fault.DatabaseNameTooLong},
		{name: "_users", o: CreateOptions{Partitioned: true}, kind: fault.BadRequest, reason: "Cannot partition a system database"},
		{name: "db", o: CreateOptions{Q: -1}, kind: fault.BadRequest, reason: "The `q` value should be a positive integer."},
		{name: "db", o: CreateOptions{Q: 1 << 20}, kind: fault.BadRequest, reason: "The `q` value should be a positive integer."},
		{name: "db", o: CreateOptions{N: -1}, kind: fault.BadRequest, reason: "The `n` value should be a positive integer."},
		{name: "db", o: CreateOptions{Placement: "zone"}, kind: fault.BadRequest, reason: "The `placement` value should be in a format `zone:n`."},
		{name: "db", o: CreateOptions{Placement: "nowhere:1"}, kind: fault.Unavailable},
	} {
		err := w.CreateDB(t.Context(), tc.name, tc.o)
		if !fault.Is(err, tc.kind) || (tc.reason != "" && fault.Reason(err) != tc.reason) {
			t.Errorf("%.20s %+v: %v", tc.name, tc.o, err)
		}
	}
	if names, err := w.Names(t.Context(), NameRange{Limit: NoLimit}); err != nil || len(names) != 0 {
		t.Errorf("%q, %v", names, err)
	}
}

func TestInfo(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 8, N: 3})
	info, err := d.Info(t.Context())
	if err != nil || info.Q != 8 || info.N != 1 || info.W != 1 || info.R != 1 || !strings.HasPrefix(info.UpdateSeq, "0-") {
		t.Fatalf("%+v, %v", info, err)
	}
	revs := bulk(t, d, "a", "b", "c", "_design/d")
	update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Parent: revs[0], Deleted: true, Body: []byte("{}")})
	info, err = d.Info(t.Context())
	if err != nil || info.DocCount != 3 || info.DocDelCount != 1 || !strings.HasPrefix(info.UpdateSeq, "5-") {
		t.Fatalf("%+v, %v", info, err)
	}
	if info.SizeExternal <= 0 || info.SizeActive <= 0 || info.SizeFile <= 0 {
		t.Fatalf("sizes: %+v", info)
	}
	if start, err := d.EnsureFullCommit(t.Context()); err != nil || start != info.InstanceStart || start == "" {
		t.Fatalf("%s, %v", start, err)
	}
}

func TestNames(t *testing.T) {
	w := start(t, setup{})
	for _, n := range []string{"b", "a", "d", "c"} {
		w.create(n, CreateOptions{Q: 1})
	}
	for _, tc := range []struct {
		name string
		r    NameRange
		want string
	}{
		{name: "all", r: NameRange{Limit: NoLimit}, want: "a b c d"},
		{name: "descending", r: NameRange{Limit: NoLimit, Descending: true}, want: "d c b a"},
		{name: "range", r: NameRange{Limit: NoLimit, StartKey: ptr("b"), EndKey: ptr("c"), InclusiveEnd: true}, want: "b c"},
		{name: "end left out", r: NameRange{Limit: NoLimit, StartKey: ptr("b"), EndKey: ptr("c")}, want: "b"},
		{name: "between names", r: NameRange{Limit: NoLimit, StartKey: ptr("aa"), EndKey: ptr("cc"), InclusiveEnd: true}, want: "b c"},
		{name: "descending range", r: NameRange{Limit: NoLimit, Descending: true, StartKey: ptr("c"), EndKey: ptr("b"), InclusiveEnd: true}, want: "c b"},
		{name: "descending, end left out", r: NameRange{Limit: NoLimit, Descending: true, StartKey: ptr("c"), EndKey: ptr("b")}, want: "c"},
		{name: "start behind end", r: NameRange{Limit: NoLimit, StartKey: ptr("c"), EndKey: ptr("b"), InclusiveEnd: true}},
		{name: "limit", r: NameRange{Limit: 2}, want: "a b"},
		{name: "limit of none", r: NameRange{}},
		{name: "skip and limit", r: NameRange{Skip: 1, Limit: 2}, want: "b c"},
		{name: "descending, skip and limit", r: NameRange{Skip: 1, Limit: 2, Descending: true}, want: "c b"},
		{name: "skip all", r: NameRange{Skip: 9, Limit: NoLimit}},
	} {
		got, err := w.Names(t.Context(), tc.r)
		if err != nil || strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.name, got, err, tc.want)
		}
	}
}

func TestSecurity(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{})
	if got := string(d.Security()); got != `{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}` {
		t.Fatalf("default: %s", got)
	}
	for _, object := range []string{
		`{"admins":{"names":["anna"],"roles":["bosses"]},"members":{"names":["mia"],"roles":[]}}`,
		`{"admins":{"names":[]},"policy":{"max":5,"tags":["a",null,true]},"_revision":"x"}`,
		`{"members":{"names":["mia"]}}`,
		`{}`,
	} {
		if err := d.SetSecurity(t.Context(), []byte(object)); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		if got := string(w.open("db").Security()); got != object {
			t.Fatalf("got %s, want %s", got, object)
		}
	}
	const (
		names = "names must be a JSON list of strings"
		roles = "roles must be a JSON list of strings"
		shape = "admins or members must be a JSON list of strings"
	)
	for object, reason := range map[string]string{
		`{"admins":{"names":"anna","roles":[]}}`:      names,
		`{"admins":{"names":[1],"roles":[]}}`:         names,
		`{"members":{"names":[],"roles":{"a":1}}}`:    roles,
		`{"members":{"names":[],"roles":["a",null]}}`: roles,
		`{"admins":["anna"]}`:                         shape,
		`{"members":"mia"}`:                           shape,
		`{"readers":"mia"}`:                           shape,
		`["anna"]`:                                    "Request body must be a JSON object",
		`"anna"`:                                      "Request body must be a JSON object",
		`{"admins": `:                                 "invalid UTF-8 JSON",
		``:                                            "invalid UTF-8 JSON",
	} {
		if err := d.SetSecurity(t.Context(), []byte(object)); !fault.Is(err, fault.BadRequest) || fault.Reason(err) != reason {
			t.Errorf("%s: %v, want %s", object, err, reason)
		}
	}
	if got := string(w.open("db").Security()); got != `{}` {
		t.Fatalf("a refused object was stored: %s", got)
	}
}

func TestDefaultSecurityEveryone(t *testing.T) {
	w := start(t, setup{config: config.Values{"couchdb": {"default_security": "everyone"}}})
	if got := string(w.create("db", CreateOptions{}).Security()); got != `{}` {
		t.Fatal(got)
	}
}

func TestLimits(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{})
	if d.Setting(dbsetting.RevsLimit) != 1000 || d.Setting(dbsetting.PurgedInfosLimit) != 1000 {
		t.Fatalf("defaults: %d, %d", d.Setting(dbsetting.RevsLimit), d.Setting(dbsetting.PurgedInfosLimit))
	}
	if err := d.Set(t.Context(), dbsetting.RevsLimit, 0); !fault.Is(err, fault.BadRequest) {
		t.Fatal(err)
	}
	if err := d.Set(t.Context(), dbsetting.PurgedInfosLimit, -1); fault.Reason(err) != "`purged_infos_limit` must be positive integer" {
		t.Fatal(err)
	}
	if err := d.Set(t.Context(), dbsetting.RevsLimit, 3); err != nil {
		t.Fatal(err)
	}
	if err := d.Set(t.Context(), dbsetting.PurgedInfosLimit, 5); err != nil {
		t.Fatal(err)
	}
	d = w.open("db")
	if d.Setting(dbsetting.RevsLimit) != 3 || d.Setting(dbsetting.PurgedInfosLimit) != 5 {
		t.Fatalf("%d, %d", d.Setting(dbsetting.RevsLimit), d.Setting(dbsetting.PurgedInfosLimit))
	}
	var rev doc.Rev
	for i := range 6 {
		rev = put(t, d, "a", rev, fmt.Sprintf(`{"n":%d}`, i))
	}
	got, err := d.Open(t.Context(), OpenOptions{ID: "a", Revs: true})
	if err != nil || len(got.Revisions.IDs) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
}

// TestShards follows golden database/07.
func TestShards(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 4})
	p := w.create("partitioned", CreateOptions{Q: 4, Partitioned: true})
	for _, tc := range []struct {
		d        *DB
		id, want string
	}{
		{d, "a", "c0000000-ffffffff"},
		{d, "b", "40000000-7fffffff"},
		{d, "hello", "00000000-3fffffff"},
		{d, "_design/d", "40000000-7fffffff"},
		{d, "ü", "40000000-7fffffff"},
		{p, "p1:a", "00000000-3fffffff"},
		{p, "p1:b", "00000000-3fffffff"},
		{p, "p2:a", "80000000-bfffffff"},
		{p, "_design/d", "40000000-7fffffff"},
	} {
		if s := tc.d.routing.ShardOf(tc.id); s.String() != tc.want || !slices.Equal(s.Nodes(), []string{node1}) {
			t.Errorf("%s: %s on %q, want %s", tc.id, s.Range, s.Nodes(), tc.want)
		}
	}
	if got := d.Shards(); len(got) != 4 || got[3].String() != "c0000000-ffffffff" {
		t.Errorf("%v", got)
	}
	if err := d.SyncShards(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPartition follows golden database/08.
func TestPartition(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 4, Partitioned: true})
	revs := bulk(t, d, "p1:a", "p1:b", "p2:a", "p1:x:y", "p3:gone", "_design/d")
	update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "p3:gone", Parent: revs[4], Deleted: true, Body: []byte("{}")})
	for _, tc := range []struct {
		partition     string
		live, deleted uint64
	}{{"p1", 3, 0}, {"p2", 1, 0}, {"p3", 0, 1}, {"none", 0, 0}} {
		got, err := d.Partition(t.Context(), tc.partition)
		if err != nil || got.DocCount != tc.live || got.DocDelCount != tc.deleted {
			t.Fatalf("%s: %+v, %v", tc.partition, got, err)
		}
		if (got.SizeExternal > 0) != (tc.live > 0) && tc.deleted == 0 {
			t.Fatalf("%s: sizes %+v", tc.partition, got)
		}
	}
	for _, tc := range []struct {
		name string
		q    DocsQuery
		want string
	}{
		{name: "all", q: DocsQuery{Partition: "p1"}, want: "p1:a p1:b p1:x:y"},
		{name: "descending", q: DocsQuery{Partition: "p1", Descending: true}, want: "p1:x:y p1:b p1:a"},
		{name: "range", q: DocsQuery{Partition: "p1", StartKey: ptr("p1:b"), EndKey: ptr("p1:c")}, want: "p1:b"},
		{name: "key of another", q: DocsQuery{Partition: "p1", StartKey: ptr("p2:a"), EndKey: ptr("p2:a")}},
		{name: "keys", q: DocsQuery{Partition: "p1", HasKeys: true, Keys: []string{"p1:b", "p1:none", "p2:a", "p1:a"}}, want: "p1:b p1:none! p2:a! p1:a"},
		{name: "empty", q: DocsQuery{Partition: "none"}},
	} {
		tc.q.Limit, tc.q.InclusiveEnd = NoLimit, true
		ids, total, _ := list(t, d, tc.q)
		if wantTotal := map[string]int64{"p1": 3}[tc.q.Partition]; ids != tc.want || total != wantTotal {
			t.Errorf("%s: %q of %d, want %q of %d", tc.name, ids, total, tc.want, wantTotal)
		}
	}
	plain := w.create("plain", CreateOptions{})
	_, err := plain.Partition(t.Context(), "p1")
	if fault.Reason(err) != "database is not partitioned" {
		t.Error(err)
	}
	if _, err = plain.AllDocs(t.Context(), DocsQuery{Partition: "p1"}); fault.Reason(err) != "database is not partitioned" {
		t.Error(err)
	}
	for name, reason := range map[string]string{
		"": "Partition must not be empty", "_p": "Partition must not start with an underscore",
		"a:b": "Partition must not contain a colon", "\xff": "Partition must be valid UTF-8",
	} {
		if _, err := d.Partition(t.Context(), name); !fault.Is(err, fault.IllegalPartition) || fault.Reason(err) != reason {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCompact(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{})
	first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
	put(t, d, "a", first, `{"n":2}`)
	if err := d.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		_, err := d.Open(t.Context(), OpenOptions{ID: "a", Rev: first})
		if fault.Is(err, fault.NotFound) {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the inner revision stays: %v", err)
		}
		info, err := d.Info(t.Context()) // gives the compaction time to run
		if err != nil || info.DocCount != 1 {
			t.Fatalf("%+v, %v", info, err)
		}
	}
}

// TestReconcile finds the disk and the map out of step at the start.
func TestReconcile(t *testing.T) {
	w := start(t, setup{still: true})
	d := w.create("db", CreateOptions{})
	lost := d.Meta().CopiesOn(node1)[0]
	if err := w.locals[node1].Copies.Drop(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	stray := "shards/00000000-ffffffff/stray.1700000000"
	if err := w.locals[node1].Copies.Create(t.Context(), stray, shard.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	k := &reconciler{c: w.Coordinator}
	if err := k.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, err := w.locals[node1].Copies.Names()
	if err != nil || !slices.Contains(names, lost) || !slices.Contains(names, stray) {
		t.Fatalf("%q, %v", names, err)
	}
	put(t, d, "a", doc.Rev{}, `{}`)
	k.orphans[stray] = time.Now().Add(-2 * dropGrace)
	if err := k.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, err = w.locals[node1].Copies.Names(); err != nil || slices.Contains(names, stray) || len(names) != 2 {
		t.Fatalf("%q, %v", names, err)
	}
	if orphans := w.orphans(); !slices.Equal(orphans, []string{"stray.1700000000"}) {
		t.Errorf("set aside: %q", orphans)
	}
}

// orphans returns what was set aside of the full range.
func (w *world) orphans() []string {
	names, _ := w.disks[node1].List("data/" + storage.OrphanedDir + "/00000000-ffffffff")
	return names
}

// TestDeletedCopyIsRemoved: what was left of a database that was deleted is not
// kept, however late it is found.
func TestDeletedCopyIsRemoved(t *testing.T) {
	w := start(t, setup{still: true})
	left := w.create("db", CreateOptions{Q: 1}).Meta().CopiesOn(node1)[0]
	if err := w.DeleteDB(t.Context(), "db"); err != nil {
		t.Fatal(err)
	}
	if err := w.locals[node1].Copies.Create(t.Context(), left, shard.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	k := &reconciler{c: w.Coordinator, orphans: map[string]time.Time{left: time.Now().Add(-2 * dropGrace)}}
	if err := k.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if orphans := w.orphans(); w.locals[node1].Copies.Has(left) || len(orphans) != 0 {
		t.Errorf("it stays: %q", orphans)
	}
}

// TestLostCopy: the only copy of a range goes unnoticed.
func TestLostCopy(t *testing.T) {
	w := start(t, setup{still: true})
	d := w.create("db", CreateOptions{Q: 2})
	put(t, d, "aa", doc.Rev{}, `{}`) // in the first range
	lost := d.meta.CopyName(d.routing.ShardOf("a").Range)
	if d.meta.CopyName(d.routing.ShardOf("aa").Range) == lost {
		t.Fatal("a and aa are in one range")
	}
	w.lose(lost)
	k := &reconciler{c: w.Coordinator}
	for range 2 {
		if err := k.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		d = w.open("db")
		put(t, d, numberedID(d, lost, false), doc.Rev{}, `{}`)
		if _, err := d.Open(t.Context(), OpenOptions{ID: "aa"}); err != nil {
			t.Error(err)
		}
		_, err := d.Open(t.Context(), OpenOptions{ID: "a"})
		wantLost(t, err)
		_, err = d.Update(t.Context(), UpdateOptions{NewEdits: true}, []shard.Edit{{ID: numberedID(d, lost, true), Body: []byte(`{}`)}})
		wantLost(t, err)
		if got := w.LostCopies(); !slices.Equal(got, []string{lost}) {
			t.Errorf("lost are %q", got)
		}
		w.handles.forget("db") // as after a restart
	}
	for _, other := range []string{d.meta.CopyName(d.routing.ShardOf("aa").Range), "shards/00000000-ffffffff/db.1", ""} {
		if err := w.AcceptLoss(t.Context(), other); !fault.Is(err, fault.BadRequest) && !fault.Is(err, fault.NotFound) {
			t.Errorf("the loss of %q was accepted: %v", other, err)
		}
	}
	if err := w.AcceptLoss(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	if got := w.LostCopies(); len(got) != 0 {
		t.Errorf("lost are %q", got)
	}
	if _, err := d.Open(t.Context(), OpenOptions{ID: "a"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("the document: %v", err)
	}
	put(t, d, "a", doc.Rev{}, `{}`)
}

func wantLost(t *testing.T, err error) {
	t.Helper()
	if !fault.Is(err, fault.Unavailable) || !strings.HasPrefix(fault.Reason(err), "The files of the shard ") {
		t.Errorf("of a lost range: %v", err)
	}
}

// numberedID returns a new id of the range of a copy, or of another one.
func numberedID(d *DB, copyName string, in bool) string {
	for {
		id := meta.NewDatabaseID()
		if name := hex.EncodeToString(id[:]); (d.meta.CopyName(d.routing.ShardOf(name).Range) == copyName) == in {
			return name
		}
	}
}

// TestCopiesAreMadeWithTheHandle: a crash between the entry in the map and the
// making of the copies is made up for by the first request.
func TestCopiesAreMadeWithTheHandle(t *testing.T) {
	w := start(t, setup{still: true})
	d := w.create("db", CreateOptions{Q: 4})
	for _, name := range d.Meta().CopiesOn(node1) {
		if err := w.locals[node1].Copies.Drop(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	w.handles.forget("db") // as after a restart
	put(t, w.open("db"), "a", doc.Rev{}, `{}`)
}

package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"divan/cluster"
	"divan/cluster/attachment"
	"divan/httpapi/apitest"
	"divan/replicator/endpoint"
	"divan/replicator/local"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

func user(name string, roles ...string) shard.User { return shard.User{Name: name, Roles: roles} }

// upload stores content for an edit in a.
func (w *world) upload(t *testing.T, id, name, contentType string, content []byte) shard.EditAttachment {
	t.Helper()
	return w.uploadTo(t, "a", id, attachment.Options{Name: name, ContentType: contentType}, content)
}

// uploadTo stores content for an edit.
func (w *world) uploadTo(t *testing.T, db, id string, o attachment.Options, content []byte) shard.EditAttachment {
	t.Helper()
	o.Length = int64(len(content))
	a, err := w.db(t, db).Upload(t.Context(), id, o, bytes.NewReader(content))
	apitest.Must(t, err)
	return a
}

func noise(n int) []byte {
	out := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(out) // never fails
	return out
}

// same compares all leaves of the two databases.
func (w *world) same(t *testing.T) {
	t.Helper()
	if got, want := w.leaves(t, "b"), w.leaves(t, "a"); !slices.Equal(got, want) {
		t.Fatalf("differ:\n%s\n\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestReplicateAttachments(t *testing.T) {
	w := newWorld(t, 2)
	from, to := w.opener.Open("a", local.Of(admin())), w.opener.Open("b", local.Of(admin()))
	text := bytes.Repeat([]byte("to be compressed "), 40000)
	atts := []shard.EditAttachment{
		w.upload(t, "d", "empty", "image/png", nil),
		w.upload(t, "d", "small", "text/plain", []byte("small")),
		w.upload(t, "d", "large", "image/png", noise(3<<20)),
		w.upload(t, "d", "text", "text/plain", text),
	}
	first := w.put(t, "a", shard.Edit{ID: "d", Body: []byte(`{}`), Atts: atts}, shard.Edit{ID: "plain", Body: []byte(`{}`)})
	out, err := replicate(t.Context(), from, to, "", 10)
	apitest.Must(t, err)
	if out.written != 2 {
		t.Errorf("written: %+v", out)
	}
	w.same(t)
	stub := func(name string) shard.EditAttachment {
		a := shard.EditAttachment{Stub: true}
		a.Name = name
		return a
	}
	w.put(t, "a", shard.Edit{ID: "d", Parent: first[0].Rev, Body: []byte(`{"n":2}`), Atts: []shard.EditAttachment{
		stub("large"), stub("text"), w.upload(t, "d", "new", "text/plain", []byte("new")),
	}})
	var stubs, carried int
	asked := []endpoint.Wanted{{ID: "d", Revs: w.revs(t, "a", "d"), Ancestors: []doc.Rev{first[0].Rev}}}
	count := func(d *endpoint.Doc, _ endpoint.Contents) error {
		for i := range d.Atts {
			if d.Atts[i].Stub {
				stubs++
			} else if d.Atts[i].Data != nil {
				carried++
			}
		}
		return nil
	}
	apitest.Must(t, from.Fetch(t.Context(), endpoint.FetchOptions{}, asked, count))
	if stubs != 2 || carried != 1 {
		t.Errorf("%d stubs, %d carried", stubs, carried)
	}
	out, err = replicate(t.Context(), from, to, out.last, 10)
	apitest.Must(t, err)
	if out.written != 1 || len(out.refused) != 0 {
		t.Errorf("only stubs: %+v", out)
	}
	w.same(t)
}

// Of a document with very many small attachments not all are held at once.
func TestManySmallAttachments(t *testing.T) {
	const size, most = 60 << 10, 1 << 20
	w := newWorld(t, 2)
	from, to := w.opener.Open("a", local.Of(admin())), w.opener.Open("b", local.Of(admin()))
	edit := shard.Edit{ID: "d", Body: []byte(`{}`)}
	for i := range 40 {
		edit.Atts = append(edit.Atts, w.upload(t, "d", fmt.Sprint(i), "image/png", noise(size+i)))
	}
	w.put(t, "a", edit)
	asked := []endpoint.Wanted{{ID: "d", Revs: w.revs(t, "a", "d")}}
	carried := 0
	apitest.Must(t, from.Fetch(t.Context(), endpoint.FetchOptions{}, asked, func(d *endpoint.Doc, _ endpoint.Contents) error {
		for i := range d.Atts {
			carried += len(d.Atts[i].Data)
		}
		return nil
	}))
	if carried <= most-2*size || carried > most {
		t.Errorf("%d bytes are held", carried)
	}
	_, err := replicate(t.Context(), from, to, "", 10)
	apitest.Must(t, err)
	w.same(t)
}

// Documents that are too much together are read one after the other.
func TestLargeDocumentsAreReadInParts(t *testing.T) {
	w := newWorld(t, 2)
	const docs = 40
	body := append(append([]byte(`{"text":"`), bytes.Repeat([]byte("x"), 1<<20)...), `"}`...)
	var wanted []endpoint.Wanted
	var list []cluster.OpenRevsOptions
	for n := range docs {
		id := fmt.Sprint("d", n)
		rev := w.put(t, "a", shard.Edit{ID: id, Body: body})[0].Rev
		wanted = append(wanted, endpoint.Wanted{ID: id, Revs: []doc.Rev{rev}})
		list = append(list, cluster.OpenRevsOptions{ID: id, Revs: []doc.Rev{rev}, R: 1, MaxBytes: 4 << 20})
	}
	got, errs := w.db(t, "a").OpenRevsMany(t.Context(), list)
	read := 0
	for i := range got {
		switch {
		case errs[i] == nil && len(got[i][0].Doc.Body) == len(body):
			read++
		case !fault.Is(errs[i], fault.RequestTooLarge):
			t.Errorf("%s: %v", list[i].ID, errs[i])
		}
	}
	if read < 4 || read > 6 {
		t.Errorf("%d read at once", read)
	}
	came := map[string]bool{}
	apitest.Must(t, w.opener.Open("a", local.Of(admin())).Fetch(t.Context(), endpoint.FetchOptions{}, wanted, func(d *endpoint.Doc, _ endpoint.Contents) error {
		came[d.ID] = len(d.Body) == len(body)
		return nil
	}))
	if len(came) != docs {
		t.Errorf("%d came", len(came))
	}
}

// TestLargeBranchesAreReadAlone: a document of which the wanted revisions have more than is read
// together is read a revision at a time, and each comes once.
func TestLargeBranchesAreReadAlone(t *testing.T) {
	w := newWorld(t, 1)
	const leaves, size = 20, 1 << 20
	body := []byte(`{"s":"` + strings.Repeat("x", size) + `"}`)
	var wanted []doc.Rev
	for i := range leaves {
		rev := doc.Rev{Pos: 1, ID: fmt.Sprintf("%032x", i+1)}
		res, err := w.db(t, "a").Update(t.Context(), cluster.UpdateOptions{User: admin()}, []shard.Edit{
			{ID: "many", Path: doc.Path{Start: 1, IDs: []string{rev.ID}}, Body: body},
		})
		apitest.Must(t, errors.Join(err, res[0].Err))
		wanted = append(wanted, rev)
	}
	w.put(t, "a", shard.Edit{ID: "small", Body: []byte("{}")})
	came := map[string]int{}
	apitest.Must(t, w.opener.Open("a", local.Of(admin())).Fetch(t.Context(), endpoint.FetchOptions{},
		[]endpoint.Wanted{{ID: "many", Revs: wanted}, {ID: "small", Revs: w.revs(t, "a", "small")}},
		func(d *endpoint.Doc, _ endpoint.Contents) error {
			came[d.ID]++
			return nil
		}))
	if came["many"] != leaves || came["small"] != 1 {
		t.Errorf("%v came", came)
	}
}

// revs returns the leaves of a document.
func (w *world) revs(t *testing.T, db, id string) []doc.Rev {
	t.Helper()
	all, err := w.db(t, db).OpenRevs(t.Context(), cluster.OpenRevsOptions{ID: id, All: true})
	apitest.Must(t, err)
	var out []doc.Rev
	for _, r := range all {
		out = append(out, r.Rev)
	}
	return out
}

// A stub whose content the target does not have refuses its document alone.
func TestMissingStubIsRefusedAlone(t *testing.T) {
	w := newWorld(t, 1)
	to := w.opener.Open("b", local.Of(admin()))
	att := endpoint.Attachment{Stub: true}
	att.Name, att.RevPos = "x", 1
	docs := []*endpoint.Doc{
		{ID: "a", Path: doc.Path{Start: 1, IDs: []string{"r"}}, Body: []byte("{}")},
		{ID: "b", Path: doc.Path{Start: 2, IDs: []string{"r", "q"}}, Body: []byte("{}"), Atts: []endpoint.Attachment{att}},
		{ID: "c", Path: doc.Path{Start: 1, IDs: []string{"r"}}, Body: []byte("{}")},
	}
	refused, err := to.Write(t.Context(), docs)
	apitest.Must(t, err)
	if len(refused) != 1 || refused[0].ID != "b" || refused[0].Rev != docs[1].Path.Rev() || !fault.Is(refused[0].Err, fault.MissingStub) {
		t.Errorf("refused: %+v", refused)
	}
	missing, err := to.Missing(t.Context(), []shard.IDRevs{
		{ID: "a", Revs: []doc.Rev{docs[0].Path.Rev()}}, {ID: "b", Revs: []doc.Rev{docs[1].Path.Rev()}}, {ID: "c", Revs: []doc.Rev{docs[2].Path.Rev()}},
	})
	if err != nil || len(missing) != 1 || missing[0].ID != "b" {
		t.Errorf("missing: %+v, %v", missing, err)
	}
}

// What is no content at all, or not that one, is refused with its document.
func TestContentsAreChecked(t *testing.T) {
	w := newWorld(t, 1)
	to := w.opener.Open("b", local.Of(admin()))
	att := endpoint.Attachment{Data: []byte("something")}
	att.Name, att.Digest = "x", [16]byte{1}
	d := &endpoint.Doc{ID: "a", Path: doc.Path{Start: 1, IDs: []string{"r"}}, Body: []byte("{}"), Atts: []endpoint.Attachment{att}}
	refused, err := to.Write(t.Context(), []*endpoint.Doc{d})
	if err != nil || len(refused) != 1 || !fault.Is(refused[0].Err, fault.BadRequest) {
		t.Errorf("another digest: %+v, %v", refused, err)
	}
	w.Config.SetVolatile("couchdb", "max_attachment_size", "8")
	d.Atts[0].Digest = [16]byte{}
	refused, err = to.Write(t.Context(), []*endpoint.Doc{d})
	if err != nil || len(refused) != 1 || !fault.Is(refused[0].Err, fault.AttachmentTooLarge) {
		t.Errorf("too large: %+v, %v", refused, err)
	}
	broken := errors.New("cut")
	d.Atts[0].Data = nil
	if err := to.WriteWith(t.Context(), d, failing{broken}); !errors.Is(err, broken) {
		t.Errorf("a source that breaks off: %v", err)
	}
}

// failing is contents that cannot be read.
type failing struct{ err error }

func (f failing) Next(context.Context) (io.ReadCloser, error) { return nil, f.err }

// The rules of the API hold for every account that replicates.
func TestAccountsMeetTheRules(t *testing.T) {
	w := newWorld(t, 1)
	apitest.Must(t, w.db(t, "a").SetSecurity(t.Context(), []byte(`{"members":{"names":["rosa"],"roles":[]},"admins":{"names":["ada"],"roles":[]}}`)))
	info := func(name string, u shard.User) error {
		_, err := w.opener.Open(name, local.Of(u)).Info(t.Context())
		return err
	}
	for _, tc := range []struct {
		name string
		user shard.User
		want fault.Kind
	}{
		{"a", user("rosa"), 0},
		{"a", user("ada"), 0},
		{"a", admin(), 0},
		{"a", user("karl"), fault.Forbidden},
		{"a", shard.User{Anonymous: true}, fault.Unauthorized},
		{"none", admin(), fault.NoDatabase},
	} {
		if err := info(tc.name, tc.user); fault.KindOf(err) != tc.want {
			t.Errorf("%s as %s: %v", tc.name, tc.user.Name, err)
		}
	}
	for _, name := range []string{"_users", "_replicator"} {
		if _, err := w.opener.Open(name, local.Of(user("rosa"))).Changes(t.Context(), endpoint.ChangesQuery{}); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("changes of %s: %v", name, err)
		}
	}
	if err := w.opener.Open("new", local.Of(user("rosa"))).Create(t.Context(), endpoint.CreateOptions{}); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("create: %v", err)
	}
	created := w.opener.Open("new", local.Of(admin()))
	for range 2 { // one that is there already is no error
		apitest.Must(t, created.Create(t.Context(), endpoint.CreateOptions{Query: [][2]string{{"q", "3"}, {"partitioned", "true"}}}))
	}
	if got := w.db(t, "new").Meta(); !got.Partitioned || len(got.Shards) != 3 {
		t.Errorf("created: %+v", got)
	}
	refusals := func(name string, u shard.User, id, body string) fault.Kind {
		d := &endpoint.Doc{ID: id, Path: doc.Path{Start: 1, IDs: []string{"r" + fmt.Sprint(rand.Uint64())}}, Body: []byte(body)}
		refused, err := w.opener.Open(name, local.Of(u)).Write(t.Context(), []*endpoint.Doc{d})
		apitest.Must(t, err)
		if len(refused) == 0 {
			return 0
		}
		return fault.KindOf(refused[0].Err)
	}
	apitest.Must(t, w.put(t, "a", shard.Edit{ID: "_design/v", Body: []byte(
		`{"validate_doc_update":"function (d, o, u) { if (d.bad && u.name != 'ada') { throw({forbidden: 'no'}); } }"}`)})[0].Err)
	w.Config.SetVolatile("couchdb", "max_document_size", "100")
	for _, tc := range []struct {
		db   string
		user shard.User
		id   string
		body string
		want fault.Kind
	}{
		{"a", user("rosa"), "d", `{}`, 0},
		{"a", user("rosa"), "_design/x", `{}`, fault.Forbidden},
		{"a", user("ada"), "_design/x", `{}`, 0},
		{"a", user("ada"), "_design/y", `{"views":5}`, fault.InvalidDesignDoc},
		{"a", user("rosa"), "e", `{"bad":1}`, fault.Forbidden},
		{"a", user("ada"), "e", `{"bad":1}`, 0},
		{"a", user("rosa"), "_odd", `{}`, fault.IllegalDocID},
		{"a", user("rosa"), "large", `{"t":"` + strings.Repeat("x", 100) + `"}`, fault.DocumentTooLarge},
		{"new", admin(), "nopart", `{}`, fault.IllegalDocID},
		{"new", admin(), "part:x", `{}`, 0},
		{"_replicator", admin(), "r", `{"source":5}`, fault.Forbidden},
		{"_users", admin(), "org.couchdb.user:x", `{"name":"y","type":"user","roles":[]}`, fault.Forbidden},
	} {
		if got := refusals(tc.db, tc.user, tc.id, tc.body); got != tc.want {
			t.Errorf("%s in %s as %s: kind %d, want %d", tc.id, tc.db, tc.user.Name, got, tc.want)
		}
	}
	if got := refusals("_users", admin(), "org.couchdb.user:zoe", `{"name":"zoe","type":"user","roles":[],"password":"x"}`); got != 0 {
		t.Errorf("a user: kind %d", got)
	}
	for _, leaf := range w.leaves(t, "_users") {
		if strings.Contains(leaf, `"password":`) {
			t.Errorf("a password as it came: %s", leaf)
		}
	}
}

// A change of the security object ends a feed that waits.
func TestFeedOfALostRight(t *testing.T) {
	w := newWorld(t, 2)
	apitest.Must(t, w.db(t, "a").SetSecurity(t.Context(), []byte(`{"members":{"names":["rosa"]}}`)))
	feed, err := w.opener.Open("a", local.Of(user("rosa"))).Changes(t.Context(), endpoint.ChangesQuery{Continuous: true})
	apitest.Must(t, err)
	defer feed.Close()
	w.put(t, "a", shard.Edit{ID: "x", Body: []byte("{}")})
	rows := make([]endpoint.Change, 4)
	if n, err := feed.Next(t.Context(), rows); err != nil || n != 1 || rows[0].ID != "x" || rows[0].Seq != feed.Last() {
		t.Fatalf("%d rows: %+v, %v", n, rows[0], err)
	}
	apitest.Must(t, w.db(t, "a").SetSecurity(t.Context(), []byte(`{"members":{"names":["ada"]}}`)))
	w.put(t, "a", shard.Edit{ID: "y", Body: []byte("{}")})
	if n, err := feed.Next(t.Context(), rows); !fault.Is(err, fault.Forbidden) {
		t.Errorf("%d rows, %v", n, err)
	}
}

// So does the end of the account.
func TestFeedOfALostAccount(t *testing.T) {
	w := newWorld(t, 2)
	apitest.Must(t, w.db(t, "a").SetSecurity(t.Context(), []byte(`{"members":{"names":["rosa"]}}`)))
	gone := fault.New(fault.Unauthorized, "Name or password is incorrect.")
	var lost error
	db := w.opener.Open("a", func(context.Context) (shard.User, error) { return user("rosa"), lost })
	feed, err := db.Changes(t.Context(), endpoint.ChangesQuery{Continuous: true})
	apitest.Must(t, err)
	defer feed.Close()
	w.put(t, "a", shard.Edit{ID: "x", Body: []byte("{}")})
	rows := make([]endpoint.Change, 4)
	if n, err := feed.Next(t.Context(), rows); err != nil || n != 1 {
		t.Fatalf("%d rows, %v", n, err)
	}
	lost = gone
	w.put(t, "a", shard.Edit{ID: "y", Body: []byte("{}")})
	if n, err := feed.Next(t.Context(), rows); !errors.Is(err, gone) {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := db.Write(t.Context(), nil); !errors.Is(err, gone) {
		t.Errorf("a write: %v", err)
	}
}

func TestFilters(t *testing.T) {
	w := newWorld(t, 3)
	edits := []shard.Edit{{ID: "_design/f", Body: []byte(
		`{"filters":{"odd":"function (d, r) { return d.n % 2 == r.query.rest; }"},"views":{"v":{"map":"function (d) { if (d.n == 7) { emit(1); } }"}}}`)}}
	for n := range 10 {
		edits = append(edits, shard.Edit{ID: fmt.Sprint("d", n), Body: fmt.Appendf(nil, `{"n":%d}`, n)})
	}
	w.put(t, "a", edits...)
	from := w.opener.Open("a", local.Of(admin()))
	for want, f := range map[string]endpoint.Filter{
		"d1 d3 d5 d7 d9": {Function: "f/odd", Query: [][2]string{{"rest", "1"}}},
		"d0 d2 d4 d6 d8": {Function: "f/odd", Query: [][2]string{{"rest", "0"}}},
		"d7":             {Function: "_view", Query: [][2]string{{"view", "f/v"}}},
		"_design/f":      {Function: "_design"},
		"d1 d2":          {DocIDs: []string{"d1", "d2", "zz"}, HasIDs: true},
		"":               {HasIDs: true},
		"d8 d9":          {Selector: []byte(`{"n":{"$gt":7}}`)},
	} {
		feed, err := from.Changes(t.Context(), endpoint.ChangesQuery{Filter: f})
		apitest.Must(t, err)
		var ids []string
		rows := make([]endpoint.Change, 3)
		for {
			n, err := feed.Next(t.Context(), rows)
			for _, r := range rows[:n] {
				ids = append(ids, r.ID)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			apitest.Must(t, err)
		}
		slices.Sort(ids)
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
		if n, err := from.Pending(t.Context(), feed.Last()); n != 0 || err != nil {
			t.Errorf("%+v: %d behind the end, %v", f, n, err)
		}
		feed.Close()
	}
	if n, err := from.Pending(t.Context(), ""); n != 11 || err != nil {
		t.Errorf("%d pending, %v", n, err)
	}
	if _, err := from.Changes(t.Context(), endpoint.ChangesQuery{Filter: endpoint.Filter{Function: "f/none"}}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a filter that is not there: %v", err)
	}
	text, err := from.Design(t.Context(), "_design/f")
	if err != nil || doc.Lookup(text, "filters") == nil {
		t.Errorf("%s, %v", text, err)
	}
}

func TestCheckpoints(t *testing.T) {
	w := newWorld(t, 1)
	d := w.opener.Open("a", local.Of(admin()))
	if _, _, err := d.Local(t.Context(), "cp"); !fault.Is(err, fault.NotFound) {
		t.Errorf("none: %v", err)
	}
	rev := ""
	for n := range 3 {
		var err error
		rev, err = d.PutLocal(t.Context(), "cp", rev, fmt.Appendf(nil, `{"n":%d}`, n))
		apitest.Must(t, err)
		body, got, err := d.Local(t.Context(), "cp")
		if err != nil || got != rev || rev != fmt.Sprint("0-", n+1) || string(body) != fmt.Sprintf(`{"n":%d}`, n) {
			t.Errorf("%s %s, %s, %v", body, got, rev, err)
		}
	}
	in, err := d.Info(t.Context())
	apitest.Must(t, err)
	start, err := d.Commit(t.Context())
	if err != nil || start != in.InstanceStart || in.Name != "a" || in.Documents != 0 {
		t.Errorf("%s, %+v, %v", start, in, err)
	}
}

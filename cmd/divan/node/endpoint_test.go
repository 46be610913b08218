package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/remote"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/fault"
)

// peer is what tests of endpoints reach other nodes with.
type peer struct {
	t       *testing.T
	network *remote.Network
}

func peers(t *testing.T) *peer {
	t.Helper()
	network, err := remote.NewNetwork(remote.NetworkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.Close)
	return &peer{t, network}
}

// open returns a database of a node as another server sees it.
func (p *peer) open(h *testNode, db, user, password string) *remote.Database {
	p.t.Helper()
	d, err := remote.New(remote.Options{
		Network:   p.network,
		Address:   spec.Address{URL: fmt.Sprintf("http://%s/%s/", h.node.Addr(), db), Username: user, Password: password},
		Options:   spec.Options{Connections: 4, ConnectionTimeout: patience, Retries: 1},
		UserAgent: "test",
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = d.Close() })
	return d
}

// copyAll brings everything behind since from one database to another, and
// returns how far it came and how many revisions were written.
func copyAll(ctx context.Context, src endpoint.Source, dst endpoint.Target, q endpoint.ChangesQuery, o endpoint.FetchOptions) (endpoint.Seq, int, error) {
	feed, err := src.Changes(ctx, q)
	if err != nil {
		return "", 0, err
	}
	defer feed.Close()
	rows, written := make([]endpoint.Change, 7), 0
	for {
		n, err := feed.Next(ctx, rows)
		if errors.Is(err, io.EOF) {
			return feed.Last(), written, nil
		}
		if err != nil {
			return "", written, err
		}
		var ids []shard.IDRevs
		for _, c := range rows[:n] {
			ids = append(ids, shard.IDRevs{ID: c.ID, Revs: c.Revs})
		}
		missing, err := dst.Missing(ctx, ids)
		if err != nil {
			return "", written, err
		}
		var wanted []endpoint.Wanted
		for _, m := range missing {
			wanted = append(wanted, endpoint.Wanted{ID: m.ID, Revs: m.Missing, Ancestors: m.PossibleAncestors})
		}
		var batch []*endpoint.Doc
		err = src.Fetch(ctx, o, wanted, func(d *endpoint.Doc, c endpoint.Contents) error {
			written++
			if d.Follows() {
				return dst.WriteWith(ctx, d, c)
			}
			batch = append(batch, d)
			return nil
		})
		if err != nil {
			return "", written, err
		}
		refused, err := dst.Write(ctx, batch)
		if err != nil {
			return "", written, err
		}
		for _, r := range refused {
			return "", written, fmt.Errorf("%s %s: %w", r.ID, r.Rev, r.Err)
		}
	}
}

// leaves is everything that is in a database, as one text.
func (h *testNode) leaves(db string) string {
	h.t.Helper()
	var b strings.Builder
	for line := range strings.SplitSeq(h.ask("GET", "/"+db+"/_changes?feed=continuous&timeout=0&style=all_docs", ""), "\n") {
		_, id, ok := strings.Cut(line, `"id":"`)
		if !ok {
			continue
		}
		id, _, _ = strings.Cut(id, `","changes"`)
		if err := json.Unmarshal([]byte(`"`+id+`"`), &id); err != nil {
			h.t.Fatal(err)
		}
		path := strings.NewReplacer("+", "%2B", "_design%2F", "_design/").Replace(url.PathEscape(id))
		r := h.request("GET", h.url("/"+db+"/"+path+"?open_revs=all&revs=true&attachments=true&att_encoding_info=true"), "")
		r.Header.Set("Accept", "application/json")
		res, err := h.client.Do(r)
		if err != nil {
			h.t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
			h.t.Fatal(id, res.Status, err)
		}
		b.WriteString(id + " " + strings.TrimSpace(string(text)) + "\n")
	}
	return b.String()
}

// fill writes documents of every kind.
func (h *testNode) fill(db string) {
	h.t.Helper()
	const branch = `"_revisions":{"start":%d,"ids":[%s]}`
	a, b, c := `"`+strings.Repeat("a", 32)+`"`, `"`+strings.Repeat("b", 32)+`"`, `"`+strings.Repeat("c", 32)+`"`
	h.want("PUT", "/"+db+"?q=2", "", "201")
	h.want("POST", "/"+db+"/_bulk_docs", `{"new_edits":false,"docs":[{"_id":"conflict","v":1,`+fmt.Sprintf(branch, 3, c+","+b+","+a)+`},
		{"_id":"conflict","v":2,`+fmt.Sprintf(branch, 2, c+","+a)+`},{"_id":"conflict","_deleted":true,`+fmt.Sprintf(branch, 2, a+","+a)+`},
		{"_id":"gone","why":"because","_deleted":true,`+fmt.Sprintf(branch, 1, a)+`}]}`, "201 []")
	for i, id := range []string{"a%2Fb", "a+b", "a%2Bb c", "%C3%BC%E2%82%AC%F0%9F%98%80", "%25%22%5C?x=1&", "_design/d"} {
		id, _, _ = strings.Cut(id, "?")
		h.want("PUT", "/"+db+"/"+id, fmt.Sprintf(`{"n":%d,"text":"\u0000\ud83d\ude00\u20ac"}`, i), "201")
	}
	h.want("PUT", "/"+db+"/small", `{"_attachments":{"a/b é.txt":{"content_type":"text/plain","data":"aGVsbG8gaGVsbG8gaGVsbG8="},"b.bin":{"data":"AAEC"},"empty":{"data":""}}}`, "201")
	rev := revIn(h.t, h.ask("PUT", "/"+db+"/grown", `{"_attachments":{"old.bin":{"data":"AAEC"}}}`))
	h.want("PUT", "/"+db+"/grown/large.bin?rev="+rev, strings.Repeat("0123456789abcdef", 1<<16), "201")
	for i := range 30 {
		h.want("PUT", fmt.Sprintf("/%s/doc%d", db, i), fmt.Sprintf(`{"n":%d}`, i), "201")
	}
}

func TestRemoteEndpoints(t *testing.T) {
	h := start(t, inMemory(t))
	h.fill("one")
	p, ctx := peers(t), t.Context()
	for _, bulk := range []bool{true, false} {
		name := fmt.Sprint("bulk_", bulk)
		src, dst := p.open(h, "one", "adm", "pass"), p.open(h, name, "adm", "pass")
		if _, err := dst.Info(ctx); !fault.Is(err, fault.NoDatabase) || fault.Reason(err) != fmt.Sprintf("could not open http://%s/%s/", h.node.Addr(), name) {
			t.Fatalf("no database: %v", err)
		}
		for range 2 {
			if err := dst.Create(ctx, endpoint.CreateOptions{Query: [][2]string{{"q", "1"}}}); err != nil {
				t.Fatal(err)
			}
		}
		last, n, err := copyAll(ctx, src, dst, endpoint.ChangesQuery{Batch: 5}, endpoint.FetchOptions{NoBulkGet: !bulk})
		if err != nil || n != 42 {
			t.Fatalf("copied %d: %v", n, err)
		}
		if got, want := h.leaves(name), h.leaves("one"); len(strings.Split(got, "\n")) != 41 || !sameLines(got, want) {
			t.Errorf("after replication:\n%s\nwant:\n%s", got, want)
		}
		if pending, err := src.Pending(ctx, last); err != nil || pending != 0 {
			t.Errorf("pending: %d, %v", pending, err)
		}
		if pending, err := src.Pending(ctx, ""); err != nil || pending != 40 {
			t.Errorf("pending from the start: %d, %v", pending, err)
		}
		_, n, err = copyAll(ctx, src, dst, endpoint.ChangesQuery{Since: last}, endpoint.FetchOptions{})
		if err != nil || n != 0 {
			t.Errorf("copied %d again: %v", n, err)
		}
	}
	info, err := p.open(h, "one", "adm", "pass").Info(ctx)
	if err != nil || info.Name != "one" || info.Documents != 40 || info.InstanceStart == "" || info.UpdateSeq == "" {
		t.Errorf("info: %+v, %v", info, err)
	}
	started, err := p.open(h, "one", "adm", "pass").Commit(ctx)
	if err != nil || started != info.InstanceStart {
		t.Errorf("commit: %q, %v", started, err)
	}
}

// sameLines compares texts whose lines may come in any order.
func sameLines(a, b string) bool {
	count := map[string]int{}
	for line := range strings.SplitSeq(a, "\n") {
		count[line]++
	}
	for line := range strings.SplitSeq(b, "\n") {
		count[line]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// A revision whose attachment the target has brings only the new one.
func TestRemoteStubs(t *testing.T) {
	h := start(t, inMemory(t))
	p, ctx := peers(t), t.Context()
	h.want("PUT", "/one", "", "201")
	rev := revIn(t, h.ask("PUT", "/one/doc", `{"_attachments":{"old.txt":{"content_type":"text/plain","data":"aGVsbG8="}}}`))
	src, dst := p.open(h, "one", "adm", "pass"), p.open(h, "two", "adm", "pass")
	if err := dst.Create(ctx, endpoint.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	last, _, err := copyAll(ctx, src, dst, endpoint.ChangesQuery{}, endpoint.FetchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rev = revIn(t, h.ask("PUT", "/one/doc/new.txt?rev="+rev, "new"))
	h.want("PUT", "/one/doc", fmt.Sprintf(`{"_rev":%q,"v":3,"_attachments":{"old.txt":{"stub":true},"new.txt":{"stub":true}}}`, rev), "201")
	feed, err := src.Changes(ctx, endpoint.ChangesQuery{Since: last})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	rows := make([]endpoint.Change, 1)
	if n, err := feed.Next(ctx, rows); n != 1 || err != nil {
		t.Fatalf("%d rows, %v", n, err)
	}
	missing, err := dst.Missing(ctx, []shard.IDRevs{{ID: "doc", Revs: rows[0].Revs}})
	if err != nil || len(missing) != 1 || len(missing[0].PossibleAncestors) != 1 {
		t.Fatalf("missing: %v, %v", missing, err)
	}
	w := []endpoint.Wanted{{ID: "doc", Revs: missing[0].Missing, Ancestors: missing[0].PossibleAncestors}}
	err = src.Fetch(ctx, endpoint.FetchOptions{}, w, func(d *endpoint.Doc, c endpoint.Contents) error {
		for _, a := range d.Atts {
			if a.Stub != (a.Name == "old.txt") {
				t.Errorf("%s: stub is %v", a.Name, a.Stub)
			}
		}
		return dst.WriteWith(ctx, d, c)
	})
	if err != nil || h.leaves("one") != h.leaves("two") {
		t.Errorf("%v: %s, want %s", err, h.leaves("two"), h.leaves("one"))
	}
	if err := dst.Create(ctx, endpoint.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.want("PUT", "/three", "", "201")
	three := p.open(h, "three", "adm", "pass")
	err = src.Fetch(ctx, endpoint.FetchOptions{}, w, func(d *endpoint.Doc, c endpoint.Contents) error { return three.WriteWith(ctx, d, c) })
	if !fault.Is(err, fault.MissingStub) {
		t.Errorf("a target without the old attachment: %v", err)
	}
	err = src.Fetch(ctx, endpoint.FetchOptions{WholeAttachments: true}, w, func(d *endpoint.Doc, c endpoint.Contents) error { return three.WriteWith(ctx, d, c) })
	if err != nil || h.leaves("one") != h.leaves("three") {
		t.Errorf("%v: %s, want %s", err, h.leaves("three"), h.leaves("one"))
	}
}

func TestRemoteAccounts(t *testing.T) {
	h := start(t, inMemory(t))
	h.want("PUT", "/one", "", "201")
	h.want("PUT", "/_users/org.couchdb.user:rita", `{"name":"rita","type":"user","roles":[],"password":"rice"}`, "201")
	p, ctx := peers(t), t.Context()
	address := fmt.Sprintf("http://%s/one/", h.node.Addr())
	for _, tc := range []struct{ user, password, code, reason string }{
		{"", "", "", "unauthorized to access or create database " + address},
		{"nobody", "wrong", endpoint.CodeAuth, "Name or password is incorrect"},
		{"adm", "wrong", endpoint.CodeAuth, "Name or password is incorrect"},
	} {
		d := p.open(h, "one", tc.user, tc.password)
		_, err := d.Info(ctx)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Unauthorized || f.Code != tc.code || !strings.Contains(f.Reason, tc.reason) {
			t.Errorf("%s: %v", tc.user, err)
		}
		if err = d.Create(ctx, endpoint.CreateOptions{}); !errors.As(err, &f) || f.Code != tc.code {
			t.Errorf("create as %q: %v", tc.user, err)
		}
	}
	rita := p.open(h, "two", "rita", "rice")
	if err := rita.Create(ctx, endpoint.CreateOptions{}); fault.Reason(err) != fmt.Sprintf("unauthorized to access or create database http://%s/two/", h.node.Addr()) {
		t.Errorf("create as rita: %v", err)
	}
	if _, err := rita.Info(ctx); !fault.Is(err, fault.NoDatabase) {
		t.Errorf("open as rita: %v", err)
	}
	capital := p.open(h, "Capital", "adm", "pass")
	if err := capital.Create(ctx, endpoint.CreateOptions{}); err != nil {
		t.Errorf("create with a bad name: %v", err)
	}
	if _, err := capital.Info(ctx); !fault.Is(err, fault.NoDatabase) {
		t.Errorf("open with a bad name: %v", err)
	}
}

func TestRemoteLocalDocs(t *testing.T) {
	h := start(t, inMemory(t))
	h.want("PUT", "/one", "", "201")
	d, ctx := peers(t).open(h, "one", "adm", "pass"), t.Context()
	const id = "0123+continuous/x"
	if _, _, err := d.Local(ctx, id); !fault.Is(err, fault.NotFound) {
		t.Fatalf("none yet: %v", err)
	}
	first, err := d.PutLocal(ctx, id, "", []byte(`{"a":1}`))
	if err != nil || first != "0-1" {
		t.Fatalf("put: %q, %v", first, err)
	}
	if _, err = d.PutLocal(ctx, id, first, []byte(`{"a":2}`)); err != nil {
		t.Fatal(err)
	}
	body, rev, err := d.Local(ctx, id)
	if err != nil || string(body) != `{"a":2}` || rev != "0-2" {
		t.Errorf("%s %s %v", body, rev, err)
	}
	if _, err := d.PutLocal(ctx, "bare", "", []byte(`{}`)); err != nil {
		t.Error(err)
	}
	if body, _, err := d.Local(ctx, "bare"); err != nil || string(body) != "{}" {
		t.Errorf("%s, %v", body, err)
	}
}

func TestRemoteFilters(t *testing.T) {
	h := start(t, inMemory(t))
	h.fill("one")
	h.want("PUT", "/one/_design/f", `{"filters":{"n":"function (doc, req) { return doc.n == req.query.n; }"}}`, "201")
	d, ctx := peers(t).open(h, "one", "adm", "pass"), t.Context()
	for _, tc := range []struct {
		filter endpoint.Filter
		want   string
	}{
		{endpoint.Filter{HasIDs: true, DocIDs: []string{"doc3", "a/b", "none"}}, "a/b doc3"},
		{endpoint.Filter{HasIDs: true}, ""},
		{endpoint.Filter{Selector: []byte(`{"n":{"$gt":27}}`)}, "doc28 doc29"},
		{endpoint.Filter{Function: "f/n", Query: [][2]string{{"n", "7"}, {"x", "a b&c"}}}, "doc7"},
		{endpoint.Filter{Function: "_design"}, "_design/d _design/f"},
	} {
		feed, err := d.Changes(ctx, endpoint.ChangesQuery{Filter: tc.filter})
		if err != nil {
			t.Errorf("%+v: %v", tc.filter, err)
			continue
		}
		var ids []string
		rows := make([]endpoint.Change, 100)
		for {
			n, err := feed.Next(ctx, rows)
			if err != nil {
				break
			}
			for _, r := range rows[:n] {
				ids = append(ids, r.ID)
			}
		}
		feed.Close()
		if got := strings.Join(ids, " "); !sameLines(strings.ReplaceAll(got, " ", "\n"), strings.ReplaceAll(tc.want, " ", "\n")) {
			t.Errorf("%+v: %q, want %q", tc.filter, got, tc.want)
		}
		if feed.Last() == "" {
			t.Errorf("%+v: no last sequence", tc.filter)
		}
	}
	if _, err := d.Changes(ctx, endpoint.ChangesQuery{Filter: endpoint.Filter{Function: "none/n"}}); !fault.Is(err, fault.NotFound) || fault.Is(err, fault.NoDatabase) {
		t.Errorf("a filter that is not there: %v", err)
	}
	if text, err := d.Design(ctx, "_design/f"); err != nil || !strings.Contains(string(text), "req.query") {
		t.Errorf("design document: %s, %v", text, err)
	}
	if _, err := d.Design(ctx, "_design/none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("no design document: %v", err)
	}
}

// A continuous feed goes on with what is written while it waits, and its Next
// ends with its context.
func TestRemoteContinuous(t *testing.T) {
	h := start(t, inMemory(t))
	h.want("PUT", "/one", "", "201")
	d := peers(t).open(h, "one", "adm", "pass")
	ctx, cancel := context.WithCancel(t.Context())
	feed, err := d.Changes(ctx, endpoint.ChangesQuery{Continuous: true, Heartbeat: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	rows := make([]endpoint.Change, 10)
	for i := range 5 {
		h.want("PUT", fmt.Sprintf("/one/doc%d", i), "{}", "201")
		if n, err := feed.Next(ctx, rows); n != 1 || err != nil || rows[0].ID != fmt.Sprint("doc", i) || rows[0].Seq == "" || feed.Last() != rows[0].Seq {
			t.Fatalf("%d %v %+v", n, err, rows[0])
		}
	}
	stopped := time.AfterFunc(20*time.Millisecond, cancel)
	defer stopped.Stop()
	if _, err := feed.Next(ctx, rows); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
}

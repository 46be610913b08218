package local_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"divan/cluster"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
	httplocal "divan/httpapi/local"
	"divan/replicator/endpoint"
	"divan/replicator/local"
	"divan/shard"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a node with databases a and b.
type world struct {
	core.Deps
	api    *core.API
	opener *local.Opener
}

func newWorld(tb testing.TB, q int) *world {
	tb.Helper()
	d := apitest.NodeDeps(tb, "divan@127.0.0.1", nil)
	for _, name := range []string{"a", "b"} {
		apitest.Must(tb, d.Coordinator.CreateDB(tb.Context(), name, cluster.CreateOptions{Q: q}))
	}
	api := core.New(d)
	return &world{Deps: d, api: api, opener: local.New(local.Options{
		Coordinator: d.Coordinator, Access: httplocal.Access{API: api},
	})}
}

func admin() shard.User { return shard.User{Name: "adm", Roles: []string{shard.AdminRole}} }

// db returns a database to write to beside the endpoints.
func (w *world) db(tb testing.TB, name string) *cluster.DB {
	tb.Helper()
	d, err := w.Coordinator.DB(tb.Context(), name)
	apitest.Must(tb, err)
	return d
}

// put writes edits of clients.
func (w *world) put(tb testing.TB, name string, edits ...shard.Edit) []shard.EditResult {
	tb.Helper()
	results, err := w.db(tb, name).Update(tb.Context(), cluster.UpdateOptions{NewEdits: true, User: admin()}, edits)
	apitest.Must(tb, err)
	for i := range results {
		apitest.Must(tb, results[i].Err)
	}
	return results
}

// outcome is what a run of replicate has seen.
type outcome struct {
	last    endpoint.Seq
	changes int
	written int
	refused []endpoint.Refused
}

// replicate brings everything behind since to the target, in batches.
func replicate(ctx context.Context, from endpoint.Source, to endpoint.Target, since endpoint.Seq, batch int) (out outcome, err error) {
	feed, err := from.Changes(ctx, endpoint.ChangesQuery{Since: since, Batch: batch})
	if err != nil {
		return out, err
	}
	defer feed.Close()
	rows := make([]endpoint.Change, batch)
	for {
		n, err := feed.Next(ctx, rows)
		if errors.Is(err, io.EOF) {
			out.last = feed.Last()
			return out, nil
		}
		if err == nil {
			out.changes += n
			err = out.bring(ctx, from, to, rows[:n])
		}
		if err != nil {
			return out, err
		}
	}
}

// bring brings what some changes tell of.
func (out *outcome) bring(ctx context.Context, from endpoint.Source, to endpoint.Target, rows []endpoint.Change) error {
	asked := make([]shard.IDRevs, len(rows))
	for i := range rows {
		asked[i] = shard.IDRevs{ID: rows[i].ID, Revs: rows[i].Revs}
	}
	missing, err := to.Missing(ctx, asked)
	if err != nil || len(missing) == 0 {
		return err
	}
	wanted := make([]endpoint.Wanted, len(missing))
	for i, m := range missing {
		wanted[i] = endpoint.Wanted{ID: m.ID, Revs: m.Missing, Ancestors: m.PossibleAncestors}
	}
	var docs []*endpoint.Doc
	err = from.Fetch(ctx, endpoint.FetchOptions{}, wanted, func(d *endpoint.Doc, c endpoint.Contents) error {
		if !d.Follows() {
			docs = append(docs, d)
			return nil
		}
		out.written++
		return to.WriteWith(ctx, d, c)
	})
	if err != nil {
		return err
	}
	refused, err := to.Write(ctx, docs)
	out.written += len(docs) - len(refused)
	out.refused = append(out.refused, refused...)
	return err
}

// leaves lists every leaf of every document of a database, with its body.
func (w *world) leaves(tb testing.TB, name string) []string {
	tb.Helper()
	db := w.db(tb, name)
	feed, err := db.Changes(tb.Context(), cluster.ChangesQuery{Limit: cluster.NoLimit})
	apitest.Must(tb, err)
	defer feed.Close()
	var out []string
	for feed.Next() {
		id := feed.Row().ID
		revs, err := db.OpenRevs(tb.Context(), cluster.OpenRevsOptions{ID: id, All: true, WithPath: true})
		apitest.Must(tb, err)
		for _, r := range revs {
			text := fmt.Sprintf("%s %s %v %s", id, r.Doc.Revisions.AppendJSON(nil), r.Doc.Deleted, r.Doc.Body)
			for i := range r.Doc.Atts {
				a := &r.Doc.Atts[i]
				rd, err := db.ReadAttachment(tb.Context(), id, *a, 0, -1)
				apitest.Must(tb, err)
				content, err := io.ReadAll(rd)
				apitest.Must(tb, errors.Join(err, rd.Close()))
				text += fmt.Sprintf(" %s %s %d %d %x %d", a.Name, a.ContentType, a.RevPos, a.Length, a.Digest, len(content))
			}
			out = append(out, text)
		}
	}
	apitest.Must(tb, feed.Err())
	slices.Sort(out)
	return out
}

func TestReplicateDocuments(t *testing.T) {
	w := newWorld(t, 3)
	from, to := w.opener.Open("a", local.Of(admin())), w.opener.Open("b", local.Of(admin()))
	var edits []shard.Edit
	for i := range 1000 {
		edits = append(edits, shard.Edit{ID: fmt.Sprintf("d%04d", i), Body: []byte(`{"n":1}`)})
	}
	first := w.put(t, "a", edits...)
	w.put(t, "a", shard.Edit{ID: "d0001", Parent: first[1].Rev, Body: []byte(`{"n":2}`)},
		shard.Edit{ID: "d0002", Parent: first[2].Rev, Deleted: true, Body: []byte("{}")},
		shard.Edit{ID: "_design/x", Body: []byte(`{"views":{}}`)})
	conflict := shard.Edit{ID: "d0003", Path: doc.Path{Start: 2, IDs: []string{"other", "root"}}, Body: []byte(`{"n":3}`)}
	_, err := w.db(t, "a").Update(t.Context(), cluster.UpdateOptions{User: admin()}, []shard.Edit{conflict})
	apitest.Must(t, err)
	out, err := replicate(t.Context(), from, to, "", 100)
	apitest.Must(t, err)
	if out.changes != 1001 || out.written != 1002 || len(out.refused) != 0 {
		t.Errorf("%d changes, %d written, %v", out.changes, out.written, out.refused)
	}
	if got, want := w.leaves(t, "b"), w.leaves(t, "a"); !slices.Equal(got, want) {
		t.Errorf("differ:\n%v\n%v", got, want)
	}
	again, err := replicate(t.Context(), from, to, "", 100)
	apitest.Must(t, err)
	if again.changes != 1001 || again.written != 0 {
		t.Errorf("again: %+v", again)
	}
	rest, err := replicate(t.Context(), from, to, out.last, 100)
	apitest.Must(t, err)
	if rest.changes != 0 || rest.last != out.last {
		t.Errorf("rest: %+v, from %s", rest, out.last)
	}
}

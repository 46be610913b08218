package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"divan/cluster/sequence"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// seen is one row of a feed with the sequence the client got with it.
type seen struct {
	id, rev string
	deleted bool
	seq     string
}

// drain reads what a feed has now.
func drain(tb tester, f *Feed) []seen {
	tb.Helper()
	var rows []seen
	for f.Next() {
		r := f.Row()
		rows = append(rows, seen{
			id: strings.Clone(r.ID), rev: r.Leaves[0].String(), deleted: r.Deleted, seq: string(f.AppendSeq(nil)),
		})
	}
	if err := f.Err(); err != nil {
		tb.Fatal(err)
	}
	return rows
}

// changes reads a feed to its end and returns its rows, last sequence and
// pending changes.
func changes(tb tester, d *DB, q ChangesQuery) (rows []seen, last string, pending uint64) {
	tb.Helper()
	f, err := d.Changes(tb.Context(), q)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	rows = drain(tb, f)
	return rows, f.LastSeq(), f.Pending()
}

func since(tb tester, text string) sequence.Seq {
	tb.Helper()
	s, err := sequence.ParseSince(text)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// number returns the N of a sequence.
func number(seq string) string { n, _, _ := strings.Cut(seq, "-"); return n }

// TestChangesOfOneShard follows golden changes/01.
func TestChangesOfOneShard(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 1})
	if rows, last, pending := changes(t, d, ChangesQuery{Limit: NoLimit}); len(rows) != 0 || number(last) != "0" || pending != 0 {
		t.Fatalf("empty: %v, %s, %d", rows, last, pending)
	}
	revs := bulk(t, d, "a", "b")
	put(t, d, "a", revs[0], `{"n":10}`)
	update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "b", Parent: revs[1], Deleted: true, Body: []byte("{}")})
	bulk(t, d, "_design/x", "c", "d")
	all, last, _ := changes(t, d, ChangesQuery{Limit: NoLimit})
	show := func(rows []seen) string {
		var out []string
		for _, r := range rows {
			out = append(out, number(r.seq)+r.id+map[bool]string{true: "-"}[r.deleted])
		}
		return strings.Join(out, " ")
	}
	for _, tc := range []struct {
		name    string
		q       ChangesQuery
		want    string
		last    string
		pending uint64
	}{
		{name: "all", q: ChangesQuery{Limit: NoLimit}, want: "3a 4b- 5_design/x 6c 7d", last: "7"},
		{name: "since", q: ChangesQuery{Limit: NoLimit, Since: since(t, all[1].seq)}, want: "5_design/x 6c 7d", last: "7"},
		{name: "since and limit", q: ChangesQuery{Limit: 2, Since: since(t, all[0].seq)}, want: "4b- 5_design/x", last: "5", pending: 2},
		{name: "the end", q: ChangesQuery{Limit: NoLimit, Since: since(t, last)}, last: "7"},
		{name: "now", q: ChangesQuery{Limit: NoLimit, Since: sequence.Now()}, last: "7"},
		{name: "limit", q: ChangesQuery{Limit: 1}, want: "3a", last: "3", pending: 4},
		{name: "limit 0 acts like 1", q: ChangesQuery{}, want: "3a", last: "3", pending: 4},
		{name: "limit of all there is", q: ChangesQuery{Limit: 5}, want: "3a 4b- 5_design/x 6c 7d", last: "7"},
		{name: "large limit", q: ChangesQuery{Limit: 100}, want: "3a 4b- 5_design/x 6c 7d", last: "7"},
		{name: "descending", q: ChangesQuery{Limit: NoLimit, Descending: true}, want: "7d 6c 5_design/x 4b- 3a", last: "3"},
		{name: "descending and limit", q: ChangesQuery{Limit: 2, Descending: true}, want: "7d 6c", last: "6", pending: 3},
		{name: "descending takes no notice of since", q: ChangesQuery{Limit: 1, Descending: true, Since: sequence.Now()}, want: "7d", last: "7", pending: 4},
		{name: "design", q: ChangesQuery{Limit: NoLimit, Filter: shard.Filter{Kind: shard.FilterDesign}}, want: "5_design/x", last: "7"},
		{name: "ids", q: ChangesQuery{Limit: NoLimit, Filter: shard.Filter{Kind: shard.FilterDocIDs, IDs: []string{"d", "none", "b"}}}, want: "4b- 7d", last: "7"},
		{name: "filter and limit", q: ChangesQuery{Limit: 1, Filter: shard.Filter{Kind: shard.FilterDocIDs, IDs: []string{"d", "c"}}}, want: "6c", last: "6", pending: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rows, last, pending := changes(t, d, tc.q)
			if show(rows) != tc.want || number(last) != tc.last || pending != tc.pending {
				t.Fatalf("got %s, last %s, pending %d; want %s, %s, %d", show(rows), last, pending, tc.want, tc.last, tc.pending)
			}
		})
	}
}

// state is what a client knows: id → revision, "-" in front when deleted.
type state map[string]string

func (s state) take(r seen) {
	if r.deleted {
		s[r.id] = "-" + r.rev
		return
	}
	s[r.id] = r.rev
}

// TestChangesMissNothing writes at random, reads feeds of all kinds in between, and keeps every
// sequence that was ever handed out with what the client knew then. From each of them a feed must
// lead to the present state, for any q.
func TestChangesMissNothing(t *testing.T) {
	w := start(t, setup{})
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		q := rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(rt, "q")
		name := fmt.Sprintf("db%d", run)
		d := w.create(name, CreateOptions{Q: q})
		defer func() {
			if err := w.DeleteDB(context.WithoutCancel(t.Context()), name); err != nil {
				t.Error(err)
			}
		}()
		present := state{}
		type known struct {
			seq  string
			view state
		}
		handed := []known{{seq: "0", view: state{}}}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0, 1:
				writeSome(rt, d, present)
			case 2: // a client reads on from one of its sequences
				from := handed[rapid.IntRange(0, len(handed)-1).Draw(rt, "from")]
				query := ChangesQuery{
					Since: since(rt, from.seq), Limit: rapid.SampledFrom([]int{NoLimit, 1, 3, 100}).Draw(rt, "limit"),
				}
				rows, last, _ := changes(rt, d, query)
				view := maps.Clone(from.view)
				for _, r := range rows {
					view.take(r)
					handed = append(handed, known{r.seq, maps.Clone(view)})
				}
				handed = append(handed, known{last, view})
			}
			info, err := d.Info(t.Context())
			if err != nil {
				rt.Fatal(err)
			}
			handed = append(handed, known{info.UpdateSeq, maps.Clone(present)})
		}
		for _, k := range handed {
			rows, last, pending := changes(rt, d, ChangesQuery{Since: since(rt, k.seq), Limit: NoLimit})
			view := maps.Clone(k.view)
			for _, r := range rows {
				view.take(r)
			}
			if !maps.Equal(view, present) {
				rt.Fatalf("since %s: a client gets to %v, the database is %v", k.seq, view, present)
			}
			if pending != 0 {
				rt.Fatalf("since %s: %d pending at the end %s", k.seq, pending, last)
			}
			if again, _, _ := changes(rt, d, ChangesQuery{Since: since(rt, last), Limit: NoLimit}); len(again) != 0 {
				rt.Fatalf("since the end %s: %v", last, again)
			}
			if len(rows) > 1 {
				n := rapid.IntRange(1, len(rows)-1).Draw(rt, "cut")
				part, _, left := changes(rt, d, ChangesQuery{Since: since(rt, k.seq), Limit: n})
				if len(part) != n || int(left) != len(rows)-n {
					rt.Fatalf("limit %d of %d: %d rows, %d pending", n, len(rows), len(part), left)
				}
			}
		}
	})
}

// writeSome writes, updates or deletes some documents and keeps the state.
func writeSome(rt *rapid.T, d *DB, present state) {
	var edits []shard.Edit
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 1, 4, rapid.ID[int]).Draw(rt, "documents") {
		e := shard.Edit{ID: fmt.Sprintf("doc%d", i), Body: fmt.Appendf(nil, `{"n":%d}`, rapid.IntRange(0, 99).Draw(rt, "n"))}
		if rev, ok := present[e.ID]; ok && !strings.HasPrefix(rev, "-") {
			parent, err := doc.ParseRev(rev)
			if err != nil {
				rt.Fatal(err)
			}
			e.Parent, e.Deleted = parent, rapid.Bool().Draw(rt, "delete")
		}
		edits = append(edits, e)
	}
	results, err := d.Update(context.Background(), UpdateOptions{NewEdits: true}, edits)
	if err != nil {
		rt.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil {
			rt.Fatal(r.Err)
		}
		present.take(seen{id: edits[i].ID, rev: r.Rev.String(), deleted: edits[i].Deleted})
	}
}

// TestMetamorphic gives databases of different q the same edits and expects
// the same answers.
func TestMetamorphic(t *testing.T) {
	w := start(t, setup{})
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		var dbs []*DB
		for _, q := range []int{1, 2, 8} {
			dbs = append(dbs, w.create(fmt.Sprintf("db%d-%d", run, q), CreateOptions{Q: q}))
		}
		defer func() {
			for _, d := range dbs {
				if err := w.DeleteDB(context.WithoutCancel(t.Context()), d.Name()); err != nil {
					t.Error(err)
				}
			}
		}()
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`(_design/)?[a-cA-C]{1,3}`), 1, 40, rapid.ID[string]).Draw(rt, "ids")
		for _, d := range dbs {
			bulk(rt, d, ids...)
		}
		for range 5 {
			q := drawQuery(rt, ids)
			ids1, total1, offset1 := list(rt, dbs[0], q)
			for _, d := range dbs[1:] {
				ids, total, offset := list(rt, d, q)
				if ids != ids1 || total != total1 || offset != offset1 {
					rt.Fatalf("%+v: q=1 lists %s (%d, %d), q=%d %s (%d, %d)", q, ids1, total1, offset1, d.Meta().Q(), ids, total, offset)
				}
			}
		}
		for _, d := range dbs {
			rows, _, _ := changes(rt, d, ChangesQuery{Limit: NoLimit})
			got := make([]string, len(rows))
			for i, r := range rows {
				got[i] = r.id
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(ids))
			if !slices.Equal(got, want) {
				rt.Fatalf("q=%d: changes of %v, want %v", d.Meta().Q(), got, want)
			}
		}
	})
}

func drawQuery(rt *rapid.T, ids []string) DocsQuery {
	q := DocsQuery{
		Namespace:  rapid.SampledFrom([]Namespace{AllDocs, AllDocs, DesignDocs}).Draw(rt, "namespace"),
		Descending: rapid.Bool().Draw(rt, "descending"), InclusiveEnd: rapid.Bool().Draw(rt, "inclusive"),
		Skip: rapid.IntRange(0, 3).Draw(rt, "skip"), Limit: rapid.SampledFrom([]int{NoLimit, 0, 1, 3, 100}).Draw(rt, "limit"),
	}
	key := rapid.OneOf(rapid.SampledFrom(ids), rapid.StringMatching(`[a-cA-C_]{0,2}`))
	if rapid.Bool().Draw(rt, "start") {
		q.StartKey = ptr(key.Draw(rt, "start key"))
	}
	if rapid.Bool().Draw(rt, "end") {
		q.EndKey = ptr(key.Draw(rt, "end key"))
	}
	if rapid.IntRange(0, 3).Draw(rt, "keys") == 0 {
		q.HasKeys, q.StartKey, q.EndKey = true, nil, nil
		q.Keys = rapid.SliceOfN(key, 0, 8).Draw(rt, "list")
	}
	return q
}

// TestLongFeeds reads enough rows that the reading ahead sets in.
func TestLongFeeds(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 2})
	const n = 9000
	for i := 0; i < n; i += 1000 {
		ids := make([]string, 1000)
		for k := range ids {
			ids[k] = fmt.Sprintf("doc%05d", i+k)
		}
		bulk(t, d, ids...)
	}
	rows, last, pending := changes(t, d, ChangesQuery{Limit: NoLimit})
	if len(rows) != n || number(last) != fmt.Sprint(n) || pending != 0 {
		t.Fatalf("%d rows, last %s, pending %d", len(rows), last, pending)
	}
	half, _, pending := changes(t, d, ChangesQuery{Limit: n / 2})
	if len(half) != n/2 || pending != n/2 {
		t.Fatalf("half: %d rows, pending %d", len(half), pending)
	}
	rest, _, _ := changes(t, d, ChangesQuery{Limit: NoLimit, Since: since(t, half[len(half)-1].seq)})
	ids := map[string]bool{}
	for _, r := range append(half, rest...) {
		ids[r.id] = true
	}
	if len(ids) != n || len(rest) != n/2 {
		t.Fatalf("%d different documents, %d in the second half", len(ids), len(rest))
	}
	for _, q := range []DocsQuery{{Limit: NoLimit}, {Limit: NoLimit, IncludeDocs: true}, {Limit: NoLimit, Descending: true}} {
		listing, err := d.AllDocs(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for ; listing.Next(); i++ {
			at := i
			if q.Descending {
				at = n - 1 - i
			}
			if want := fmt.Sprintf("doc%05d", at); listing.Row().ID != want || (listing.Row().Doc != nil) != q.IncludeDocs {
				t.Fatalf("row %d: %+v, want %s", i, listing.Row(), want)
			}
			if q.IncludeDocs && !bytes.Contains(listing.Row().Doc.Body, fmt.Appendf(nil, `"n":%d}`, at%1000)) {
				t.Fatalf("row %d: %s", i, listing.Row().Doc.Body)
			}
		}
		if i != n || listing.Err() != nil {
			t.Fatalf("%d rows, %v", i, listing.Err())
		}
		listing.Close()
	}
	// Given up in the middle, with the reading ahead at work.
	listing, err := d.AllDocs(t.Context(), DocsQuery{Limit: NoLimit})
	if err != nil {
		t.Fatal(err)
	}
	for range n / 2 {
		listing.Next()
	}
	listing.Close()
}

func TestFeedWaits(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 4})
	f, err := d.Changes(t.Context(), ChangesQuery{Limit: 31, Since: sequence.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	go func() {
		for i := range 30 {
			_, err := d.Update(t.Context(), UpdateOptions{NewEdits: true}, []shard.Edit{{ID: fmt.Sprintf("doc%d", i), Body: []byte("{}")}})
			if err != nil {
				t.Error(err)
			}
		}
	}()
	got := map[string]bool{}
	for len(got) < 30 {
		for _, r := range drain(t, f) {
			if got[r.id] {
				t.Fatalf("%s twice", r.id)
			}
			got[r.id] = true
		}
		if len(got) < 30 {
			if err := f.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if number(f.LastSeq()) != "30" {
		t.Fatalf("last %s", f.LastSeq())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := f.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("nothing comes: %v", err)
	}
	put(t, d, "last", doc.Rev{}, `{}`)
	if err := f.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows := drain(t, f); len(rows) != 1 {
		t.Fatalf("%v", rows)
	}
	if err := f.Wait(t.Context()); !errors.Is(err, io.EOF) {
		t.Fatalf("at the limit: %v", err)
	}
}

// TestFeedBeats: while a filter lets nothing through the caller hears of it,
// and the last sequence moves on.
func TestFeedBeats(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 2})
	ids := make([]string, 500)
	for i := range ids {
		ids[i] = fmt.Sprintf("doc%d", i)
	}
	bulk(t, d, ids...)
	beats := 0
	f, err := d.Changes(t.Context(), ChangesQuery{
		Limit: NoLimit, Filter: shard.Filter{Kind: shard.FilterDesign}, Beat: func() time.Duration { beats++; return time.Second },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rows := drain(t, f); len(rows) != 0 || beats == 0 || number(f.LastSeq()) != "500" || f.Pending() != 0 {
		t.Fatalf("%v, %d beats, last %s, %d pending", rows, beats, f.LastSeq(), f.Pending())
	}
}

func TestFeedEndsWithTheDatabase(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 2})
	bulk(t, d, "a", "b", "c")
	f, err := d.Changes(t.Context(), ChangesQuery{Limit: NoLimit})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rows := drain(t, f); len(rows) != 3 {
		t.Fatalf("%v", rows)
	}
	ended := make(chan error)
	go func() { ended <- f.Wait(t.Context()) }()
	if err := w.DeleteDB(t.Context(), "db"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !fault.Is(err, fault.NotFound) || fault.Reason(err) != "Database does not exist." {
		t.Fatalf("waiting feed: %v", err)
	}
	if f.Next() || !fault.Is(f.Err(), fault.NotFound) {
		t.Fatalf("after that: %v", f.Err())
	}
}

// TestDescendingOverShards: pending counts also what other shards have not
// shown yet.
func TestDescendingOverShards(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 4})
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("doc%d", i))
	}
	bulk(t, d, ids...)
	for limit := 1; limit <= 20; limit++ {
		rows, _, pending := changes(t, d, ChangesQuery{Limit: limit, Descending: true})
		if len(rows) != limit || int(pending) != 20-limit {
			t.Fatalf("limit %d: %d rows, %d pending", limit, len(rows), pending)
		}
	}
}

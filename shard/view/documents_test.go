package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"divan/shard"
)

// TestRowsWithLargeDocuments: a batch has as many rows as there is space for their documents, in
// both directions. Rows of one key and one document stay together, and hold it once.
func TestRowsWithLargeDocuments(t *testing.T) {
	n := start(t)
	const large, rows = 300_000, 12
	for i := range rows {
		size := large
		if i%3 == 0 {
			size = 10
		}
		n.put(1, edit(fmt.Sprintf("d%02d", i), fmt.Sprintf(`{"v":%q}`, strings.Repeat("x", size))))
	}
	d := define(t, `{"views":{
		"once":{"map":"function (doc) { emit(doc._id, 1); }"},
		"often":{"map":"function (doc) { for (var i = 0; i < 5; i++) { emit(doc._id, i); } }"},
		"mixed":{"map":"function (doc) { for (var i = 0; i < 5; i++) { emit(doc._id, i % 3 ? i : {_id: 'd' + i}); } }"},
		"linked":{"map":"function (doc) { emit(doc._id, {_id: 'd1'}); }"}}}`)
	for view, times := range map[string]int{"once": 1, "often": 5, "mixed": 5, "linked": 1} {
		for _, desc := range []bool{false, true} {
			req := request(d, view)
			req.IncludeDocs, req.Desc = true, desc
			s, err := n.views.Query(context.Background(), req)
			must(t, err)
			var got, want []string
			// A reader has the next batch read while it goes through one.
			var read [2]Batch
			batches := 0
			more, err := s.Next(&read[0])
			must(t, err)
			for last := false; !last; batches++ {
				b := read[batches%2]
				if last = !more; more {
					more, err = s.Next(&read[1-batches%2])
					must(t, err)
				}
				held := 0
				var last *shard.Doc
				for i, r := range b.Rows {
					got = append(got, fmt.Sprintf("%s %s", r.ID, r.Value))
					if _, named := r.Link(); named {
						if r.Doc != nil || r.Repeated {
							t.Fatalf("row %d, %s, has its own document", i, r.ID)
						}
						continue
					}
					if r.Doc == nil || r.Doc.ID != r.ID {
						t.Fatalf("%s has the document %+v", r.ID, r.Doc)
					}
					if !r.Repeated {
						held += r.Doc.Size()
					} else if last == nil || &r.Doc.Body[0] != &last.Body[0] {
						t.Fatalf("row %d, %s, repeats another document", i, r.ID)
					}
					last = r.Doc
				}
				if held > batchBytes+times*large+large/2 {
					t.Errorf("%s: a batch of %d rows holds %d bytes", view, len(b.Rows), held)
				}
				if n := len(b.Rows); n > 0 && n%times != 0 {
					t.Errorf("%s: a batch of %d rows divides those of a document", view, n)
				}
			}
			s.Close()
			for i := range rows {
				if desc {
					i = rows - 1 - i
				}
				var of []string
				for k := range times {
					value := fmt.Sprint(max(k, 2-times))
					if view == "linked" {
						value = `{"_id":"d1"}`
					} else if view == "mixed" && k%3 == 0 {
						value = fmt.Sprintf(`{"_id":"d%d"}`, k)
					}
					of = append(of, fmt.Sprintf("d%02d %s", i, value))
				}
				slices.SortFunc(of, func(a, b string) int { return strings.Count(a, "{") - strings.Count(b, "{") })
				want = append(want, of...)
			}
			if !slices.Equal(got, want) || (batches < 2) != (view == "linked") {
				t.Errorf("%s, descending %t: %d batches of %q", view, desc, batches, got)
			}
		}
	}
}

// TestRowsOfDeletedDocument: a row whose document went away meanwhile has none, nor has one that
// would repeat it.
func TestRowsOfDeletedDocument(t *testing.T) {
	n := start(t)
	n.put(1, edit("a", `{}`))
	d := define(t, `{"views":{"v":{"map":"function (doc) { emit(1, 1); emit(1, 2); }"}}}`)
	req := request(d, "v")
	req.IncludeDocs = true
	s, err := n.views.Query(context.Background(), req)
	must(t, err)
	defer s.Close()
	n.put(2, shard.Edit{ID: "a", Deleted: true})
	var b Batch
	_, err = s.Next(&b)
	must(t, err)
	if len(b.Rows) != 2 || b.Rows[0].Doc != nil || b.Rows[1].Doc != nil || b.Rows[1].Repeated {
		t.Errorf("%+v", b.Rows)
	}
}

package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"divan/shard"
	"divan/storage/doc"
)

// lostRevs is the usual view to find conflicts, one that keeps whole documents, and a
// Mango index.
const lostRevs = `{"views":{
	"live":{"map":"function (doc) { if (doc._conflicts) { emit(doc._conflicts, null); } }"},
	"deleted":{"map":"function (doc) { if (doc._deleted_conflicts) { emit(doc._id, doc._deleted_conflicts); } }"},
	"whole":{"map":"function (doc) { emit(null, doc); }"},
	"escaped":{"map":"function (doc) { var m = '_conf' + 'licts'; emit(m in doc, null); }"}}}`

// leaf is a revision "pos-letters" of a document, as replication brings it.
func leaf(tb testing.TB, id, rev string, deleted bool) shard.Edit {
	tb.Helper()
	r, err := doc.ParseRev(rev)
	must(tb, err)
	return shard.Edit{ID: id, Path: doc.Path{Start: r.Pos, IDs: []string{r.ID}}, Deleted: deleted, Body: []byte(`{"n":1}`)}
}

func (n *node) update(edits ...shard.Edit) {
	n.tb.Helper()
	res, err := n.local.Decide(context.Background(), shard.DecideRequest{Copy: copyName, Edits: edits})
	must(n.tb, err)
	for i := range res {
		must(n.tb, res[i].Err)
	}
}

func (n *node) purge(id string, revs ...string) {
	n.tb.Helper()
	req := shard.PurgeItem{ID: id}
	for _, rev := range revs {
		r, err := doc.ParseRev(rev)
		must(n.tb, err)
		req.Revs = append(req.Revs, r)
	}
	_, err := n.local.Purge(context.Background(), copyName, []shard.PurgeItem{req})
	must(n.tb, err)
}

// TestConflictsInDocuments: map functions and Mango indexes see the leaves that lost,
// in the order and at the place that CouchDB has. Any change of a losing leaf updates
// the rows although the winner stays; an index that is filled later has the same
// rows.
func TestConflictsInDocuments(t *testing.T) {
	n := start(t)
	d := define(t, lostRevs)
	index := define(t, `{"language":"query","views":{"i":{"map":{"fields":{"_conflicts":"asc"}},"reduce":"_count"}}}`)
	n.query(request(d, "live")) // it follows from now on
	n.query(request(index, "i"))
	want := func(when, live, deleted, whole string) {
		t.Helper()
		for _, def := range []*Definition{d, define(t, strings.Replace(lostRevs, `{"views":{`, fmt.Sprintf(`{"views":{"lib":{"x":%q},`, when), 1))} {
			for view, rows := range map[string]string{"live": live, "deleted": deleted, "whole": whole} {
				if got := strings.Join(n.query(request(def, view)).rows, "\n"); got != rows {
					t.Errorf("%s: %s has %s, want %s", when, view, got, rows)
				}
			}
			if got := n.query(request(def, "escaped")).rows; !slices.Equal(got, []string{fmt.Sprintf("a %t null", live != "")}) {
				t.Errorf("%s: a computed name: %q", when, got)
			}
		}
		var rows string
		if live != "" {
			rows = strings.Replace(live, " [", " [[", 1)
			rows = strings.Replace(rows, "] null", "]] null", 1)
		}
		if got := strings.Join(n.query(request(index, "i")).rows, "\n"); got != rows {
			t.Errorf("%s: the Mango index has %s, want %s", when, got, rows)
		}
	}
	n.update(leaf(t, "a", "2-b", false))
	want("alone", "", "", `a null {"_id":"a","_rev":"2-b","n":1}`)
	n.update(leaf(t, "a", "1-a", false))
	want("one more", `a ["1-a"] null`, "", `a null {"_id":"a","_rev":"2-b","n":1,"_conflicts":["1-a"]}`)
	n.update(leaf(t, "a", "1-c", false), leaf(t, "a", "7-x", true), leaf(t, "a", "3-y", true))
	want("several", `a ["1-c","1-a"] null`, `a "a" ["7-x","3-y"]`,
		`a null {"_id":"a","_rev":"2-b","n":1,"_conflicts":["1-c","1-a"],"_deleted_conflicts":["7-x","3-y"]}`)
	gone := leaf(t, "a", "2-d", true)
	gone.Path.IDs = append(gone.Path.IDs, "c") // deletes 1-c
	n.update(gone)
	want("one deleted", `a ["1-a"] null`, `a "a" ["7-x","3-y","2-d"]`,
		`a null {"_id":"a","_rev":"2-b","n":1,"_conflicts":["1-a"],"_deleted_conflicts":["7-x","3-y","2-d"]}`)
	n.purge("a", "1-a", "3-y")
	want("two purged", "", `a "a" ["7-x","2-d"]`, `a null {"_id":"a","_rev":"2-b","n":1,"_deleted_conflicts":["7-x","2-d"]}`)
	n.purge("a", "7-x", "2-d")
	want("alone again", "", "", `a null {"_id":"a","_rev":"2-b","n":1}`)
}

package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const conflictViews = `{"views":{
	"conflicts":{"map":"function (doc) { if (doc._conflicts) { emit(doc._conflicts, null); } }"},
	"deleted":{"map":"function (doc) { if (doc._deleted_conflicts) { emit(doc._deleted_conflicts, null); } }"}},
	"filters":{"bad":"function (doc, req) { return !!doc._conflicts; }"}}`

// Replicas that were apart bring branches of one document, as PouchDB sends them. The
// usual view to find conflicts has them on every node, and loses them when they are
// resolved, although the winner stays as it is.
func TestConflictsInViews(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		homes := []*home{a, b, c}
		a.want("PUT", "/pond?q=2", "", "201")
		a.want("PUT", "/pond/_design/c", conflictViews, "201")
		a.want("POST", "/pond/_index", `{"index":{"fields":["_conflicts"]},"ddoc":"m","name":"m"}`, "200")
		branch := func(h *home, rev string, deleted bool) {
			start, id, _ := strings.Cut(rev, "-")
			h.want("POST", "/pond/_bulk_docs", fmt.Sprintf(
				`{"new_edits":false,"docs":[{"_id":"frog","_rev":%q,"_deleted":%t,"_revisions":{"start":%s,"ids":[%q,"base"]},"by":%q}]}`, rev, deleted, start, id, h.name), "201")
		}
		want := func(when string, live, deleted []string) {
			t.Helper()
			for _, h := range homes {
				for view, revs := range map[string][]string{"conflicts": live, "deleted": deleted} {
					if got := h.keys("/pond/_design/c/_view/" + view); fmt.Sprint(got) != fmt.Sprint(revs) {
						t.Errorf("%s, %s: the view %s has %v, want %v", when, h.name, view, got, revs)
					}
				}
				found := "0"
				if len(live) > 0 {
					found = "1"
				}
				for _, body := range []string{
					`{"selector":{"_conflicts":{"$exists":true}},"conflicts":true,"use_index":"_design/m"}`,
					`{"selector":{"_conflicts":{"$exists":true}},"conflicts":true}`,
				} {
					if got := strings.Count(h.ask("POST", "/pond/_find", body), `"frog"`); fmt.Sprint(got) != found {
						t.Errorf("%s, %s: _find has %d, want %s", when, h.name, got, found)
					}
				}
				for _, filter := range []string{"c/bad", "_view&view=c/conflicts"} {
					if got := strings.Count(h.ask("GET", "/pond/_changes?filter="+filter, ""), `"id":"frog"`); fmt.Sprint(got) != found {
						t.Errorf("%s, %s: the feed with %s has %d, want %s", when, h.name, filter, got, found)
					}
				}
			}
		}
		branch(a, "3-z", false)
		want("one branch", nil, nil)
		branch(b, "3-a", false)
		want("two branches", []string{"3-a"}, nil)
		branch(c, "2-y", false)
		branch(a, "5-d", true)
		want("four branches", []string{"3-a", "2-y"}, []string{"5-d"})
		c.want("DELETE", "/pond/frog?rev=3-a", "", "200")
		b.want("POST", "/pond/_purge", `{"frog":["2-y"]}`, "201")
		for _, h := range homes {
			if got := h.keys("/pond/_design/c/_view/conflicts"); len(got) > 0 {
				t.Errorf("resolved: %s has %v", h.name, got)
			}
			if got := h.keys("/pond/_design/c/_view/deleted"); len(got) != 2 || got[0] != "5-d" || !strings.HasPrefix(got[1], "4-") {
				t.Errorf("resolved: %s has the deleted %v", h.name, got)
			}
		}
	})
}

// keys asks a view for rows of one document, whose keys are revisions.
func (h *home) keys(path string) (out []string) {
	h.town.t.Helper()
	status, text, _ := strings.Cut(h.ask("GET", path, ""), " ")
	var answer struct{ Rows []struct{ Key []string } }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != "200" || len(answer.Rows) > 1 {
		h.town.t.Fatalf("%s: %s: %s %s, %v", h.name, path, status, text, err)
	}
	for _, r := range answer.Rows {
		out = append(out, r.Key...)
	}
	return out
}

package node

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"divan/httpapi/core"
	"divan/storage/doc"
)

// TestTaskMembers: an indexer has CouchDB's members, and more only when it cannot go on.
func TestTaskMembers(t *testing.T) {
	common := "node pid type task status database changes_done total_changes progress started_on updated_on"
	for _, tc := range []struct {
		task  core.Task
		extra string
	}{
		{core.Task{Type: "indexer", PID: "<0.1>", DesignDocument: "_design/a"}, "design_document indexer_pid"},
		{core.Task{Type: "indexer", PID: "<0.1>", DesignDocument: "_design/a", FailedDocument: "x", Error: "bad"}, "design_document indexer_pid failed_document error"},
		{core.Task{Type: "search_indexer", PID: "<0.1>", DesignDocument: "_design/a", Index: "i"}, "design_document index"},
		{core.Task{Type: "database_compaction", PID: "<0.1>", Phase: "document_copy"}, "phase"},
	} {
		tc.task.Node, tc.task.Database, tc.task.StartedOn, tc.task.Updated = "n", "db", time.Unix(1, 0), time.Unix(2, 0)
		text := appendJSON(&tc.task, nil)
		got := map[string]string{}
		if err := doc.EachMember(text, func(name string, value []byte) error {
			got[name] = string(value)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := strings.Fields(common + " " + tc.extra)
		slices.Sort(want)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("%s: %v, want %v", text, names, want)
		}
		if tc.task.Type == "indexer" && got["indexer_pid"] != `"<0.1>"` {
			t.Errorf("%s", text)
		}
	}
}

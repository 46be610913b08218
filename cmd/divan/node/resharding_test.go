package node

import (
	"testing"

	"divan/shard/ring"
)

// TestIndexesOfNewCopies: all indexes are built that queries could use; what is the fault of a
// design document stops nothing.
func TestIndexesOfNewCopies(t *testing.T) {
	h := start(t, inMemory(t))
	h.want("PUT", "/pond?q=1", "", "201")
	h.want("PUT", "/pond/frog", `{"legs":4}`, "201")
	h.want("PUT", "/pond/_design/a", `{"language":"erlang","views":{"v":{"map":"fun(_) -> ok end."}}}`, "201")
	h.want("POST", "/pond/_bulk_docs", `{"new_edits":false,"docs":[{"_id":"_design/b","_rev":"1-a","views":7},{"_id":"_design/c","_rev":"1-a","views":{"v":{"map":"function ("}}}]}`, "201")
	h.want("PUT", "/pond/_design/v", `{"views":{"v":{"map":"function (doc) { emit(doc.legs); }"}}}`, "201")
	h.want("POST", "/pond/_index", `{"index":{"fields":["legs"]},"ddoc":"i","name":"i"}`, "200")
	db, ok := h.node.meta.Database("pond")
	if !ok {
		t.Fatal("no database")
	}
	if err := h.node.hooks.buildIndexes(t.Context(), "pond", db.CopyName(ring.Full())); err != nil {
		t.Fatal(err)
	}
	h.want("GET", "/pond/_design/v/_view/v?update=false", "", `200 {"total_rows":1,`)
	h.want("GET", "/pond/_design/i/_info", "", `200 {"name":"i","view_index":{"updates_pending":{"minimum":0,"preferred":0,"total":0}`)
	if !h.logged(0, "index is not built for a shard that is made") {
		t.Error("nobody hears that an index is not built")
	}
	if err := h.node.hooks.buildIndexes(t.Context(), "pond", "shards/00000000-7fffffff/pond."+db.Suffix); err == nil {
		t.Error("a copy that is not there has indexes")
	}
}

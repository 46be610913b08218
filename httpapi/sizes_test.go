package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// sizes is what a database or an index tells about its files.
type sizes struct {
	Sizes   struct{ File, Active int64 }
	Running bool `json:"compact_running"`
}

// TestSizesOfDatabase: content that was just written counts, and a deletion of it that is
// followed by a compaction makes the files smaller; without one it does not.
func TestSizesOfDatabase(t *testing.T) {
	s := newSite(t, nil)
	read := func() (out sizes) {
		t.Helper()
		apitest.Must(t, json.Unmarshal([]byte(s.text(200, "GET", "/db", nil)), &out))
		return out
	}
	s.text(201, "PUT", "/db?q=1", nil)
	empty := read()
	content := noise(300 << 10)
	rev := s.rev(s.text(201, "PUT", "/db/a/noise", content, "Content-Type: application/octet-stream"))
	full := read()
	if full.Sizes.File < empty.Sizes.File+int64(len(content)) {
		t.Errorf("%+v with %d bytes more than %+v", full, len(content), empty)
	}
	s.text(200, "DELETE", "/db/a?rev="+rev, nil)
	if deleted := read(); deleted.Sizes.File < full.Sizes.File {
		t.Errorf("%+v before the compaction, %+v before the deletion", deleted, full)
	}
	s.text(202, "POST", "/db/_compact", `{}`)
	apitest.WaitFor(t, func() bool {
		compacted := read()
		return !compacted.Running && compacted.Sizes.File <= full.Sizes.File-int64(len(content))
	})
}

// TestSizesOfView: rows that are only in memory and in the log count, so that a
// compaction does not make an index larger.
func TestSizesOfView(t *testing.T) {
	s := newSite(t, nil)
	read := func() sizes {
		t.Helper()
		var out struct {
			Index sizes `json:"view_index"`
		}
		apitest.Must(t, json.Unmarshal([]byte(s.text(200, "GET", "/db/_design/d/_info", nil)), &out))
		return out.Index
	}
	s.text(201, "PUT", "/db?q=1", nil)
	var docs []string
	for i := range 500 {
		docs = append(docs, fmt.Sprintf(`{"_id":"a document with a name that is not short, number %d"}`, i))
	}
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[`+strings.Join(docs, ",")+`]}`)
	s.text(201, "PUT", "/db/_design/d", `{"views":{"v":{"map":"function (doc) { emit(doc._id, doc._id); }"}}}`)
	s.text(200, "GET", "/db/_design/d/_view/v", nil)
	before := read()
	if before.Sizes.File < 500*2*40 || before.Sizes.Active > before.Sizes.File {
		t.Errorf("%+v with 500 rows", before)
	}
	s.text(202, "POST", "/db/_compact/d", `{}`)
	apitest.WaitFor(t, func() bool {
		after := read()
		return !after.Running && after.Sizes.File < before.Sizes.File && after.Sizes.File > 0
	})
}

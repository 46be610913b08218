package httpapi

import (
	"strings"
	"testing"
)

// The information about an index names the documents that it holds nothing of.
func TestInfoOfLeftOut(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=2", nil)
	s.text(201, "PUT", "/db/good", `{}`)
	s.text(201, "PUT", "/db/bad", `{"late":true}`)
	s.text(201, "PUT", "/db/_design/d", `{
		"views":{"v":{"map":"function (doc) { if (doc.late) { Promise.resolve().then(function () { emit(1); }); } else { emit(2); } }"}},
		"indexes":{"i":{"index":"function (doc) { if (doc.late) { Promise.resolve().then(function () { index('a', 'b'); }); } else { index('a', 'b'); } }"}}}`)
	if got := s.text(200, "GET", "/db/_design/d/_view/v", nil); !strings.Contains(got, `"total_rows":1,`) {
		t.Errorf("view: %s", got)
	}
	if got := s.text(200, "GET", "/db/_design/d/_search/i?q=a:b", nil); !strings.Contains(got, `"total_rows":2,`) {
		t.Errorf("search: %s", got)
	}
	const member = `,"documents_left_out":{"count":1,"reasons":{"bad":"`
	for _, path := range []string{"/db/_design/d/_info", "/db/_design/d/_search_info/i"} {
		if got := s.text(200, "GET", path, nil); !strings.Contains(got, member) {
			t.Errorf("%s: %s", path, got)
		}
	}
	s.text(201, "PUT", "/db/bad?new_edits=false", `{"_rev":"5-0123456789abcdef0123456789abcdef"}`)
	s.text(200, "GET", "/db/_design/d/_view/v", nil)
	s.text(200, "GET", "/db/_design/d/_search/i?q=a:b", nil)
	for _, path := range []string{"/db/_design/d/_info", "/db/_design/d/_search_info/i"} {
		if got := s.text(200, "GET", path, nil); strings.Contains(got, "left_out") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

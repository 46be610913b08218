package httpapi

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// leaves returns the values of the figures of _stats by their paths; a distribution's is how
// many it has.
func leaves(t *testing.T, s *site) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	var walk func(path string, text json.RawMessage)
	walk = func(path string, text json.RawMessage) {
		var members map[string]json.RawMessage
		apitest.Must(t, json.Unmarshal(text, &members))
		value, leaf := members["value"]
		if !leaf {
			for name, m := range members {
				walk(strings.TrimPrefix(path+"."+name, "."), m)
			}
			return
		}
		var n float64
		if json.Unmarshal(value, &n) != nil {
			var times struct{ N float64 }
			apitest.Must(t, json.Unmarshal(value, &times))
			n = times.N
		}
		out[path] = n
	}
	walk("", json.RawMessage(s.text(200, "GET", "/_node/_local/_stats", nil)))
	return out
}

// TestCouchFigures: _stats has CouchDB's figures about functions, which count calls, and
// those that stay 0 as the documentation lists them.
func TestCouchFigures(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=1", nil)
	s.text(201, "PUT", "/db/_design/f", `{"validate_doc_update": "function (doc) { if (doc.bad) throw {forbidden: 'bad'}; if (doc.broken) doc.a.b; }",
		"filters": {"all": "function () { return true; }"}, "shows": {"s": "function () { return 'x'; }"},
		"views": {"v": {"map": "function (doc) { emit(1, 1); emit(2, 2); }", "reduce": "function () { return 1; }"}}}`)
	before := leaves(t, s)
	s.text(201, "PUT", "/db/a", `{}`)
	s.text(201, "PUT", "/db/b", `{}`)
	s.text(403, "PUT", "/db/c", `{"bad": true}`)
	s.text(500, "PUT", "/db/d", `{"broken": true}`)
	s.text(200, "GET", "/db/_design/f/_view/v", nil)
	s.text(200, "GET", "/db/_changes?filter=f/all", nil)
	s.text(200, "GET", "/db/_design/f/_show/s", nil)
	after := leaves(t, s)
	for path, want := range map[string]float64{
		"couchdb.query_server.vdu_rejects": 1, "couchdb.query_server.calls.ddoc_vdu": 4, "couchdb.query_server.vdu_process_time": 4,
		"couchdb.mrview.map_doc": 2, "couchdb.mrview.emits": 4, "couchdb.query_server.calls.map": 2, "couchdb.query_server.calls.ddoc_other": 1,
	} {
		if got := after[path] - before[path]; got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	for _, path := range []string{
		"couchdb.query_server.calls.reduce", "couchdb.query_server.calls.ddoc_filter", "couchdb.query_server.time.map", "couchdb.query_server.process_prompts",
		"couchdb.password_hashing_fast",
	} {
		if after[path] <= before[path] {
			t.Errorf("%s has not grown: %v, %v", path, before[path], after[path])
		}
	}
	const levels = 4 // of lines of the log, which only a whole node counts
	if len(after)+levels < 199 {
		t.Errorf("%d figures, and CouchDB 3.5.0 has 199", len(after)+levels)
	}

	text, err := os.ReadFile("../docs/operations.md")
	apitest.Must(t, err)
	_, list, _ := strings.Cut(string(text), "### Figures of CouchDB that stay 0\n")
	list, _, _ = strings.Cut(list, "\n#")
	listed := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ").FindAllStringSubmatch(list, -1)
	if len(listed) < 60 {
		t.Errorf("%d figures are listed", len(listed))
	}
	metrics := s.text(200, "GET", "/_node/_local/_prometheus", nil)
	for _, m := range listed {
		if n, ok := after[m[1]]; !ok || n != 0 {
			t.Errorf("%s is listed as one that stays 0: %v, there %v", m[1], n, ok)
		}
	}
	for _, line := range []string{
		"couchdb_query_server_vdu_rejects_total 1", "couchdb_mrview_emits_total 4", "couchdb_rexi_buffered_total 0", "couchdb_mem3_shard_cache_eviction_total 0",
		`couchdb_rexi_streams_timeout_total{stage="init_stream"} 0`, "couchdb_ddoc_cache_requests_recovery_total 0", "couchdb_pread_exceed_eof_total 0",
		"couchdb_query_server_vdu_process_time_seconds_count 4", "couchdb_fsync_count_total 0",
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no metric %q", line)
		}
	}
}

package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// What _find and _index refuse, beside what the transcripts have.
func TestFindParameters(t *testing.T) {
	a := nodeAPI(t, nil)
	const admin = "Authorization: Basic YWRtOnBhc3M="
	apitest.Ask(t, a, "PUT /db", "", admin)
	apitest.Ask(t, a, "PUT /parts?partitioned=true", "", admin)
	for _, tc := range []struct {
		path, body string
		status     int
		failure    string
	}{
		{"/db/_find", ``, 400, "bad_request"},
		{"/db/_find", `{`, 400, "bad_request"},
		{"/db/_find", `[]`, 400, "bad_request"},
		{"/db/_find", `{}`, 400, "missing_required_key"},
		{"/db/_find", `{"selector":null}`, 400, "invalid_selector_json"},
		{"/db/_find", `{"selector":{},"limit":-1}`, 400, "invalid_non_neg_integer"},
		{"/db/_find", `{"selector":{},"limit":1.5}`, 400, "invalid_non_neg_integer"},
		{"/db/_find", `{"selector":{},"limit":"5"}`, 400, "invalid_non_neg_integer"},
		{"/db/_find", `{"selector":{},"limit":99999999999999999999}`, 200, ""},
		{"/db/_find", `{"selector":{},"skip":99999999999999999999,"limit":99999999999999999999}`, 200, ""},
		{"/db/_find", `{"selector":{},"skip":null}`, 400, "invalid_non_neg_integer"},
		{"/db/_find", `{"selector":{},"r":0}`, 400, "invalid_pos_integer"},
		{"/db/_find", `{"selector":{},"r":9}`, 200, ""},
		{"/db/_find", `{"selector":{},"sort":[{}]}`, 400, "invalid_sort_field"},
		{"/db/_find", `{"selector":{},"sort":[{"a":"asc","b":"asc"}]}`, 400, "invalid_sort_field"},
		{"/db/_find", `{"selector":{},"sort":[""]}`, 400, "invalid_sort_field"},
		{"/db/_find", `{"selector":{},"sort":[{"a":"asc"},{"b":"desc"}]}`, 400, "unsupported_mixed_sort"},
		{"/db/_find", `{"selector":{},"fields":"a"}`, 400, "invalid_fields"},
		{"/db/_find", `{"selector":{},"fields":[1]}`, 400, "invalid_field"},
		{"/db/_find", `{"selector":{},"bookmark":5}`, 400, "invalid_bookmark"},
		{"/db/_find", `{"selector":{},"bookmark":"AQAAAAAAAAAA"}`, 400, "invalid_bookmark"},
		{"/db/_find", `{"selector":{},"use_index":5}`, 400, "invalid_index_name"},
		{"/db/_find", `{"selector":{},"use_index":["a","b","c"]}`, 400, "invalid_index_name"},
		{"/db/_find", `{"selector":{},"use_index":["a",1]}`, 400, "invalid_index_name"},
		{"/db/_find", `{"selector":{},"use_index":"a","allow_fallback":false}`, 400, "invalid_index"},
		{"/db/_find", `{"selector":{},"use_index":"a"}`, 200, ""},
		{"/db/_find", `{"selector":{},"update":"lazy"}`, 400, "invalid_boolean"},
		{"/db/_find", `{"selector":{},"conflicts":1}`, 400, "invalid_boolean"},
		{"/db/_find", `{"selector":{},"count":"yes"}`, 400, "invalid_boolean"},
		{"/db/_find", `{"selector":{},"stale":"update_after"}`, 400, "invalid_ok_or_false_value"},
		{"/db/_find", `{"selector":{},"partition":1}`, 400, "illegal_partition"},
		{"/db/_find", `{"selector":{},"partition":"p"}`, 400, "bad_request"},
		{"/db/_find", `{"selector":{},"limits":1}`, 400, "invalid_key"},
		{"/db/_find", `{"limit":-1,"selector":{"a":{"$x":1}}}`, 400, "invalid_operator"}, // the selector is looked at first
		{"/db/_find", `{"selector":{"a":1},"selector":{},"limit":1,"limit":-1}`, 400, "invalid_non_neg_integer"},
		{"/db/_explain", `{"selector":{},"limit":-1}`, 400, "invalid_non_neg_integer"},
		{"/db/_partition/p/_find", `{"selector":{}}`, 400, "bad_request"},
		{"/parts/_partition/p/_find", `{"selector":{}}`, 200, ""},
		{"/parts/_partition/p/_find", `{"selector":{},"partition":"p"}`, 200, ""},
		{"/parts/_partition/p/_explain", `{"selector":{},"partition":"q"}`, 400, "bad_request"},
		{"/parts/_find", `{"selector":{},"partition":"_p"}`, 400, "illegal_partition"},
		{"/db/_find", `{"selector":{},"partition":"_p"}`, 400, "illegal_partition"},
		{"/db/_explain", `{"selector":{"n":1},"bookmark":"none"}`, 200, ""},
		{"/db/_find", `{"selector":{"n":1},"bookmark":"none"}`, 400, "invalid_bookmark"},
		{"/none/_find", `{`, 404, "not_found"},
		{"/db/_index", `{"index":{"fields":["a"]},"partitioned":true}`, 500, "error_saving_ddoc"},
		{"/db/_index", `{"index":{"fields":["a"]},"ddoc":""}`, 400, "invalid_empty_string"},
		{"/db/_index", `{"index":{"fields":["a"]},"name":5}`, 400, "invalid_string"},
		{"/db/_index/_bulk_delete", `{"docids":["a"],"w":0}`, 400, "invalid_pos_integer"},
	} {
		w := apitest.Ask(t, a, "POST "+tc.path, tc.body, admin, "Content-Type: application/json")
		var got struct{ Error, Reason string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tc.status || got.Error != tc.failure || (tc.status != 200) != (got.Reason != "") {
			t.Errorf("%s %s: %d %s, want %d %s", tc.path, tc.body, w.Code, w.Body, tc.status, tc.failure)
		}
	}
	for query, status := range map[string]int{
		"limit=0": 400, "limit=-1": 400, "limit=x": 400, "skip=-1": 400, "skip=": 400, "limit=0;skip=1": 400, "limit=2;": 200, "limit=1&skip=0": 200, "skip=9": 200, "other=x": 200,
	} {
		if w := apitest.Ask(t, a, "GET /db/_index?"+query, "", admin); w.Code != status || status != 200 && !strings.Contains(w.Body.String(), "invalid_list_index_params") {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	for _, kind := range []string{"", "Content-Type: text/plain"} {
		headers := []string{admin}
		if kind != "" {
			headers = append(headers, kind)
		}
		if w := apitest.Ask(t, a, "POST /db/_find", `{"selector":{}}`, headers...); w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %d %s", kind, w.Code, w.Body)
		}
	}
}

// Queries leave figures behind, under CouchDB's names.
func TestMangoFigures(t *testing.T) {
	f := &finder{t, nodeAPI(t, nil)}
	f.fill("db", 1)
	figures := func() map[string]int {
		t.Helper()
		var all map[string]struct{ Value json.RawMessage }
		f.ask("GET /_node/_local/_stats/mango", "", &all)
		out := map[string]int{}
		for name, one := range all {
			var n int
			var times struct{ N int }
			if json.Unmarshal(one.Value, &n) != nil {
				apitest.Must(t, json.Unmarshal(one.Value, &times))
				n = times.N
			}
			out[name] = n
		}
		return out
	}
	for _, tc := range []struct {
		request string
		more    map[string]int
	}{
		{`{"selector":{"n":4}}`, map[string]int{"keys_examined": 11, "docs_examined": 11, "results_returned": 11}},
		{`{"selector":{"n":4},"use_index":"none"}`, map[string]int{"keys_examined": 11, "docs_examined": 11, "results_returned": 11, "query_invalid_index": 1}},
		{`{"selector":{"t":"z"}}`, map[string]int{"keys_examined": 121, "docs_examined": 121, "unindexed_queries": 1, "too_many_docs_scanned": 1}},
		{`{"selector":{"n":4},"count":true}`, map[string]int{"keys_examined": 11, "results_returned": 11}},
		{`{"selector":{"n":4},"r":2}`, map[string]int{"keys_examined": 11, "quorum_docs_examined": 11, "results_returned": 11}},
	} {
		before := figures()
		f.find("db", tc.request)
		after := figures()
		if len(after) != 8 {
			t.Errorf("figures %v", after)
		}
		tc.more["query_time"] = 1
		for name := range after {
			after[name] -= before[name]
		}
		maps.DeleteFunc(after, func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(after, tc.more) {
			t.Errorf("%s: %v more, want %v", tc.request, after, tc.more)
		}
	}
	text := apitest.Ask(t, f.h, "GET /_node/_local/_prometheus", "", "Authorization: Basic YWRtOnBhc3M=").Body.String()
	for _, line := range []string{"couchdb_mango_results_returned_total 44\n", "couchdb_mango_unindexed_queries_total 1\n", "couchdb_mango_query_time_seconds_count 5\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in the metrics", line)
		}
	}
}

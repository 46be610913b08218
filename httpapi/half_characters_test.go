package httpapi

import "testing"

// Half a character that leaves a script as text is U+FFFD, wherever it leaves, and stops
// nothing.
func TestHalfCharacters(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=1", nil)
	s.text(201, "PUT", "/db/e", `{"t":"ab\ud83d\ude00cd"}`)
	s.text(201, "PUT", "/db/_design/d", `{
		"views":{
			"key":{"map":"function (doc) { emit(doc.t.substring(0, 3), {v: doc.t.substring(0, 3), d: new Date(0)}); }"},
			"box":{"map":"function (doc) { emit(1, Object(doc.t.substring(0, 3))); }"},
			"sum":{"map":"function (doc) { emit(1, doc.t); }","reduce":"function (k, v) { return v[0].substring(0, 3); }"},
			"name":{"map":"function (doc) { var o = {}; o[doc.t.substring(0, 3)] = 1; emit(1, o); }"}},
		"shows":{"s":"function (doc) { return doc.t.substring(0, 3); }","h":"function (doc) { return {json: {x: doc.t.substring(3, 5)}}; }"},
		"lists":{"l":"function () { start({headers: {'X-Half': 'a'}}); send(getRow().value.v.charAt(2)); return 'ab\\ud83d'; }"},
		"updates":{"u":"function (doc) { log(doc.t.charAt(2)); doc.h = doc.t.substring(0, 3); return [doc, doc.t.charAt(3)]; }"},
		"validate_doc_update":"function (doc) { if (doc.refuse) { throw {forbidden: 'no \\ud83d'}; } }"}`)
	const view = "/db/_design/d/_view/"
	for path, want := range map[string]string{
		view + "key":                "{\"total_rows\":1,\"offset\":0,\"rows\":[\r\n{\"id\":\"e\",\"key\":\"ab\ufffd\",\"value\":{\"v\":\"ab\ufffd\",\"d\":\"1970-01-01T00:00:00.000Z\"}}\r\n]}\n",
		view + "box":                "{\"total_rows\":1,\"offset\":0,\"rows\":[\r\n{\"id\":\"e\",\"key\":1,\"value\":\"ab\ufffd\"}\r\n]}\n",
		view + "name":               "{\"total_rows\":1,\"offset\":0,\"rows\":[\r\n{\"id\":\"e\",\"key\":1,\"value\":{\"ab\ufffd\":1}}\r\n]}\n",
		view + "sum":                "{\"rows\":[\r\n{\"key\":null,\"value\":\"ab\ufffd\"}\r\n]}\n",
		"/db/_design/d/_show/s/e":   "ab\ufffd",
		"/db/_design/d/_show/h/e":   "{\"x\":\"\ufffdc\"}\n",
		"/db/_design/d/_list/l/key": "\ufffdab\ufffd",
	} {
		if got := s.text(200, "GET", path, nil); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := s.text(201, "POST", "/db/_design/d/_update/u/e", ""); got != "\ufffd" {
		t.Errorf("update: %q", got)
	}
	if got := s.text(200, "GET", "/db/_design/d/_show/s/e", nil); got != "ab\ufffd" {
		t.Errorf("stored: %q", got)
	}
	if got := s.text(403, "PUT", "/db/x", `{"refuse":true}`); got != "{\"error\":\"forbidden\",\"reason\":\"no \ufffd\"}\n" {
		t.Errorf("validation: %q", got)
	}
}

// What users of CouchDB reported of views: groups come in the order of keys, lists get the
// object of a POST, and the names of languages have no case.
func TestReportedOfViews(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=2", nil)
	for _, id := range []string{"a", "b", "c", "d"} {
		s.text(201, "PUT", "/db/"+id, `{"k":"`+id+`"}`)
	}
	s.text(201, "PUT", "/db/_design/d", `{"language":"JavaScript","views":{"c":{"map":"function (doc) { emit(doc.k, 1); }","reduce":"_count"}},
		"filters":{"f":"function (doc, req) { return typeof req.body === 'object' && req.body.doc_ids.length === 1; }"},
		"lists":{"l":"function (head, req) { return typeof req.body + ' ' + (req.body.keys || []).length; }"}}`)
	const rows = "\r\n{\"key\":\"c\",\"value\":1},\r\n{\"key\":\"a\",\"value\":1}\r\n]}\n"
	const view, keys = "/db/_design/d/_view/c", `?keys=["c","a","b"]&group=true&limit=2`
	for _, query := range []string{keys, keys + "&descending=true"} {
		if got := s.text(200, "GET", view+query, nil); got != "{\"rows\":["+rows {
			t.Errorf("%s: %q", query, got)
		}
	}
	if got := s.text(200, "POST", view+"/queries", `{"queries":[{"keys":["c","a","b"],"group":true,"descending":true,"limit":2}]}`); got != "{\"results\":[\r\n{\"rows\":["+rows[:len(rows)-1]+"\r\n]}\n" {
		t.Errorf("queries: %q", got)
	}
	if got := s.text(200, "POST", "/db/_design/d/_list/l/c?reduce=false", `{"keys":["a"],"keys":["a","b"]}`); got != "object 2" {
		t.Errorf("list: %q", got)
	}
	if got := s.text(200, "GET", "/db/_design/d/_list/l/c?reduce=false", nil); got != "string 0" {
		t.Errorf("list by GET: %q", got)
	}
}

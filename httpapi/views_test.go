package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// keeps is a view whose reduce function keeps everything: too much for the key
// "long", little for "short".
const keeps = `{"views": {"keeps": {
	"map": "function (doc) { for (var i = 0; i < doc.n; i++) { emit(doc.key, 'some text'); } }",
	"reduce": "function (keys, values, rereduce) { return rereduce ? [].concat.apply([], values) : values; }"},
	"own": {"map": "function (doc) { emit(doc.key, 1); }",
	"reduce": "function (keys, values, rereduce) { return {reduce_overflow_error: 'mine'}; }"}},
	"lists": {"rows": "function (head, req) { var row; while (row = getRow()) { send(JSON.stringify(row) + ';'); } }"}}`

// TestReduceOverflow: a reduction that is too long is an error of its row; other
// groups, and what a function says of itself, are values.
func TestReduceOverflow(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=2", nil)
	s.text(201, "POST", "/db/_bulk_docs", `{"docs": [{"_id": "a", "key": "long", "n": 600}, {"_id": "b", "key": "long", "n": 600},
		{"_id": "c", "key": "long", "n": 600}, {"_id": "d", "key": "short", "n": 2}]}`)
	s.text(201, "PUT", "/db/_design/r", keeps)

	const reason = `{"key":null,"error":"reduce_overflow_error","reason":"Reduce output must shrink more rapidly: input size: `
	whole := s.text(200, "GET", "/db/_design/r/_view/keeps", nil)
	if !strings.HasPrefix(whole, "{\"rows\":[\r\n"+reason) || !strings.HasSuffix(whole, " context: \"}\r\n]}\n") {
		t.Errorf("all rows: %.300s", whole)
	}
	groups := strings.Split(s.text(200, "GET", "/db/_design/r/_view/keeps?group=true", nil), "\r\n")
	if len(groups) != 4 || !strings.HasPrefix(groups[1], reason) || !strings.HasSuffix(groups[1], ` context: "},`) ||
		groups[2] != `{"key":"short","value":["some text","some text"]}` {
		t.Errorf("groups: %.300q", groups)
	}
	if got := s.text(200, "GET", "/db/_design/r/_list/rows/keeps?group=true", nil); !strings.HasPrefix(got, reason) ||
		!strings.HasSuffix(got, ` context: "};{"key":"short","value":["some text","some text"]};`) {
		t.Errorf("the rows of a list: %.300s", got)
	}
	if got := s.text(200, "GET", "/db/_design/r/_view/own", nil); !strings.Contains(got, `{"key":null,"value":{"reduce_overflow_error":"mine"}}`) {
		t.Errorf("a value that looks like it: %s", got)
	}
}

// TestRowsWithinKeys: startkey_docid and endkey_docid count within each key, and rows of
// one document under one key come in the same order in both directions.
func TestRowsWithinKeys(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=2", nil)
	s.text(201, "POST", "/db/_bulk_docs", `{"docs": [{"_id": "a"}, {"_id": "b"}, {"_id": "c"}, {"_id": "d"}]}`)
	s.text(201, "PUT", "/db/_design/r", `{"views": {"v": {
		"map": "function (doc) { emit(1, 'y'); emit(1, 'x'); emit(2, 'z'); }", "reduce": "_count"}}}`)
	for query, want := range map[string]string{
		`keys=[2,1]&startkey_docid=b&endkey_docid=c`:                 "b2z c2z b1x b1y c1x c1y",
		`keys=[2,1]&startkey_docid=c&endkey_docid=b`:                 "",
		`keys=[2,1]&startkey_docid=c&endkey_docid=b&descending=true`: "c1x c1y b1x b1y c2z b2z",
		`keys=[2,1]&startkey_docid=d`:                                "d2z d1x d1y",
		`keys=[1,2]&endkey_docid=b&inclusive_end=false`:              "a1x a1y a2z",
		`keys=[1,2]&inclusive_end=false`:                             "",
		`keys=[1]&startkey_docid=d`:                                  "d1x d1y",
		`key=1&descending=true&endkey_docid=c`:                       "d1x d1y c1x c1y",
		`key=1&descending=true&endkey_docid=c&limit=1&skip=1`:        "d1y",
	} {
		var answer struct {
			Rows []struct {
				ID    string
				Key   int
				Value string
			}
		}
		apitest.Must(t, json.Unmarshal([]byte(s.text(200, "GET", "/db/_design/r/_view/v?reduce=false&"+query, nil)), &answer))
		var got []string
		for _, r := range answer.Rows {
			got = append(got, fmt.Sprint(r.ID, r.Key, r.Value))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	if got := s.text(200, "GET", `/db/_design/r/_view/v?group=true&keys=[2,1]&startkey_docid=b&endkey_docid=c`, nil); got !=
		"{\"rows\":[\r\n{\"key\":2,\"value\":2},\r\n{\"key\":1,\"value\":4}\r\n]}\n" {
		t.Errorf("groups: %s", got)
	}
}

// TestGroupingNeedsReduce: grouping of a view that is not reduced is refused in every
// form of request.
func TestGroupingNeedsReduce(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?partitioned=true", nil)
	s.text(201, "PUT", "/db/p:a", `{"k": 1}`)
	const views = `"views": {"plain": {"map": "function (doc) { emit(doc.k, 1); }"},
		"red": {"map": "function (doc) { emit(doc.k, 1); }", "reduce": "_count"}},
		"lists": {"all": "function () { while (getRow()) {} return 'all'; }"}`
	s.text(201, "PUT", "/db/_design/whole", `{"options": {"partitioned": false}, `+views+`}`)
	s.text(201, "PUT", "/db/_design/part", `{`+views+`}`)
	for _, way := range []string{"whole/_view/plain?", "whole/_view/red?reduce=false&"} {
		for _, grouping := range []struct{ query, body string }{
			{"group=true", `"group":true`}, {"group_level=1", `"group_level":1`}, {"group=true&group_level=2", `"group":true,"group_level":2`},
		} {
			whole := "/db/_design/" + way
			path, query, _ := strings.Cut(whole, "?")
			part := strings.Replace(whole, "/db/_design/whole", "/db/_partition/p/_design/part", 1)
			partPath, _, _ := strings.Cut(part, "?")
			for _, ask := range []struct{ method, path, body string }{
				{"GET", whole + grouping.query, ""},
				{"HEAD", whole + grouping.query, ""},
				{"GET", whole + grouping.query + "&keys=[1]", ""},
				{"GET", whole + grouping.query + "&keys=[1,2]", ""},
				{"GET", whole + grouping.query + "&limit=0", ""},
				{"POST", whole + grouping.query, `{}`},
				{"POST", whole + grouping.query, `{"keys":[]}`},
				{"POST", whole + grouping.query, `{"keys":[1]}`},
				{"POST", whole + grouping.query, `{"keys":[1,2]}`},
				{"POST", whole, `{` + grouping.body + `}`},
				{"POST", path + "/queries?" + query, `{"queries":[{` + grouping.body + `}]}`},
				{"POST", path + "/queries?" + query, `{"queries":[{},{` + grouping.body + `}]}`},
				{"POST", path + "/queries?" + query + grouping.query, `{"queries":[{}]}`},
				{"POST", path + "/queries?" + query + grouping.query, `{"queries":[{"keys":[1,2]}]}`},
				{"GET", part + grouping.query, ""},
				{"POST", part + grouping.query, `{}`},
				{"POST", partPath + "/queries?" + query, `{"queries":[{` + grouping.body + `}]}`},
				{"GET", strings.Replace(whole, "/_view/", "/_list/all/", 1) + grouping.query, ""},
			} {
				var body any
				if ask.body != "" {
					body = ask.body
				}
				got := s.text(400, ask.method, ask.path, body)
				if ask.method != "HEAD" && !strings.Contains(got, `"Invalid use of grouping on a map view."`) {
					t.Errorf("%s %s %s: %s", ask.method, ask.path, ask.body, got)
				}
			}
		}
	}
	s.text(400, "GET", "/db/_all_docs?group=true", nil)
	s.text(400, "POST", "/db/_all_docs/queries", `{"queries":[{"group_level":1}]}`)
	s.text(200, "GET", "/db/_design/whole/_view/plain?group=false&group_level=0", nil)
	s.text(200, "GET", "/db/_design/whole/_view/red?group_level=1", nil)
	s.text(200, "GET", "/db/_partition/p/_design/part/_view/red?group=true", nil)
}

// TestEvalIsOff: functions make no code of text unless the setting says so, and the versions
// of the node tell.
func TestEvalIsOff(t *testing.T) {
	s := newSite(t, nil)
	for _, on := range []string{"true", "false"} {
		s.text(200, "PUT", "/_node/_local/_config/query_server_config/allow_eval", `"`+on+`"`)
		got := s.text(200, "GET", "/_node/_local/_versions", nil)
		if !strings.Contains(got, `"javascript_engine":{"name":"quickjs",`) || !strings.Contains(got, `"eval":`+on+`}`) {
			t.Errorf("allow_eval %s: %s", on, got)
		}
	}
	s.text(201, "PUT", "/db", nil)
	s.text(201, "PUT", "/db/a", `{}`)
	s.text(201, "PUT", "/db/_design/r", `{"views": {"v": {"map": "function (doc) { var glob = emit.constructor('return this')(); emit(doc._id, null); }"}}}`)
	if got := s.text(200, "GET", "/db/_design/r/_view/v", nil); !strings.HasPrefix(got, `{"total_rows":0,`) {
		t.Errorf("rows by eval: %s", got)
	}
}

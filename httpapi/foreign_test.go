package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"divan/httpapi/apitest"
	"divan/httpapi/core"
)

// What clients made for CouchDB were seen to do, beside what the transcripts
// of golden show.

// A local document takes attachments and keeps none, whichever way it comes.
func TestLocalDropsAttachments(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	const atts = `"_attachments":{"a.txt":{"content_type":"text/plain","data":"aGVsbG8="}}`
	s.text(201, "PUT", "/db/_local/put", `{"v":1,`+atts+`}`)
	s.text(201, "POST", "/db", `{"_id":"_local/post","v":1,`+atts+`}`)
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"_local/bulk","v":1,`+atts+`}]}`)
	part := "--xyz\r\n\r\n" + `{"v":1,"_attachments":{"a":{"follows":true,"length":5}}}` + "\r\n--xyz\r\n\r\nhello\r\n--xyz--"
	s.text(201, "PUT", "/db/_local/parts", part, "Content-Type: multipart/related; boundary=xyz")
	for _, id := range []string{"put", "post", "bulk", "parts"} {
		want := `{"_id":"_local/` + id + `","_rev":"0-1","v":1}` + "\n"
		if got := s.text(200, "GET", "/db/_local/"+id+"?attachments=true", nil); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// In a partitioned database an id without a partition is refused, for reading
// too.
func TestIDWithoutPartition(t *testing.T) {
	const illegal = `"error":"illegal_docid","reason":"Doc id must be of form partition:id"`
	follow(t, nodeAPI(t, nil), []visit{
		{"adm", "PUT", "/db?partitioned=true", "", 201, ""},
		{"adm", "PUT", "/db/p:a", "{}", 201, ""},
		{"adm", "GET", "/db/a", "", 400, "{" + illegal + "}"},
		{"adm", "GET", "/db/a?open_revs=all", "", 400, "{" + illegal + "}"},
		{"adm", "GET", "/db/a/file", "", 400, "{" + illegal + "}"},
		{"adm", "GET", "/db/:", "", 404, ""},
		{"adm", "GET", "/db/_design/d", "", 404, ""},
		{"adm", "GET", "/db/_local/l", "", 404, ""},
		{
			"adm", "POST", "/db/_bulk_get", `{"docs":[{"id":"a"},{"id":"b","rev":"1-x"}]}`, 200,
			`{"results":[{"id":"a","docs":[{"error":{"id":"a","rev":null,` + illegal + `}}]},` +
				`{"id":"b","docs":[{"error":{"id":"b","rev":"1-x",` + illegal + `}}]}]}`,
		},
		{"adm", "POST", "/db/_purge", `{"p:a":["1-x"],"a":["1-x"]}`, 400, "{" + illegal + "}"},
	})
}

// all_or_nothing is refused for each document, and none is written.
func TestAllOrNothing(t *testing.T) {
	const refused = `"rev":"0-","error":"not_implemented","reason":"all_or_nothing is not supported"}`
	follow(t, nodeAPI(t, nil), []visit{
		{"adm", "PUT", "/db", "", 201, ""},
		{
			"adm", "POST", "/db/_bulk_docs", `{"all_or_nothing":true,"docs":[{"_id":"a"},{"_id":"b","_rev":"1-x"}]}`, 417,
			`[{"id":"a",` + refused + `,{"id":"b",` + refused + `]`,
		},
		{"adm", "GET", "/db/a", "", 404, ""},
		{"adm", "POST", "/db/_bulk_docs", `{"all_or_nothing":true,"docs":[{"_id":""}]}`, 400, ""},
		{"adm", "POST", "/db/_bulk_docs", `{"all_or_nothing":true,"docs":[]}`, 417, `[]`},
		{"adm", "POST", "/db/_bulk_docs", `{"all_or_nothing":false,"docs":[{"_id":"a"}]}`, 201, ""},
		{"adm", "POST", "/db/_bulk_docs", `{"new_edits":false,"all_or_nothing":true,"docs":[{"_id":"r","_rev":"1-abc"}]}`, 201, `[]`},
		{"adm", "GET", "/db/r", "", 200, `{"_id":"r","_rev":"1-abc"}`},
	})
}

// The position of a revision may have a plus sign wherever one is named.
func TestRevWithPlus(t *testing.T) {
	a := nodeAPI(t, nil)
	follow(t, a, []visit{
		{"adm", "PUT", "/db", "", 201, ""},
		{"adm", "PUT", "/db/d?new_edits=false", `{"_rev":"+1-a"}`, 201, `{"ok":true,"id":"d","rev":"1-a"}`},
		{"adm", "GET", "/db/d?rev=%2B1-a", "", 200, `{"_id":"d","_rev":"1-a"}`},
		{"adm", "GET", "/db/d?rev=+1-a", "", 400, ""},
		{"adm", "GET", "/db/d?open_revs=[%22%2B1-a%22]", "", 200, ""},
		{
			"adm", "POST", "/db/_bulk_get", `{"docs":[{"id":"d","rev":"+1-a"}]}`, 200,
			`{"results":[{"id":"d","docs":[{"ok":{"_id":"d","_rev":"1-a"}}]}]}`,
		},
		{"adm", "POST", "/db/_revs_diff", `{"d":["+1-a","+2-b"]}`, 200, `{"d":{"missing":["2-b"],"possible_ancestors":["1-a"]}}`},
	})
	if w := apitest.Ask(t, a, "PUT /db/d", "{}", "Authorization: Basic YWRtOnBhc3M=", `If-Match: "+1-a"`); w.Code != 201 {
		t.Errorf("If-Match: %d %s", w.Code, w.Body)
	}
}

// purge_seq is a string like update_seq, wherever a database is described: a purge
// moves it, and nothing else does.
func TestPurgeSeqIsAString(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=2", nil)
	seq := func() string {
		t.Helper()
		var one struct {
			Purge string `json:"purge_seq"`
		}
		var all []struct {
			Info struct {
				Purge string `json:"purge_seq"`
			}
		}
		apitest.Must(t, json.Unmarshal([]byte(s.text(200, "GET", "/db", nil)), &one))
		apitest.Must(t, json.Unmarshal([]byte(s.text(200, "POST", "/_dbs_info", `{"keys":["db"]}`)), &all))
		if len(all) != 1 || all[0].Info.Purge != one.Purge {
			t.Errorf("%q, in a list %+v", one.Purge, all)
		}
		return one.Purge
	}
	empty := seq()
	rev := s.rev(s.text(201, "PUT", "/db/a", `{}`))
	if got := seq(); got != empty || !strings.HasPrefix(got, "0-") {
		t.Errorf("%q, behind an edit %q", empty, got)
	}
	s.text(201, "POST", "/db/_purge", `{"a":["`+rev+`"]}`)
	if got := seq(); !strings.HasPrefix(got, "1-") {
		t.Errorf("behind a purge %q", got)
	}
}

// The version is CouchDB's, by which clients choose; the program's is that of the vendor.
func TestVersions(t *testing.T) {
	out := newSite(t, nil).text(200, "GET", "/", nil)
	for _, want := range []string{`"version":"` + core.CouchDBVersion + `","git_sha"`, `"vendor":{"name":"Divan","version":"0.1.0"}`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s, want %s", out, want)
		}
	}
}

// A 304 has neither a body nor the length of one, which net/http leaves out.
func TestNotModifiedHasNoLength(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	rev := s.rev(s.text(201, "PUT", "/db/a", `{}`))
	for tag, want := range map[string]int{rev: 304, "1-x": 200} {
		res := s.do("GET", "/db/a", nil, `If-None-Match: "`+tag+`"`)
		if has := res.Header.Get("Content-Length") != ""; res.StatusCode != want || has != (want == 200) {
			t.Errorf("%s: %d %v", tag, res.StatusCode, res.Header)
		}
	}
}

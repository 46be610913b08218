package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// Batches do not show: every entry is answered, in the order asked, even when other
// entries are wrong.
func TestBulkGetBatches(t *testing.T) {
	a := nodeAPI(t, nil)
	follow(t, a, []visit{{"adm", "PUT", "/db?q=3", "", 201, ""}})
	var docs, wanted, want []string
	for i := range 600 {
		id := fmt.Sprintf("d%d", i)
		switch i % 5 {
		case 3:
			wanted = append(wanted, `{"id":"no`+id+`"}`)
			want = append(want, `{"id":"no`+id+`","docs":[{"error":{"id":"no`+id+`","rev":"undefined","error":"not_found","reason":"missing"}}]}`)
			continue
		case 4:
			wanted = append(wanted, `{"id":"`+id+`","rev":"x"}`)
			want = append(want, `{"id":"`+id+`","docs":[{"error":{"id":"`+id+`","rev":"x","error":"bad_request","reason":"Invalid rev format"}}]}`)
			continue
		}
		docs = append(docs, `{"_id":"`+id+`","_rev":"1-a","n":"`+strings.Repeat("x", i*i%900)+`"}`)
		wanted = append(wanted, `{"id":"`+id+`","rev":"1-a"}`)
		want = append(want, `{"id":"`+id+`","docs":[{"ok":`+docs[len(docs)-1]+`}]}`)
	}
	follow(t, a, []visit{
		{"adm", "POST", "/db/_bulk_docs", `{"new_edits":false,"docs":[` + strings.Join(docs, ",") + `]}`, 201, "[]"},
		{"adm", "POST", "/db/_bulk_get", `{"docs":[` + strings.Join(wanted, ",") + `]}`, 200, `{"results":[` + strings.Join(want, ",") + `]}`},
		{"adm", "POST", "/db/_bulk_get", `{"docs":[]}`, 200, `{"results":[]}`},
	})
}

func TestIfRange(t *testing.T) {
	a := nodeAPI(t, nil)
	const basic, letters = "Authorization: Basic YWRtOnBhc3M=", "abcdefghijklmnopqrstuvwxyz"
	follow(t, a, []visit{{"adm", "PUT", "/db", "", 201, ""}})
	if w := apitest.Ask(t, a, "PUT /db/doc/att", letters, basic, "Content-Type: application/octet-stream"); w.Code != http.StatusCreated {
		t.Fatal(w.Code, w.Body)
	}
	etag := apitest.Ask(t, a, "GET /db/doc/att", "", basic).Header().Get("Etag")
	for _, c := range []struct {
		ifRange string
		partial bool
	}{
		{etag, true},
		{" " + etag, true},
		{"W/" + etag, false},
		{strings.Trim(etag, `"`), false},
		{`"another"`, false},
		{"*", false},
		{etag + ", " + etag, false},
		{"Wed, 21 Oct 2015 07:28:00 GMT", false},
		{"Fri, 31 Dec 9999 23:59:59 GMT", false},
	} {
		for _, ranges := range []string{"bytes=2-4", "bytes=0-0,2-4", "bytes=90-"} {
			w := apitest.Ask(t, a, "GET /db/doc/att", "", basic, "Range: "+ranges, "If-Range: "+c.ifRange)
			full := w.Code == http.StatusOK && w.Body.String() == letters && w.Header().Get("Content-Range") == ""
			if full == c.partial {
				t.Errorf("%s, %s: %d %s", c.ifRange, ranges, w.Code, w.Body)
			}
		}
	}
}

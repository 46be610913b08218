package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"divan/cluster/config"
)

// Batches do not show: every entry is answered, in the order asked, whatever
// is wrong with others.
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

// However small the documents of a batch are, those of the next one may be as
// large as the database takes: see cluster.Window.
func TestBulkGetIsBounded(t *testing.T) {
	a := nodeAPI(t, config.Values{"couchdb": {"max_document_size": "5000000"}})
	follow(t, a, []visit{{"adm", "PUT", "/db", "", 201, ""}, {"adm", "PUT", "/db/d", "{}", 201, ""}})
	c, _ := testCall(t, a, "POST /db/_bulk_get", "", "Authorization: Basic YWRtOnBhc3M=")
	c.dbName = "db"
	must(t, c.openDatabase())
	r := c.newBulkGetReader(&docOptions{}, make([]bulkGetItem, 1000))
	for i := range r.items {
		r.items[i].id = "d"
	}
	for i := range r.items {
		results, err := r.read(i)
		if n := r.end - r.first; err != nil || len(results) != 1 || n > 52 || (i > 16 && n < 10) {
			t.Fatalf("entry %d: %v, %v, in a batch of %d", i, results, err, n)
		}
	}
}

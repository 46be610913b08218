package httpapi

import (
	"fmt"
	"strings"
	"testing"
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

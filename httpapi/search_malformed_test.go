package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// TestMalformedFacetsInPartition: a search in a partition refuses counts, ranges and
// drilldown before it looks at their values, which CouchDB's index parses.
func TestMalformedFacetsInPartition(t *testing.T) {
	a := nodeAPI(t, nil)
	const indexes = `"indexes":{"i":{"index":"function(d){index('default',d.t,{facet:true})}"}}`
	for _, put := range [][2]string{
		{"/x?partitioned=true", ""},
		{"/x/_design/d", `{` + indexes + `}`},
		{"/x/_design/all", `{"options":{"partitioned":false},` + indexes + `}`},
		{"/x/p:1", `{"t":"red"}`},
	} {
		if w := apitest.Ask(t, a, "PUT "+put[0], put[1], asAdmin, jsonBody); w.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", put[0], w.Code, w.Body)
		}
	}
	for _, wrong := range []string{`"counts":"v"`, `"ranges":{"n":{"a":"[0 TO"}}`, `"ranges":[]`, `"drilldown":"place"`, `"drilldown":["v",1]`} {
		body := `{"q":"*:*",` + wrong + `}`
		w := apitest.Ask(t, a, "POST /x/_partition/p/_design/d/_search/i", body, asAdmin, jsonBody)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "are incompatible") {
			t.Errorf("%s in a partition: %d %s", wrong, w.Code, w.Body)
		}
		w = apitest.Ask(t, a, "POST /x/_design/all/_search/i", body, asAdmin, jsonBody)
		if w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "are incompatible") {
			t.Errorf("%s: %d %s", wrong, w.Code, w.Body)
		}
	}
	twice := `{"q":"*:*","drilldown":["default","blue"],"drilldown":["default","red"]}`
	if w := apitest.Ask(t, a, "POST /x/_design/all/_search/i", twice, asAdmin, jsonBody); !strings.Contains(w.Body.String(), `"total_rows":1`) {
		t.Errorf("of two members drilldown the last counts: %d %s", w.Code, w.Body)
	}
}

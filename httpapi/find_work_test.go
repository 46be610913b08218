package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestFirstRowCostsLittle: of 10,000 documents in 8 shards a query that wants one looks at those up
// to the first that matches, and the one behind it of the shard; no more is read ahead.
func TestFirstRowCostsLittle(t *testing.T) {
	f := &finder{t, nodeAPI(t, nil)}
	f.ask("PUT /db?q=8", "", nil)
	for i := range 10 {
		var b strings.Builder
		b.WriteString(`{"docs":[`)
		for k := range 1000 {
			if k > 0 {
				b.WriteByte(',')
			}
			n := i*1000 + k
			fmt.Fprintf(&b, `{"_id":"d%05d","n":%d,"of":%d}`, n, n, n/5000)
		}
		f.ask("POST /db/_bulk_docs", b.String()+"]}", nil)
	}
	for request, most := range map[string]int{
		`{"selector":{"n":{"$gte":0}},"limit":1,"execution_stats":true}`: 2,
		`{"selector":{"of":1},"limit":1,"execution_stats":true}`:         5002,
	} {
		got := f.find("db", request)
		if got.Stats == nil || got.Stats.Docs > most {
			t.Errorf("%s: %+v, want %d documents at most", request, got.Stats, most)
		}
	}
}

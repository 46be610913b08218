package query

import (
	"fmt"
	"strings"
	"testing"
)

// benchDoc is a document of about 1 KB with 24 members.
func benchDoc() []byte {
	var b strings.Builder
	b.WriteString(`{"_id":"user-000123","_rev":"3-0123456789abcdef0123456789abcdef","type":"user","age":42,"balance":1024.75`)
	for i := range 16 {
		fmt.Fprintf(&b, `,"member%02d":"some text of a usual length %d"`, i, i)
	}
	b.WriteString(`,"address":{"city":"Zürich","zip":"8001"},"tags":["red","green"],"name":"Ann Other","active":true}`)
	return []byte(b.String())
}

func BenchmarkMatch(b *testing.B) {
	doc := benchDoc()
	for _, c := range []struct{ name, selector string }{
		{"two-near", `{"type":"user","age":{"$gt":30}}`},
		{"two-far", `{"name":"Ann Other","active":true}`},
		{"missing", `{"nope":1,"none":2}`},
		{"string-order", `{"name":{"$gte":"Ann","$lt":"Bob"}}`},
		{"decimal", `{"balance":{"$gt":1000.5}}`},
		{"nested-unicode", `{"address.city":{"$gt":"Zug"}}`},
		{"in", `{"type":{"$in":["user","admin","guest"]},"age":{"$in":[1,2,42]}}`},
		{"elemMatch", `{"tags":{"$elemMatch":{"$eq":"green"}}}`},
		{"regex", `{"name":{"$regex":"^Ann"}}`},
		{"lookahead", `{"name":{"$regex":"^(?=Ann)"}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := Parse([]byte(c.selector))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			w := NewWork(b.Context(), nil)
			for b.Loop() {
				_, _ = s.Match(w, doc)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	text := []byte(`{"type":"user","age":{"$gt":30},"$or":[{"name":{"$regex":"^A"}},{"tags":{"$in":["red"]}}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

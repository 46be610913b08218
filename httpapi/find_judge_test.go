package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestTextWithoutDefault: no document is a match because nothing could judge $text. An index
// of all fields whose default field is off finds nothing; without one that may be asked the
// query is refused, and so are filters of changes and of indexes.
func TestTextWithoutDefault(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"a","n":1,"word":"odd"},{"_id":"b","n":2}]}`)
	refused := func(method, path, body string) {
		t.Helper()
		if got := s.text(400, method, path, body); !strings.Contains(got, "no index available for this selector") {
			t.Errorf("%s %s: %s", path, body, got)
		}
	}
	ask := func() {
		t.Helper()
		for _, selector := range []string{`{"$text":"odd"}`, `{"$or":[{"n":1},{"$text":"odd"}]}`, `{"_id":"a","$text":"odd"}`} {
			refused("POST", "/db/_find", `{"selector":`+selector+`}`)
			refused("POST", "/db/_explain", `{"selector":`+selector+`}`)
		}
	}
	ask()
	refused("POST", "/db/_changes?filter=_selector", `{"selector":{"$text":"odd"}}`)
	refused("POST", "/db/_index", `{"index":{"fields":["n"],"partial_filter_selector":{"$text":"odd"}}}`)
	s.text(200, "POST", "/db/_index", `{"type":"text","ddoc":"n","name":"n","index":{"default_field":false,"fields":[{"name":"n","type":"number"}]}}`)
	ask()
	s.text(200, "POST", "/db/_index", `{"type":"text","ddoc":"all","name":"all","index":{"default_field":{"enabled":false}}}`)
	if a := findDocs(t, s, `"selector":{"$text":"odd"},"use_index":"all"`); len(a.Docs) != 0 {
		t.Errorf("%+v", a)
	}
}

// TestTextOrder: an order in an index of full text is one of the values of one type.
func TestTextOrder(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"string","v":"b"},{"_id":"number","v":5},{"_id":"null","v":null},{"_id":"bool","v":false},{"_id":"list","v":["a",1]},{"_id":"none"}]}`)
	s.text(200, "POST", "/db/_index", `{"type":"text","ddoc":"t","name":"t","index":{}}`)
	for selector, want := range map[string]string{
		`{"v":{"$lt":"x"}}`: "string", `{"v":{"$gte":"a"}}`: "string", `{"v":{"$gt":1}}`: "number", `{"v":{"$lte":9}}`: "number", `{"v":{"$lt":true}}`: "bool",
		`{"v":{"$not":{"$gt":7}}}`: "number", `{"v":{"$elemMatch":{"$lt":"x"}}}`: "list", `{"v":{"$elemMatch":{"$gt":true}}}`: "",
	} {
		var got []string
		for _, d := range findDocs(t, s, `"selector":`+selector+`,"use_index":"t"`).Docs {
			got = append(got, d.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", selector, got, want)
		}
	}
}

// TestLargeIntegers: integers that have one double are told apart by every reader.
func TestLargeIntegers(t *testing.T) {
	const a, b = "1895131128281567232", "1895131128281567233"
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(201, "POST", "/db/_bulk_docs", fmt.Sprintf(`{"docs":[{"_id":"a","n":%s,"l":[%[1]s]},{"_id":"b","n":%s,"l":[%[2]s]}]}`, a, b))
	for _, index := range []string{"", `{"index":{"fields":["n"]},"ddoc":"n"}`, `{"type":"text","index":{},"ddoc":"t"}`} {
		if index != "" {
			s.text(200, "POST", "/db/_index", index)
		}
		use := ""
		if strings.Contains(index, "text") {
			use = `,"use_index":"t"`
		}
		for condition, want := range map[string]string{
			b: "b", `{"$gt":` + a + `}`: "b", `{"$lt":` + b + `}`: "a", `{"$ne":` + a + `}`: "b", `{"$in":[` + b + `]}`: "b", `{"$nin":[` + a + `]}`: "b",
			`{"$gte":` + a + `.0}`: "a b", `{"$lte":` + a + `.0}`: "a", `{"$mod":[10,3]}`: "b",
		} {
			var got []string
			for _, d := range findDocs(t, s, `"selector":{"n":`+condition+`}`+use).Docs {
				got = append(got, d.ID)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s %s: %v, want %s", index, condition, got, want)
			}
		}
	}
	if got := s.text(200, "POST", "/db/_changes?filter=_selector", `{"selector":{"l":{"$elemMatch":{"$eq":`+b+`}}}}`); strings.Contains(got, `"id":"a"`) || !strings.Contains(got, `"id":"b"`) {
		t.Error(got)
	}
}

package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// indexed is the part of an answer that names an index.
type indexed struct{ Result, ID, Name string }

// create makes an index and returns what the answer says of it.
func create(t *testing.T, s *site, body string) (out indexed) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.text(200, "POST", "/db/_index", body)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// An index that was deleted can be made again, whichever way it was deleted.
func TestIndexAgain(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	const body = `{"index":{"fields":["a"]},"ddoc":"d","name":"by-a"}`
	for way, remove := range map[string]func(){
		"by name":         func() { s.text(200, "DELETE", "/db/_index/d/json/by-a", nil) },
		"with _design/":   func() { s.text(200, "DELETE", "/db/_index/_design/d/json/by-a", nil) },
		"as pouchdb-find": func() { s.text(200, "DELETE", "/db/_index/"+url.PathEscape("_design/d")+"/json/by-a", nil) },
		"with others":     func() { s.text(200, "POST", "/db/_index/_bulk_delete", `{"docids":["_design/d"]}`) },
		"as a document": func() {
			var d struct {
				Rev string `json:"_rev"`
			}
			if err := json.Unmarshal([]byte(s.text(200, "GET", "/db/_design/d", nil)), &d); err != nil {
				t.Fatal(err)
			}
			s.text(200, "DELETE", "/db/_design/d?rev="+d.Rev, nil)
		},
	} {
		for range 2 {
			if got := create(t, s, body); got.Result != "created" {
				t.Fatalf("%s: %+v", way, got)
			}
			if got := create(t, s, body); got.Result != "exists" {
				t.Fatalf("%s: %+v", way, got)
			}
			remove()
			s.text(404, "GET", "/db/_design/d", nil)
		}
	}
	s.text(404, "DELETE", "/db/_index/d/json/by-a", nil)
	s.text(400, "POST", "/db/_index", `{"index":{"fields":["a"]},"ddoc":"_design/"}`)
}

// The name of an index that is made without one is of its definition.
func TestIndexWithoutName(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	names := map[string]bool{}
	for _, body := range []string{`{"index":{"fields":["a"]}}`, `{"index":{"fields":["b"]}}`, `{"index":{},"type":"text"}`, `{"index":{"fields":[{"name":"a","type":"string"}]},"type":"text"}`} {
		first := create(t, s, body)
		if len(first.Name) != 40 || strings.Trim(first.Name, "0123456789abcdef") != "" || first.Result != "created" || names[first.Name] {
			t.Errorf("%s: %+v", body, first)
		}
		names[first.Name] = true
		if again := create(t, s, body); again.Name != first.Name || again.ID != first.ID || again.Result != "exists" {
			t.Errorf("%s: %+v after %+v", body, again, first)
		}
	}
}

// Two indexes of the same fields are in design documents of their own, and each is a
// view that counts.
func TestIndexIsView(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	one, two := create(t, s, `{"index":{"fields":["a"]},"name":"one"}`), create(t, s, `{"index":{"fields":["a"]},"name":"two"}`)
	if one.ID == two.ID {
		t.Errorf("both are in %s", one.ID)
	}
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"a":1},{"a":1},{"a":2},{"b":1}]}`)
	for query, want := range map[string]string{
		"":            `{"rows":[{"key":null,"value":3}]}`,
		"?group=true": `{"rows":[{"key":[1],"value":2},{"key":[2],"value":1}]}`,
		"?key=[1];":   `{"rows":[{"key":null,"value":2}]}`,
	} {
		got := s.text(200, "GET", "/db/"+one.ID+"/_view/one"+query, nil)
		if got = strings.NewReplacer("\n", "", "\r", "").Replace(got); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	s.text(200, "GET", "/db/_index?limit=2;", nil) // a semicolon ends a parameter
}

// Of members of one name the last one counts, in selectors too.
func TestSelectorRepeats(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[{"_id":"one","a":1},{"_id":"two","a":2,"b":{"c":3}},{"_id":"three","a":8,"a":9}]}`)
	for selector, want := range map[string]string{
		`{"a":1,"a":2}`:                     "two",
		`{"b":{"c":1,"c":3}}`:               "two",
		`{"a":{"$gt":5,"$gt":0,"$lt":2}}`:   "one",
		`{"$or":[{"a":3}],"$or":[{"a":1}]}`: "one",
		`{"a":9}`:                           "three",
	} {
		var out struct {
			Docs []struct {
				ID string `json:"_id"`
			}
		}
		if err := json.Unmarshal([]byte(s.text(200, "POST", "/db/_find", `{"selector":`+selector+`}`)), &out); err != nil {
			t.Fatal(err)
		}
		if len(out.Docs) != 1 || out.Docs[0].ID != want {
			t.Errorf("%s: %v", selector, out.Docs)
		}
	}
	if got := s.text(200, "POST", "/db/_find", `{"selector":{"a":8}}`); !strings.HasPrefix(got, "{\"docs\":[\r\n],") {
		t.Errorf("the first of two members counts: %s", got)
	}
}

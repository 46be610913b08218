package query

import (
	"bytes"
	"errors"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

// seeds are selectors of every operator.
func seeds() []string {
	return []string{
		`{}`, `{"a":1}`, `{"a":{"b":{"$gt":null}},"c":[]}`, `{"$and":[{"a":{"$lt":1.5}},{}]}`, `{"$or":[]}`,
		`{"$nor":[{"a":{"$in":[1,"b",[2]]}}]}`, `{"$not":{"a":{"$nin":[]}}}`, `{"a":{"$all":[[1]]}}`,
		`{"a":{"$elemMatch":{"$not":{"k":1}}}}`, `{"a":{"$allMatch":{"$nor":[{"$gt":1}]}}}`,
		`{"a":{"$keyMapMatch":{"$gte":"k"}}}`, `{"a\\.b":{"$exists":false}}`, `{"a":{"$type":"null"}}`,
		`{"a":{"$mod":[3,-1]}}`, `{"a":{"$size":1}}`, `{"a":{"$regex":"^(?=a)b$"}}`, `{"a":{"$beginsWith":"\u00e9"}}`,
		`{"_id":{"$gt":[]}}`, `{"$text":"x"}`, `{"a":{"$default":{"$text":1}}}`, `{"a":{"$where":1}}`, `{"a":{"$eq":{"x":[1e3]}}}`,
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	document := []byte(`{"_id":"x","a":{"b":[1,"two",{"k":null}]},"c":"é","d":-1.5}`)
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err != nil {
			var refusal *fault.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("%q: an internal error: %v", text, err)
			}
			if refusal.Kind == fault.InvalidSelector && (refusal.Code == "" || refusal.Reason == "") {
				t.Fatalf("%q: %#v", text, refusal)
			}
			return
		}
		_, _ = s.Match(NewWork(t.Context(), nil), document) // must return for any document
		if s.root == nil {
			return
		}
		// The normal form is its own normal form.
		normal := string(s.Append(nil))
		again, err := Parse([]byte(normal))
		if err == nil && string(again.Append(nil)) != normal {
			t.Fatalf("%q: %s becomes %s", text, normal, string(again.Append(nil)))
		}
	})
}

func FuzzMatch(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s), []byte(`{"_id":"x","a":{"b":[1,"two",{"k":null}]},"c":"é","d":-1.5}`))
		f.Add([]byte(s), []byte(`{"a":["k",1,[2],{"k":1}],"a.b":"\"\\","a":2}`))
	}
	f.Fuzz(func(t *testing.T, selector, document []byte) {
		s, err := Parse(selector)
		if err != nil {
			return
		}
		got, _ := s.Match(NewWork(t.Context(), nil), document)
		canonical, err := doc.Canonical(nil, document)
		if err != nil || !doc.IsObject(canonical) || bytes.Contains(selector, []byte("$regex")) {
			return
		}
		if !bytes.Equal(document, canonical) {
			got = s.matches(canonical)
		}
		text, err := doc.Canonical(nil, selector)
		if err != nil {
			t.Fatal(err)
		}
		if want := matchSlowly(t, text, canonical); got != want {
			t.Fatalf("selector %s (normal: %s)\ndocument %s: %v, want %v", text, normalText(s), canonical, got, want)
		}
	})
}

func normalText(s *Selector) string {
	if s.root == nil {
		return "{}"
	}
	return string(s.Append(nil))
}

package search

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"divan/shard/search/syntax"
	"divan/storage/doc"
	"divan/storage/fault"
)

func parse(t *testing.T, dialect syntax.Dialect, index string) *Definition {
	t.Helper()
	d, err := Parse([]byte(`{"`+member(dialect)+`":{"i":`+index+`}}`), dialect, "i", false)
	if err != nil {
		t.Fatalf("%s: %v", index, err)
	}
	again, err := ParseText(d.Text)
	if err != nil || again.Dialect != d.Dialect || !bytes.Equal(again.Function, d.Function) || again.Partitioned != d.Partitioned {
		t.Fatalf("%s: the text is read as %+v, %v", d.Text, again, err)
	}
	if !json.Valid(d.Text) {
		t.Fatalf("%s is no JSON", d.Text)
	}
	return d
}

// TestSignature: what counts for a signature, and what does not.
func TestSignature(t *testing.T) {
	const function = `"index":"function (doc) { }"`
	for _, c := range []struct {
		dialect syntax.Dialect
		length  int
		same    []string // each as one of its kind
		others  []string // each differs from all
	}{
		{syntax.Search, 32, []string{
			`{` + function + `}`, `{"analyzer":"standard",` + function + `}`, `{` + function + `,"more":1}`, `{"default_analyzer":"english",` + function + `}`,
		}, []string{
			`{"index":"function (doc) {  }"}`, `{"analyzer":{"name":"standard"},` + function + `}`, `{"analyzer":"english",` + function + `}`,
			`{"analyzer":{"name":"perfield","fields":{"a":"english"}},` + function + `}`, `{"analyzer":{"name":"standard","stopwords":[]},` + function + `}`,
		}},
		{syntax.Nouveau, 64, []string{
			`{` + function + `}`, `{"default_analyzer":"standard",` + function + `}`, `{"field_analyzers":{},` + function + `}`, `{"analyzer":"english",` + function + `}`,
		}, []string{
			`{"index":"function (doc) {  }"}`, `{"default_analyzer":"english",` + function + `}`, `{"field_analyzers":{"a":"english"},` + function + `}`,
			`{"default_analyzer":"german","field_analyzers":{"a":"english"},` + function + `}`,
		}},
	} {
		first := parse(t, c.dialect, c.same[0])
		if len(first.Signature) != c.length {
			t.Errorf("a signature of %d digits, want %d", len(first.Signature), c.length)
		}
		for _, index := range c.same[1:] {
			if d := parse(t, c.dialect, index); d.Signature != first.Signature {
				t.Errorf("%s has another signature: %s, %s", index, d.Text, first.Text)
			}
		}
		seen := []string{first.Signature}
		for _, index := range c.others {
			d := parse(t, c.dialect, index)
			if slices.Contains(seen, d.Signature) {
				t.Errorf("%s shares a signature", d.Text)
			}
			seen = append(seen, d.Signature)
		}
	}
}

// TestSignatureOfDesign: what stands around an index is no part of it, except that the
// database is partitioned.
func TestSignatureOfDesign(t *testing.T) {
	const index = `"indexes":{"i":{"index":"function (doc) { }"},"j":{"analyzer":"standard","index":"function (doc) { }"}}`
	first, err := Parse([]byte(`{`+index+`}`), syntax.Search, "i", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, ddoc := range []string{
		`{"language":"javascript",` + index + `}`, `{"options":{"partitioned":true},` + index + `}`, `{"views":{},` + index + `}`, `{"language":5,` + index + `}`,
	} {
		for _, name := range []string{"i", "j"} {
			d, err := Parse([]byte(ddoc), syntax.Search, name, false)
			if err != nil || d.Signature != first.Signature || d.ByPartition {
				t.Errorf("%s of %s: %+v, %v", name, ddoc, d, err)
			}
		}
	}
	for options, want := range map[string]bool{`{}`: true, `{"partitioned":true}`: true, `{"partitioned":false}`: false, `{"partitioned":"x"}`: false, `5`: true} {
		d, err := Parse([]byte(`{"options":`+options+`,`+index+`}`), syntax.Search, "i", true)
		if err != nil || d.Signature == first.Signature || !d.Partitioned || d.ByPartition != want {
			t.Errorf("options %s in a partitioned database: %+v, %v", options, d, err)
		}
	}
}

// TestParseRefuses: what clients hear of definitions that are none.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		ddoc    string
		dialect syntax.Dialect
		kind    fault.Kind
		want    string // in the reason
	}{
		{`{}`, syntax.Search, fault.NotFound, "i not found."},
		{`{"nouveau":{"i":{"index":"f"}}}`, syntax.Search, fault.NotFound, "i not found."},
		{`{"indexes":{"j":{"index":"f"}}}`, syntax.Search, fault.NotFound, "i not found."},
		{`{"views":{"i":{"map":"f"}},"nouveau":{}}`, syntax.Nouveau, fault.NotFound, "i not found."},
		{`{"indexes":{"i":{"analyzer":"standard"}}}`, syntax.Search, fault.InvalidDesignDoc, "index `i` must have parameter `index`"},
		{`{"nouveau":{"i":"x"}}`, syntax.Nouveau, fault.InvalidDesignDoc, "index `i` must have parameter `index`"},
		{`{"indexes":[{"name":"i"}]}`, syntax.Search, fault.InvalidDesignDoc, "`indexes`"},
		{`{"nouveau":"x"}`, syntax.Nouveau, fault.InvalidDesignDoc, "`nouveau`"},
		{`{"indexes":{"i":{"index":17}}}`, syntax.Search, fault.CompilationError, "(17)"},
		{`{"indexes":{"i":{"index":{"fields":"all_fields"}}}}`, syntax.Search, fault.CompilationError, "function"},
		{`{"language":"query","indexes":{"i":{"index":"function (doc) {}"}}}`, syntax.Search, fault.InvalidDesignDoc, "object"},
		{`{"indexes":{"i":{"index":"f","analyzer":"nosuch"}}}`, syntax.Search, fault.BadRequest, "no_such_analyzer"},
		{`{"indexes":{"i":{"index":"f","analyzer":null}}}`, syntax.Search, fault.BadRequest, "no_such_analyzer"},
		{`{"nouveau":{"i":{"index":"f","default_analyzer":"nosuch"}}}`, syntax.Nouveau, fault.BadRequest, "nosuch is not a valid analyzer name"},
		{`{"nouveau":{"i":{"index":"f","default_analyzer":5}}}`, syntax.Nouveau, fault.BadRequest, "5 is not a valid analyzer name"},
		{`{"nouveau":{"i":{"index":"f","field_analyzers":{"a":"nosuch"}}}}`, syntax.Nouveau, fault.BadRequest, "nosuch is not a valid analyzer name"},
		{`{"nouveau":{"i":{"index":"f","field_analyzers":["a"]}}}`, syntax.Nouveau, fault.InvalidDesignDoc, "field_analyzers"},
		{`{"language":"erlang","nouveau":{"i":{"index":"f"}}}`, syntax.Nouveau, fault.Internal, "erlang"},
	} {
		d, err := Parse([]byte(c.ddoc), c.dialect, "i", false)
		if fault.KindOf(err) != c.kind || !strings.Contains(fault.Reason(err), c.want) {
			t.Errorf("%s: %+v, %v", c.ddoc, d, err)
		}
		if n, ok := Find(ParseAll([]byte(c.ddoc), false), c.dialect, "i"); n.Definition != nil || ok && fault.KindOf(n.Err) != c.kind {
			t.Errorf("%s has %+v", c.ddoc, n)
		}
	}
}

// TestParseAll: an index that cannot be read does not hide the others, and each is found.
func TestParseAll(t *testing.T) {
	all := ParseAll([]byte(`{"nouveau":{"b":{"index":"f"},"a":{"index":"f","default_analyzer":"nosuch"}},`+
		`"indexes":{"d":{"index":"g"},"b":5,"c":{"index":"f","analyzer":"standard"},"a":{"index":"f"}}}`), false)
	var got []string
	for _, n := range all {
		found, ok := Find(all, n.Dialect, n.Name)
		if !ok || found != n || (n.Definition == nil) == (n.Err == nil) {
			t.Errorf("%+v is found as %+v", n, found)
		}
		if d := n.Definition; d != nil {
			got = append(got, string(d.Text))
			if w := d.Wanted(); w.Signature != d.Signature || !bytes.Equal(w.Text, d.Text) {
				t.Errorf("wanted is %+v", w)
			}
		}
	}
	want := []string{`{"type":"search","index":"f"}`, `{"type":"search","index":"f"}`, `{"type":"search","index":"g"}`, `{"type":"nouveau","index":"f"}`}
	if !slices.Equal(got, want) || len(all) != 6 {
		t.Errorf("got %q of %+v", got, all)
	}
	for _, name := range []string{"", "aa", "e"} {
		if n, ok := Find(all, syntax.Search, name); ok {
			t.Errorf("%q is found: %+v", name, n)
		}
	}
}

// TestParseMango: both types of Mango's indexes are built as those of _search.
func TestParseMango(t *testing.T) {
	const object = `{"default_analyzer":"keyword","default_field":{"analyzer":"english"},"fields":"all_fields"}`
	for index, want := range map[string]string{
		`{"index":` + object + `,"analyzer":{"name":"perfield","default":"keyword","fields":{"$default":"standard"}}}`: `"analyzer":{"name":"perfield","default":"keyword","fields":{"$default":"standard"}}`,
		`{"index":` + object + `,"analyzer":"keyword"}`:                                                                `"analyzer":"keyword"`,
		`{"index":` + object + `}`: `"analyzer":{"name":"perfield","default":"keyword","fields":{"$default":"english"}}`,
		`{"index":{}}`:             `"analyzer":{"name":"perfield","default":"keyword","fields":{"$default":"standard"}}`,
	} {
		for _, dialect := range []syntax.Dialect{syntax.Search, syntax.Nouveau} {
			d, err := Parse([]byte(`{"language":"query","`+member(dialect)+`":{"i":`+index+`}}`), dialect, "i", false)
			if err != nil || !d.Mango() || d.IncludesDesign() || d.Dialect != syntax.Search || !strings.Contains(string(d.Text), want) {
				t.Errorf("%s: %+v, %v", index, d, err)
			}
		}
	}
}

// FuzzParse: no design document makes the parser panic, and what it takes is read again
// from its text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"indexes":{"i":{"index":"f","analyzer":{"name":"perfield","default":"english","fields":{"a":{"name":"standard","stopwords":["x"]}}}}}}`,
		`{"nouveau":{"i":{"index":"f","default_analyzer":"german","field_analyzers":{"a":"english"}}},"options":{"partitioned":false}}`,
		`{"language":"query","indexes":{"i":{"index":{"fields":[{"name":"a","type":"string"}]}}}}`,
	} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, ddoc []byte, partitioned bool) {
		if !json.Valid(ddoc) || !doc.IsObject(ddoc) {
			return
		}
		for _, n := range ParseAll(ddoc, partitioned) {
			d := n.Definition
			if (d == nil) == (n.Err == nil) {
				t.Fatalf("%q: %+v", ddoc, n)
			}
			if d == nil {
				continue
			}
			again, err := ParseText(d.Text)
			if err != nil || again.Dialect != d.Dialect || again.Partitioned != partitioned || !bytes.Equal(bytes.TrimSpace(again.Function), bytes.TrimSpace(d.Function)) {
				t.Fatalf("%q of %q: %+v, %v", d.Text, ddoc, again, err)
			}
		}
		for _, dialect := range []syntax.Dialect{syntax.Search, syntax.Nouveau} {
			if d, err := Parse(ddoc, dialect, "i", partitioned); (d == nil) == (err == nil) {
				t.Fatalf("%q: %v, %v", ddoc, d, err)
			}
		}
	})
}

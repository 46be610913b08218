package query

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

func TestFields(t *testing.T) {
	const document = `{"_id":"x","a":5,"l":[{"k":1},{"k":9,"k":2}],"a.b":3,"n":null,"a":{"b":{"c":1,"d":2},"e":null},"s":"x"}`
	for _, c := range []struct{ fields, want string }{
		{`[]`, document},
		{`["n","_id"]`, `{"n":null,"_id":"x"}`},
		{`["a.b.d","a.b.c"]`, `{"a":{"b":{"d":2,"c":1}}}`},
		{`["a.b.c","s","a.e"]`, `{"a":{"b":{"c":1},"e":null},"s":"x"}`},
		{`["a.b.c","a"]`, `{"a":{"b":{"c":1,"d":2},"e":null}}`},
		{`["a","a.b.c"]`, `{"a":{"b":{"c":1,"d":2},"e":null}}`},
		{`["a.x.y","s"]`, `{"s":"x"}`},
		{`["s.x","n.y","none"]`, `{}`},
		{`["a\\.b"]`, `{"a.b":3}`},
		{`["l.1.k","l.0"]`, `{"l":{"1":{"k":2},"0":{"k":1}}}`},
		{`["l.2","l.k","l.-1"]`, `{}`},
		{`["_id","_id"]`, `{"_id":"x"}`},
	} {
		f, err := ParseFields([]byte(c.fields))
		if err != nil {
			t.Errorf("%s: %v", c.fields, err)
			continue
		}
		if got := string(f.Append(nil, []byte(document))); got != c.want {
			t.Errorf("%s: %s, want %s", c.fields, got, c.want)
		}
	}
	many := `["a` + strings.Repeat(`","a`, maxFields) + `"]`
	for text, code := range map[string]string{
		`"a"`: "invalid_fields", `[[]]`: "invalid_field", `["a..b"]`: "invalid_field_name", `[""]`: "invalid_field_name", many: "invalid_fields",
	} {
		_, err := ParseFields([]byte(text))
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != code {
			t.Errorf("%.40s: %v, want %s", text, err, code)
		}
	}
	if _, err := ParseFields([]byte(`[`)); !fault.Is(err, fault.BadRequest) {
		t.Errorf("no JSON: %v", err)
	}
}

func TestFieldsGolden(t *testing.T) {
	docs, checked := stored{}, 0
	for _, x := range transcript(t, "mango-04-fields.http") {
		if strings.HasSuffix(x.path, "/_bulk_docs") {
			docs.bulk(t, &x)
		}
		if !strings.HasSuffix(x.path, "/_find") {
			continue
		}
		fields := raw(t, x.request, "fields")
		if fields == nil {
			continue
		}
		checked++
		t.Run(x.title, func(t *testing.T) { checkFields(t, docs, &x, fields) })
	}
	if checked < 20 {
		t.Errorf("only %d lists of fields found", checked)
	}
}

// checkFields compares the documents of an answer, save for revisions, which
// a transcript does not know.
func checkFields(t *testing.T, docs stored, x *exchange, fields []byte) {
	t.Helper()
	f, err := ParseFields(fields)
	if x.status != 200 {
		var refusal *fault.Error
		if !errors.As(err, &refusal) || string(doc.AppendString(nil, refusal.Code)) != string(raw(t, x.answer, "error")) {
			t.Fatalf("%v, CouchDB: %s", err, x.answer)
		}
		if reason := raw(t, x.answer, "reason"); reason != nil && string(reason) != string(doc.AppendString(nil, refusal.Reason)) {
			t.Errorf("%v, CouchDB: %s", err, x.answer)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(raw(t, x.request, "selector"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range docs.matching(s) {
		got = append(got, withoutRev(t, f.Append(nil, docs[id])))
	}
	var want []string
	if err := doc.EachElement(raw(t, x.answer, "docs"), func(d []byte) error {
		want = append(want, withoutRev(t, d))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if a, b := strings.Join(got, " "), strings.Join(want, " "); a != b {
		t.Errorf("%s, CouchDB: %s", a, b)
	}
}

// withoutRev prints a document with its members sorted and the revision left
// open.
func withoutRev(t *testing.T, text []byte) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if _, ok := members["_rev"]; ok {
		members["_rev"] = "some"
	}
	sorted, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}

func FuzzParseFields(f *testing.F) {
	f.Add([]byte(`["a.b","c"]`), []byte(`{"a":{"b":1},"c":[]}`))
	f.Add([]byte(`["a\\.b","0.1","a.b","a"]`), []byte(`{"0":[1,{"2":3}],"a":{}}`))
	f.Fuzz(func(t *testing.T, fields, document []byte) {
		list, err := ParseFields(fields)
		if err != nil {
			return
		}
		list.Append(nil, document) // must return for any document
		canonical, err := doc.Canonical(nil, document)
		if err != nil || !doc.IsObject(canonical) {
			return
		}
		selected := list.Append(nil, canonical)
		again, err := doc.Canonical(nil, selected)
		if err != nil || string(again) != string(selected) {
			t.Fatalf("%s of %s: %s is not canonical", fields, canonical, selected)
		}
	})
}

package indexer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/shard/query"
	"divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/doc"
	"divan/storage/fault"
)

func openMango(t *testing.T, object string, partitioned bool) search.Indexer {
	t.Helper()
	return open(t, syntax.Search, `{"language":"query","indexes":{"i":{"index":`+object+`}}}`, partitioned)
}

// TestMangoFields: what of a document is indexed.
func TestMangoFields(t *testing.T) {
	for _, c := range []struct {
		object, body string
		want         []string // without those of _id, _rev
	}{
		{`{}`, `{"a":"x"}`, []string{`a_3astring="x"`, `$fieldnames="a_3astring" exact`, `$default="x"`}},
		{`{"default_field":false}`, `{"a":"x"}`, []string{`a_3astring="x"`, `$fieldnames="a_3astring" exact`}},
		{`{"default_field":{"enabled":false}}`, `{"a":"x"}`, []string{`a_3astring="x"`, `$fieldnames="a_3astring" exact`}},
		{`{"default_field":{"enabled":true,"analyzer":"english"}}`, `{"a":"x"}`, []string{`a_3astring="x"`, `$fieldnames="a_3astring" exact`, `$default="x"`}},
		{`{"default_field":{}}`, `{"a":-1.5,"b":true,"c":null}`, []string{
			`a_3anumber=-1.5`, `$fieldnames="a_3anumber" exact`, `b_3aboolean="true" exact`, `$fieldnames="b_3aboolean" exact`, `c_3anull="true" exact`, `$fieldnames="c_3anull" exact`,
		}},
		{`{"default_field":false}`, `{"name":{"first":"x"},"name.first":"y"}`, []string{
			`name.first_3astring="x"`, `$fieldnames="name.first_3astring" exact`, `name_2efirst_3astring="y"`, `$fieldnames="name_2efirst_3astring" exact`,
		}},
		{`{"default_field":false}`, `{"a":["x",["y"],"z"]}`, []string{
			`a._5b_5d_3astring="x"`, `$fieldnames="a._5b_5d_3astring" exact`,
			`a._5b_5d._5b_5d_3astring="y"`, `$fieldnames="a._5b_5d._5b_5d_3astring" exact`, `a._5b_5d._5b_5d_3alength=1`, `$fieldnames="a._5b_5d._5b_5d_3alength" exact`,
			`a._5b_5d_3astring="z"`, `a._5b_5d_3alength=3`, `$fieldnames="a._5b_5d_3alength" exact`,
		}},
		{`{"index_array_lengths":false}`, `{"a":[],"b":{},"c":[{}]}`, []string{
			`$fieldnames="a._5b_5d_3alength" exact`, `$fieldnames="b_3aobject" exact`, `$fieldnames="c._5b_5d_3aobject" exact`, `$fieldnames="c._5b_5d_3alength" exact`,
		}},
		{
			`{"fields":[{"name":"a.b","type":"string"},{"name":"n","type":"number"},{"name":"l.[]","type":"boolean"},{"name":"x\\.y","type":"text"}]}`,
			`{"a":{"b":"x","c":"y"},"n":"1","l":[true,1],"x.y":"z","o":null}`,
			[]string{
				`a.b_3astring="x"`, `$fieldnames="a.b_3astring" exact`, `$default="x"`, `$fieldnames="a.c_3astring" exact`, `$fieldnames="n_3astring" exact`,
				`l._5b_5d_3aboolean="true" exact`, `$fieldnames="l._5b_5d_3aboolean" exact`, `$fieldnames="l._5b_5d_3anumber" exact`,
				`l._5b_5d_3alength=2`, `$fieldnames="l._5b_5d_3alength" exact`, `x_2ey_3astring="z"`, `$fieldnames="x_2ey_3astring" exact`, `$default="z"`, `$fieldnames="o_3anull" exact`,
			},
		},
		{`{}`, `{"n":1e999}`, []string{`$fieldnames="n_3anumber" exact`}},
		{`{"partial_filter_selector":{"age":{"$gt":30}},"fields":[{"name":"a","type":"string"}]}`, `{"age":31}`, []string{`$fieldnames="age_3anumber" exact`}},
	} {
		got := fieldsOf(t, openMango(t, c.object, false), document("d", c.body))
		got = slices.DeleteFunc(got, func(s string) bool {
			return strings.HasPrefix(s, "_5f") || strings.HasPrefix(s, `$fieldnames="_5f`) || s == `$default="d"` || s == `$default="1-a"`
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s of %s:\n got %q\nwant %q", c.object, c.body, got, c.want)
		}
	}
}

// TestMangoFilter: documents that the filter refuses, and design documents, have no fields.
func TestMangoFilter(t *testing.T) {
	for _, object := range []string{`{"partial_filter_selector":{"age":{"$gt":30}},"selector":{}}`, `{"partial_filter_selector":{},"selector":{"age":{"$gt":30}}}`} {
		x := openMango(t, object, false)
		if got := fieldsOf(t, x, document("d", `{"age":30}`)); len(got) > 0 {
			t.Errorf("%s: %q", object, got)
		}
		if got := fieldsOf(t, x, document("_design/d", `{"age":31}`)); len(got) > 0 {
			t.Errorf("%s: %q", object, got)
		}
		if got := fieldsOf(t, x, document("d", `{"age":31}`)); !slices.Contains(got, "age_3anumber=31") {
			t.Errorf("%s: %q", object, got)
		}
	}
	got := fieldsOf(t, openMango(t, `{}`, true), document("p:d", `{}`))
	if !slices.Contains(got, `_partition="p" exact`) {
		t.Errorf("%q", got)
	}
}

// TestMangoRefuses: definitions that cannot be read.
func TestMangoRefuses(t *testing.T) {
	for _, object := range []string{
		`{"fields":5}`, `{"fields":[5]}`, `{"fields":[{"name":"a"}]}`, `{"fields":[{"type":"string"}]}`, `{"fields":[{"name":"a..b","type":"string"}]}`, `{"selector":{"a":{"$x":1}}}`,
	} {
		d, err := search.Parse([]byte(`{"language":"query","nouveau":{"i":{"index":`+object+`}}}`), syntax.Nouveau, "i", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(nil)(t.Context(), "db.1", d); fault.KindOf(err) == fault.Internal || err == nil {
			t.Errorf("%s: %v", object, err)
		}
	}
}

// TestMangoLimits: names that grow with the depth do not grow beyond all bounds, nor do the
// fields of a document.
func TestMangoLimits(t *testing.T) {
	x := openMango(t, `{}`, false)
	deep := strings.Repeat(`{"`+strings.Repeat("k", 100)+`":`, 900) + `"x"` + strings.Repeat(`,"n":1}`, 900)
	for _, s := range fieldsOf(t, x, document("d", deep)) {
		if len(s) > maxMangoName+100 {
			t.Fatalf("a field of %d bytes", len(s))
		}
	}
	many := `{"a":[` + strings.Repeat(`"x",`, 400000) + `1]}`
	if _, err := x.Index(t.Context(), nil, document("d", many)); fault.KindOf(err) != fault.BadFunction {
		t.Error(err)
	}
}

// TestMangoProperty: the names and values are those that a plain walk over the document
// finds.
func TestMangoProperty(t *testing.T) {
	x := openMango(t, `{}`, false)
	b := x.(search.Batched).Begin()
	defer b.End()
	rapid.Check(t, func(t *rapid.T) {
		value := drawValue(t, 3)
		object := map[string]any{"v": value, rapid.StringMatching(`[a-z.\[\]é"\\]{1,4}`).Draw(t, "key"): value}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		body, err := doc.Canonical(nil, text)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{`_5fid_3astring="d"`: 1, `_5frev_3astring="1-a"`: 1, `$default="d"`: 1, `$default="1-a"`: 1, "names": 0}
		names := map[string]struct{}{"_5fid_3astring": {}, "_5frev_3astring": {}}
		var decoded map[string]any
		if err := json.Unmarshal(body, &decoded); err != nil {
			t.Fatal(err)
		}
		walk(want, names, "", decoded)
		for name := range names {
			want[`$fieldnames=`+fmt.Sprintf("%q", name)+` exact`]++
		}
		delete(want, "names")
		fields, err := b.Index(t.Context(), nil, document("d", string(body)))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, s := range texts(fields) {
			got[s]++
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%s:\n got %v\nwant %v", body, got, want)
		}
	})
}

// walk counts the fields of a value whose name is path.
func walk(fields map[string]int, names map[string]struct{}, path string, value any) {
	add := func(suffix, text string) {
		fields[path+suffix+"="+text]++
		names[path+suffix] = struct{}{}
	}
	part := func(key string) string {
		encoded := string(query.AppendTextKey(nil, key))
		if path == "" {
			return encoded
		}
		return path + "." + encoded
	}
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			walk(fields, names, part(key), member)
		}
		if len(v) == 0 {
			names[path+"_3aobject"] = struct{}{}
		}
	case []any:
		path = part("[]")
		for _, element := range v {
			walk(fields, names, path, element)
		}
		add("_3alength", fmt.Sprint(len(v)))
	case string:
		add("_3astring", fmt.Sprintf("%q", v))
		fields["$default="+fmt.Sprintf("%q", v)]++
	case float64:
		add("_3anumber", fmt.Sprint(v))
	case bool:
		add("_3aboolean", fmt.Sprintf("%q exact", fmt.Sprint(v)))
	default:
		add("_3anull", `"true" exact`)
	}
}

// drawValue draws a JSON value.
func drawValue(t *rapid.T, depth int) any {
	most := 7
	if depth == 0 {
		most = 4
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Float64Range(-1e6, 1e6).Draw(t, "number")
	case 3, 4:
		return rapid.StringMatching(`[a-zé😀"\\\n,:{}\[\] ]{0,6}`).Draw(t, "string")
	case 5:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			object[rapid.StringMatching(`[a-z_.é"\\]{0,3}`).Draw(t, "member")] = drawValue(t, depth-1)
		}
		return object
	}
}

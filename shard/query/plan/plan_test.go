package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"divan/storage/fault"
)

// fixture returns indexes, each "ddoc/name:field,field[|partial]"; a name that
// begins with "p-" is partitioned.
func fixture(t *testing.T, specs ...string) []*Index {
	t.Helper()
	var out []*Index
	for _, spec := range specs {
		where, fields, _ := strings.Cut(spec, ":")
		fields, partial, _ := strings.Cut(fields, "|")
		ddoc, name, _ := strings.Cut(where, "/")
		var list []string
		for f := range strings.SplitSeq(fields, ",") {
			list = append(list, `"`+f+`"`)
		}
		body := `{"index":{"fields":[` + strings.Join(list, ",") + `]},"ddoc":"` + ddoc + `","name":"` + name + `"}`
		if partial != "" {
			body = strings.Replace(body, "]},", `],"partial_filter_selector":`+partial+"},", 1)
		}
		c, err := ParseCreate([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := c.AddTo(nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, IndexesOf(c.Design, text, strings.HasPrefix(name, "p-"))...)
	}
	return out
}

func TestChoose(t *testing.T) {
	standard := []string{"n/n:n", "tn/tn:t,n", "open/open:m|{\"state\":\"open\"}", "z/same:n", "p/p-n:n", "abc/abc:a,b,c"}
	for _, tc := range []struct{ request, want string }{
		{`{"selector":{"n":1}}`, "n 1"},
		{`{"selector":{"n":{"$in":[1,5,7]}}}`, "n 4"},
		{`{"selector":{"t":{"$in":["a","b"]},"n":2}}`, "tn 3"},
		{`{"selector":{"$or":[{"n":1},{"n":{"$gt":5}}]}}`, "n 2"},
		{`{"selector":{"$or":[{"n":1},{"t":5}]}}`, "_all_docs 0 No matching"},
		{`{"selector":{"n":{"$gt":5,"$lt":1}}}`, "n nothing"},
		{`{"selector":{"n":3,"t":{"$exists":true}}}`, "tn 0"},
		{`{"selector":{"t":"x","n":{"$gt":3}}}`, "tn 1"},
		{`{"selector":{"_id":"a","n":1}}`, "n 1"},
		{`{"selector":{"_id":"a"}}`, "_all_docs 1 No matching"},
		{`{"selector":{"_id":{"$in":["b","a",3]}}}`, "_all_docs 2 No matching"},
		{`{"selector":{"_id":{"$lt":3}}}`, "_all_docs nothing No matching"},
		{`{"selector":{"$or":[]}}`, "n nothing"},
		{`{"selector":{"$and":[]}}`, "_all_docs nothing No matching"},
		{`{"selector":{"$or":[],"q":{"$in":[]}}}`, "n 0"},
		{`{"selector":{"$or":[],"q":1}}`, "_all_docs 0 No matching"}, // the empty $or is neutral, and no index has all with q
		{`{"selector":{"t":{"$gte":"x","$lte":"x"}},"sort":["n"],"use_index":"tn","allow_fallback":false}`, "invalid_index"},
		{`{"selector":{"a":1,"b":1},"sort":["a","c"]}`, "no_usable_index"},
		{`{"selector":{"a":1,"b":1,"c":1},"sort":["b","c"]}`, "abc 1"},
		{`{"selector":{"n":1},"bookmark":"no bookmark"}`, "invalid_bookmark"},
		{`{"selector":{"n":1},"bookmark":5}`, "invalid_bookmark"},
		{`{"selector":{"n":1},"bookmark":"nil"}`, "invalid_bookmark"},
		{`{"selector":{"m":1}}`, "_all_docs 0 No matching"},
		{`{"selector":{"m":1},"use_index":"open"}`, "open 1"},
		{`{"selector":{"n":1},"use_index":"z"}`, "same 1"},
		{`{"selector":{"n":1},"use_index":["_design/z","same"]}`, "same 1"},
		{`{"selector":{"n":1},"use_index":"tn"}`, "n 1 _design/tn was not used because it does not contain"},
		{`{"selector":{"n":1},"use_index":"_design/z/no"}`, "n 1 _design/z, no was not used because it is not a valid"},
		{`{"selector":{"n":1},"use_index":"tn","allow_fallback":false}`, "invalid_index"},
		{`{"selector":{"q":1},"allow_fallback":false}`, "invalid_index"},
		{`{"selector":{"n":1},"allow_fallback":false}`, "n 1"},
		{`{"selector":{"t":"x"},"sort":["n"]}`, "tn 1"},
		{`{"selector":{"t":{"$gt":"x"}},"sort":["n"]}`, "n 0"},
		{`{"selector":{"n":1},"sort":["n","t"]}`, "no_usable_index"},
		{`{"selector":{"n":1},"sort":["_id"]}`, "no_usable_index"},
		{`{"selector":{"n":1,"_id":{"$gt":null}},"sort":[{"_id":"desc"}]}`, "_all_docs 0 No matching"},
		{`{"selector":{"n":1},"partition":"p"}`, "p-n 1"},
		{`{"selector":{"t":1},"sort":["t"],"partition":"p"}`, "no_usable_index"},
		{`{"selector":{"$text":"x"}}`, "no_usable_index"}, // nothing else can judge it
		{`{"selector":{"$or":[{"n":1},{"$text":"x"}]}}`, "no_usable_index"},
		{`{"selector":{"$text":"x"},"sort":["n"]}`, "no_usable_index"},
	} {
		f, err := ParseFind([]byte(tc.request), 25)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Choose(f, fixture(t, standard...), Database{Name: "db"})
		var got string
		var refused *fault.Error
		if err != nil {
			refused, _ = err.(*fault.Error) //nolint:errorlint // it is what the planner makes
			got = refused.Code
		} else {
			got = fmt.Sprint(p.Index.Name, " ", len(p.Ranges))
			if p.Nothing {
				got = p.Index.Name + " nothing"
			}
			got = strings.TrimSpace(got + " " + strings.Join(p.Warnings, " "))
		}
		if !strings.HasPrefix(got, tc.want) || len(strings.Fields(tc.want)) == 2 && got != tc.want {
			t.Errorf("%s: %s, want %s", tc.request, got, tc.want)
		}
	}
}

func TestCovering(t *testing.T) {
	for request, want := range map[string]bool{
		`{"selector":{"n":1}}`:                                                         false,
		`{"selector":{"n":1},"fields":["n","_id"]}`:                                    true,
		`{"selector":{"n":1},"fields":["n","_rev"]}`:                                   false,
		`{"selector":{"n":1,"m":2},"fields":["n"]}`:                                    false,
		`{"selector":{"n":1,"m":2},"count":true}`:                                      false,
		`{"selector":{"n":1},"count":true,"fields":["m"]}`:                             true,
		`{"selector":{"n":1},"fields":["n"],"conflicts":true}`:                         false,
		`{"selector":{"n":1},"fields":["n"],"r":2}`:                                    false,
		`{"selector":{"a":1,"a.b":2},"fields":["a","a.b"],"use_index":["nested","i"]}`: false,
	} {
		f, err := ParseFind([]byte(request), 25)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Choose(f, fixture(t, "n/n:n", "nested/i:a,a.b"), Database{})
		if err != nil || p.Index.AllDocs() || p.Covering != want {
			t.Errorf("%s: covering %v, want %v (%v)", request, p != nil && p.Covering, want, err)
		}
	}
}

func TestBookmarkStaysWithItsIndex(t *testing.T) {
	f, _ := ParseFind([]byte(`{"selector":{"n":1}}`), 25)
	p, err := Choose(f, nil, Database{})
	if err != nil {
		t.Fatal(err)
	}
	request := []byte(`{"selector":{"n":1},"bookmark":"` + p.Bookmark(nil, "d3").String() + `"}`)
	if f, err = ParseFind(request, 25); err != nil {
		t.Fatal(err)
	}
	if p, err = Choose(f, fixture(t, "n/n:n"), Database{}); err != nil || !p.Index.AllDocs() || p.After.ID != "d3" {
		t.Errorf("%+v, %v", p, err)
	}
	g, _ := ParseFind([]byte(`{"selector":{"n":1}}`), 25)
	if p, err = Choose(g, fixture(t, "n/n:n"), Database{}); err != nil || p.Index.Name != "n" {
		t.Fatalf("%+v, %v", p, err)
	}
	request = []byte(`{"selector":{"n":1},"bookmark":"` + p.Bookmark([]byte{6, 1}, "d3").String() + `"}`)
	if f, err = ParseFind(request, 25); err != nil || string(f.Bookmark.Sort) != "\x06\x01" {
		t.Fatal(err)
	}
	if _, err = Choose(f, nil, Database{}); err == nil {
		t.Error("a bookmark of an index that is gone is taken")
	}
}

// FuzzFind holds the parser to its refusals, and what it takes to an answer.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{
		`{"selector":{}}`, `{"selector":{"n":{"$gt":1}},"sort":[{"n":"desc"}],"fields":["a.b"],"use_index":["a","b"],"r":2,"stale":"ok"}`,
		`{"selector":{"$or":[{"n":{"$in":[1,2,[]]}},{"t":{"$beginsWith":"é"}}]},"bookmark":"AQ","limit":5}`, `{"selector":`, `[]`,
		`{"selector":{"_id":{"$lt":"\ud800"}},"partition":"p","count":true}`, `{"index":{"fields":["n"]},"docids":["a"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		refused := func(err error) bool {
			if err != nil && !fault.Is(err, fault.InvalidSelector) && !fault.Is(err, fault.BadRequest) && !fault.Is(err, fault.Unavailable) {
				t.Fatalf("%q: %v", body, err)
			}
			return err != nil
		}
		indexes := fixture(t, "n/n:n", "tn/tn:t,n", "id/id:_id,n")
		if c, err := ParseCreate(body); !refused(err) {
			text, err := c.AddTo(nil)
			if err != nil || !json.Valid(text) {
				t.Fatalf("%q: %s, %v", body, text, err)
			}
			if again, err := c.AddTo(text); again != nil || err != nil {
				t.Fatalf("%q: added twice", body)
			}
			indexes = append(indexes, IndexesOf(c.Design, text, false)...)
			if left := RemoveFrom(text, IndexesOf(c.Design, text, false)); left != nil {
				t.Fatalf("%q: %s is left", body, left)
			}
		}
		_, err := ParseBulkDelete(body)
		refused(err)
		q, err := ParseFind(body, 25)
		if refused(err) {
			return
		}
		p, err := Choose(q, indexes, Database{Name: "db"})
		if !refused(err) {
			for _, r := range p.Ranges {
				if r.Hi != nil && string(r.Lo) > string(r.Hi) {
					t.Fatalf("%q: an empty range", body)
				}
			}
		}
		text, err := AppendExplain(nil, q, indexes, Database{Name: "db"})
		if !refused(err) && !json.Valid(text) {
			t.Fatalf("%q: %s", body, text)
		}
	})
}

// FuzzBookmark holds bookmarks to what they were made from.
func FuzzBookmark(f *testing.F) {
	f.Add("nil", []byte{1}, "id")
	f.Add("AQAAAAAAAAAAAA", []byte(nil), "")
	f.Fuzz(func(t *testing.T, text string, sort []byte, id string) {
		if b, ok := decodeBookmark(text); ok && b.String() != text {
			t.Fatalf("%q is taken and becomes %q", text, b.String())
		}
		want := Bookmark{Index: 7, Sort: sort, ID: id}
		b, ok := decodeBookmark(want.String())
		if !ok || b.Index != 7 || string(b.Sort) != string(sort) || b.ID != id {
			t.Fatalf("%+v becomes %+v", want, b)
		}
	})
}

// TestLongSort: a list of fields that no index can have is refused before anything is
// made of it.
func TestLongSort(t *testing.T) {
	for n, wanted := range map[int]bool{maxSort: true, maxSort + 1: false} {
		f, err := ParseFind([]byte(`{"selector":{"a":1},"sort":["a"`+strings.Repeat(`,"a"`, n-1)+`]}`), 25)
		if wanted != (err == nil) || wanted && len(f.Sort) != n || !wanted && !fault.Is(err, fault.InvalidSelector) {
			t.Errorf("%d fields: %v", n, err)
		}
	}
}

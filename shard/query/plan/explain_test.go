package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// explained is what the test looks at of an answer of _explain.
type explained struct {
	Partitioned bool
	Index       *struct{ Name, Type string }
	Opts        struct{ Bookmark json.RawMessage }
	MRArgs      struct {
		Start json.RawMessage `json:"start_key"`
		End   json.RawMessage `json:"end_key"`
	}
	Candidates []struct {
		Index    struct{ Name string }
		Analysis struct {
			Usable   bool
			Reasons  []struct{ Name string }
			Ranking  int
			Covering *bool
		}
	} `json:"index_candidates"`
}

func explain(t *testing.T, request string, db Database, specs ...string) explained {
	t.Helper()
	f, err := ParseFind([]byte(request), 25)
	if err != nil {
		t.Fatal(request, err)
	}
	text, err := AppendExplain(nil, f, fixture(t, specs...), db)
	if err != nil {
		t.Fatal(request, err)
	}
	var out explained
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCandidates(t *testing.T) {
	specs := []string{"n/n:n", "tn/tn:t,n", "open/open:m|{\"state\":\"open\"}", "z/same:n", "p/p-n:n", "nt/nt:n,t", "m/m:m"}
	for request, want := range map[string]string{
		`{"selector":{"n":1,"t":{"$exists":true}},"fields":["n"]}`: "nt: same=less_overlap/3+ tn=alphabetically_comes_after/1+ p-n=scope_mismatch/6-+ open=is_partial/7- n=less_overlap/2+ m=field_mismatch/5- _all_docs=unfavored_type/4",
		`{"selector":{"n":1},"fields":["n","t"]}`:                  "n: same=alphabetically_comes_after/1 tn=field_mismatch/3-+ p-n=scope_mismatch/4- open=is_partial/5- nt=field_mismatch/3-+ m=field_mismatch/3- _all_docs=unfavored_type/2",
		`{"selector":{"n":1},"use_index":"z"}`:                     "same: tn=field_mismatch/2- p-n=scope_mismatch/3- open=is_partial/4- nt=field_mismatch/2- n=excluded_by_user/1 m=field_mismatch/2- _all_docs=excluded_by_user/1",
		`{"selector":{"q":1}}`:                                     "_all_docs: same=field_mismatch/1- tn=field_mismatch/1- p-n=scope_mismatch/2- open=is_partial/3- nt=field_mismatch/1- n=field_mismatch/1- m=field_mismatch/1-",
		`{"selector":{"q":1},"sort":["q"]}`:                        "none: same=field_mismatch/1- tn=field_mismatch/1- p-n=scope_mismatch/2- open=is_partial/3- nt=field_mismatch/1- n=field_mismatch/1- m=field_mismatch/1- _all_docs=field_mismatch/1-",
		`{"selector":{"_id":"x","n":1},"sort":["q"]}`:              "none: same=sort_order_mismatch/1- tn=field_mismatch/1- p-n=scope_mismatch/2- open=is_partial/3- nt=field_mismatch/1- n=sort_order_mismatch/1- m=field_mismatch/1- _all_docs=sort_order_mismatch/1-",
	} {
		got := explain(t, request, Database{}, specs...)
		words := []string{"none:"}
		if got.Index != nil {
			words[0] = got.Index.Name + ":"
		}
		for _, c := range got.Candidates {
			word := fmt.Sprint(c.Index.Name, "=", c.Analysis.Reasons[0].Name, "/", c.Analysis.Ranking)
			if !c.Analysis.Usable {
				word += "-"
			}
			if (c.Analysis.Covering == nil) != (c.Index.Name == "_all_docs") || len(c.Analysis.Reasons) != 1 {
				t.Errorf("%s: %+v", request, c)
			}
			if c.Analysis.Covering != nil && *c.Analysis.Covering {
				word += "+"
			}
			words = append(words, word)
		}
		if text := strings.Join(words, " "); text != want {
			t.Errorf("%s:\n%s, want\n%s", request, text, want)
		}
	}
}

// TestExplainEmptyRanges: a query that CouchDB does not run shows no keys, and its
// answer has no bookmark; one whose empty range is not that of the leading column is run.
func TestExplainEmptyRanges(t *testing.T) {
	for request, want := range map[string]string{
		`{"selector":{"n":{"$gt":5,"$lt":1}}}`:                       `null null empty`,
		`{"selector":{"$or":[]}}`:                                    `null null empty`,
		`{"selector":{"_id":{"$gt":"b","$lt":"a"}}}`:                 `null null empty`,
		`{"selector":{"q":{"$gt":5,"$lt":1}}}`:                       `null "<MAX>"`,
		`{"selector":{"t":"x","n":{"$gt":5,"$lt":1}}}`:               `null null empty`,
		`{"selector":{"t":{"$gt":5,"$lt":1},"n":{"$gt":1}}}`:         `null null empty`,
		`{"selector":{"t":{"$gt":5,"$lt":1},"n":1},"use_index":"n"}`: `[] ["<MAX>"]`,
		`{"selector":{"t":"x","n":{"$gt":1}},"use_index":"tn"}`:      `["x",1] ["x","<MAX>"]`,
	} {
		f, err := ParseFind([]byte(request), 25)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Choose(f, fixture(t, "n/n:n", "tn/tn:t,n"), Database{})
		if err != nil {
			t.Fatal(err)
		}
		shown := explain(t, request, Database{}, "n/n:n", "tn/tn:t,n")
		got := string(shown.MRArgs.Start) + " " + string(shown.MRArgs.End)
		if p.Empty {
			got += " empty"
		}
		if got != want {
			t.Errorf("%s with %s: %s, want %s", request, p.Index.Name, got, want)
		}
	}
}

// TestEmptyOperators: selectors with empty lists are answered from _all_docs where no
// index fits, and from an index as CouchDB does.
func TestEmptyOperators(t *testing.T) {
	for selector, indexed := range map[string]string{
		`{}`: "_all_docs", `{"$and":[]}`: "_all_docs", `{"$or":[]}`: "n", `{"n":{"$in":[]}}`: "n", `{"n":1,"$or":[]}`: "n",
		`{"n":1,"$and":[]}`: "n", `{"n":1,"t":{"$all":[]}}`: "n", `{"$or":[],"q":{"$in":[]}}`: "n", `{"n":{"$nin":[]}}`: "n",
	} {
		request := `{"selector":` + selector + `}`
		if got := explain(t, request, Database{}); got.Index.Name != "_all_docs" || got.Index.Type != "special" {
			t.Errorf("%s without an index: %+v", selector, got.Index)
		}
		if got := explain(t, request, Database{}, "n/n:n"); got.Index.Name != indexed {
			t.Errorf("%s: %+v, want %s", selector, got.Index, indexed)
		}
	}
}

func TestExplainTakesWhatFindRefuses(t *testing.T) {
	for _, bookmark := range []string{`"no bookmark"`, `5`, `{}`} {
		got := explain(t, `{"selector":{"n":1},"bookmark":`+bookmark+`}`, Database{Partitioned: true}, "n/n:n")
		if got.Index.Name != "n" || string(got.Opts.Bookmark) != bookmark || !got.Partitioned {
			t.Errorf("%s: %+v", bookmark, got)
		}
	}
	if got := explain(t, `{"selector":{"n":1},"bookmark":"nil"}`, Database{}); string(got.Opts.Bookmark) != `"nil"` || got.Partitioned {
		t.Errorf("%+v", got)
	}
	gone := (&Plan{fingerprint: 5}).Bookmark([]byte{1}, "x").String()
	if got := explain(t, `{"selector":{"n":1},"bookmark":"`+gone+`"}`, Database{}, "n/n:n"); got.Index.Name != "n" {
		t.Errorf("%+v", got)
	}
}

func TestPartitionIsAString(t *testing.T) {
	if _, err := ParseFind([]byte(`{"selector":{},"partition":5}`), 25); err == nil || !strings.Contains(err.Error(), "Partition must be a string") {
		t.Error(err)
	}
	if f, err := ParseFind([]byte(`{"selector":{},"partition":"p"}`), 25); err != nil || f.Partition != "p" {
		t.Error(err)
	}
}

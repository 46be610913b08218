package docs

import (
	"slices"
	"strings"
	"testing"

	"divan/cluster"
	"divan/cluster/access"
	"divan/cluster/window"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// optionsOf splits a query string without escapes.
func optionsOf(query string) []core.Param {
	var out []core.Param
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		out = append(out, core.Param{Name: name, Value: value})
	}
	return out
}

func TestDocOptions(t *testing.T) {
	for query, want := range map[string]bool{
		"revs=true":            true,
		"revs=true&revs=false": true,
		"revs=false&revs=true": true,
		"revs=TRUE":            false,
		"revs=1":               false,
		"":                     false,
	} {
		o, err := parseDocOptions(optionsOf(query))
		if err != nil || o.revs != want {
			t.Errorf("%s: %v, %v", query, o.revs, err)
		}
	}
	for query, want := range map[string]string{
		"rev=":             "Invalid rev format",
		"rev=3":            "Invalid rev format",
		"open_revs=x":      "invalid UTF-8 JSON",
		"open_revs={}":     "Invalid list of revisions",
		"open_revs=[1]":    "Invalid rev format",
		`atts_since=["x"]`: "Invalid rev format",
		"w=x":              "The `w` value should be a positive integer.",
		"r=0":              "The `r` value should be a positive integer.",
	} {
		if _, err := parseDocOptions(optionsOf(query)); fault.Reason(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	o, err := parseDocOptions(optionsOf(`open_revs=["1-a","2-b","1-a"]`))
	if want := []doc.Rev{{Pos: 1, ID: "a"}, {Pos: 2, ID: "b"}}; err != nil || !slices.Equal(o.open.list, want) {
		t.Errorf("a revision named twice: %v, %v", o.open.list, err)
	}
}

func TestParseDestination(t *testing.T) {
	for header, want := range map[string]string{
		"dst":                "dst 0-",
		"to%2Fthe%20copy":    "to/the copy 0-",
		"d?rev=1-abc":        "d 1-abc",
		"_design/c?x=2-abc":  "_design/c 2-abc",
		"?rev=1-abc":         " 1-abc",
		"":                   "Destination header is mandatory for COPY.",
		"http://h/db/x":      "Destination URL must be relative.",
		"d?rev=x":            "Invalid rev format",
		"%zz":                "invalid_url_encoding",
		"with+plus?rev=1-ab": "with plus 1-ab",
	} {
		id, rev, err := parseDestination(header, true)
		got := id + " " + rev.String()
		if err != nil {
			got = fault.Reason(err)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

// A batch of small documents is followed by one that is as large as their size says; large
// documents in it that there is no space for are read when it is their turn.
func TestBulkGetIsBounded(t *testing.T) {
	d := apitest.NodeDeps(t, "divan@127.0.0.1", nil)
	apitest.Must(t, d.Coordinator.CreateDB(t.Context(), "db", cluster.CreateOptions{}))
	a := core.New(d)
	a.Mount([]core.Route{{Table: core.DBTable, Path: "/_probe", Access: access.Documents, Methods: core.Methods{Get: func(c *core.Call) error {
		const size = 3 << 20
		large := []byte(`{"s":"` + strings.Repeat("x", size) + `"}`)
		_, err := c.DB.Update(t.Context(), cluster.UpdateOptions{NewEdits: true, User: c.User}, []shard.Edit{
			{ID: "small", Body: []byte("{}")}, {ID: "large", Body: large},
		})
		apitest.Must(t, err)
		r := newBulkGetReader(c, &docOptions{}, make([]bulkGetItem, 600))
		for i := range r.items {
			if r.items[i].id = "small"; i >= 580 && i%2 == 0 {
				r.items[i].id = "large"
			}
		}
		most, fills := 0, 0
		for i := range r.items {
			if i >= r.end || r.open[i-r.first] {
				fills++
			}
			results, err := r.read(i)
			if err != nil || len(results) != 1 || results[0].Doc.ID != r.items[i].id {
				t.Fatalf("entry %d: %v, %v", i, results, err)
			}
			if bytes := results[0].Doc.Size() + r.held(); bytes > 2*window.MaxBytes+2*size {
				t.Errorf("at entry %d of %d to %d: %d bytes are held", i, r.first, r.end, bytes)
			}
			most = max(most, r.end-r.first)
		}
		if most != bulkGetMost || fills > 40 {
			t.Errorf("batches of up to %d small documents, read %d times", most, fills)
		}
		return c.Response.SendOK(200)
	}}}})
	if w := apitest.Ask(t, a, "GET /db/_probe", "", "Authorization: Basic YWRtOnBhc3M="); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

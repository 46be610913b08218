package query

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

// step of a transcript: what was asked, and what CouchDB answered.
type exchange struct {
	title, path string
	request     []byte
	status      int
	answer      []byte
}

// transcript reads the steps of one of CouchDB's transcripts.
func transcript(t *testing.T, name string) []exchange {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/golden", name))
	if err != nil {
		t.Fatal(err)
	}
	var steps []exchange
	for _, part := range strings.Split("\n"+string(text), "\n### ")[1:] {
		request, answer, ok := strings.Cut(part, "\n>>> ")
		if !ok {
			t.Fatalf("%s: no answer in %q", name, part)
		}
		lines := strings.Split(request, "\n")
		s := exchange{title: lines[0]}
		for len(lines) > 1 && strings.HasPrefix(lines[1], "# @") {
			lines = lines[1:]
		}
		_, s.path, _ = strings.Cut(lines[1], " ")
		s.request = []byte(strings.TrimSpace(strings.Join(lines[2:], "\n")))
		status, body, _ := strings.Cut(answer, "\n")
		s.status, _ = strconv.Atoi(status)
		if _, body, ok = strings.Cut(body, "\n\n"); ok {
			s.answer = []byte(strings.TrimSpace(body))
		}
		steps = append(steps, s)
	}
	return steps
}

// stored are the documents of a transcript, in the order of their ids, as they
// would be shown to a selector.
type stored map[string][]byte

func (s stored) put(t *testing.T, id string, body []byte, deleted bool) {
	t.Helper()
	env, err := doc.ParseEnvelope(body)
	if err != nil {
		t.Fatal(err)
	}
	rev := doc.Rev{Pos: 1, ID: strings.Repeat("r", 16)}
	head := doc.AppendHead(nil, doc.Splice{ID: cmp.Or(id, env.ID), Rev: rev, Deleted: deleted, Body: env.Body})
	s[cmp.Or(id, env.ID)] = append(head, '}')
}

// matching returns the ids of the documents that match.
func (s stored) matching(sel *Selector) []string {
	ids := []string{}
	for id, d := range s {
		if sel.matches(d) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// raw returns a member of a JSON object, nil when there is none.
func raw(t *testing.T, object []byte, name string) []byte {
	t.Helper()
	var found []byte
	if err := doc.EachMember(object, func(n string, v []byte) error {
		if n == name {
			found = v
		}
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	return found
}

// bulk stores the documents of a _bulk_docs request.
func (s stored) bulk(t *testing.T, x *exchange) {
	t.Helper()
	if x.status != 201 {
		return
	}
	if err := doc.EachElement(raw(t, x.request, "docs"), func(d []byte) error {
		s.put(t, "", d, false)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestFindGolden(t *testing.T) {
	for _, name := range []string{
		"mango-01-comparison.http", "mango-02-operators.http", "mango-03-combinations.http",
		"mango-04-fields.http", "mango-07-selector-errors.http",
	} {
		docs, finds := stored{}, 0
		for _, x := range transcript(t, name) {
			switch {
			case strings.HasSuffix(x.path, "/_bulk_docs"):
				docs.bulk(t, &x)
			case strings.HasSuffix(x.path, "/_find"):
				if selector := raw(t, x.request, "selector"); selector != nil {
					finds++
					t.Run(name+"/"+x.title, func(t *testing.T) { checkFind(t, docs, &x, selector) })
				}
			case strings.Count(x.path, "/") == 2:
				docs.put(t, "a", x.request, false)
			}
		}
		if finds < 20 {
			t.Errorf("%s: only %d queries found", name, finds)
		}
	}
}

// checkFind compares a query's answer with what the selector does here.
func checkFind(t *testing.T, docs stored, x *exchange, selector []byte) {
	t.Helper()
	sel, err := Parse(selector)
	var answer struct {
		Docs []struct {
			ID *string `json:"_id"`
		}
		Error, Reason string
	}
	if err := json.Unmarshal(x.answer, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error != "" {
		if strings.HasPrefix(answer.Error, "invalid_field") {
			return // of "fields", not of the selector
		}
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.InvalidSelector || f.Code != answer.Error || f.Reason != answer.Reason {
			t.Errorf("%s: error %#v, CouchDB: %s %q", selector, err, answer.Error, answer.Reason)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", selector, err)
	}
	ids := docs.matching(sel)
	if sel.Nothing() {
		ids = nil
	}
	if limit, err := strconv.Atoi(string(raw(t, x.request, "limit"))); err == nil && len(ids) > limit {
		ids = ids[:limit]
	}
	if len(ids) != len(answer.Docs) {
		t.Fatalf("%s: %q, CouchDB: %s", selector, ids, x.answer)
	}
	for i, d := range answer.Docs {
		if d.ID != nil && *d.ID != ids[i] {
			t.Errorf("%s: %q, CouchDB: %s", selector, ids, x.answer)
		}
	}
}

func TestChangesGolden(t *testing.T) {
	docs, feeds := stored{}, 0
	for _, x := range transcript(t, "changes-03-builtin-filters.http") {
		switch {
		case strings.HasSuffix(x.path, "/_bulk_docs"):
			docs.bulk(t, &x)
		case strings.HasSuffix(x.path, "/_design/d"):
			docs.put(t, "_design/d", x.request, false)
		case strings.HasPrefix(x.path, "/{{db}}/d?rev="):
			docs.put(t, "d", []byte("{}"), true)
		case strings.Contains(x.path, "filter=_selector") && len(x.request) > 0:
			selector := raw(t, x.request, "selector")
			if !doc.IsObject(selector) {
				continue // refused before it is parsed
			}
			feeds++
			t.Run(x.title, func(t *testing.T) { checkFeed(t, docs, &x, selector) })
		}
	}
	if feeds < 8 {
		t.Errorf("only %d feeds found", feeds)
	}
}

func checkFeed(t *testing.T, docs stored, x *exchange, selector []byte) {
	t.Helper()
	sel, err := Parse(selector)
	var answer struct {
		Results       []struct{ ID string }
		Error, Reason string
	}
	if err := json.Unmarshal(x.answer, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error != "" {
		if err == nil || fault.Reason(err) != answer.Reason {
			t.Errorf("%s: error %v, CouchDB: %q", selector, err, answer.Reason)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	ids := docs.matching(sel)
	if strings.Contains(x.path, "limit=1") {
		ids = ids[:1]
	}
	if len(ids) != len(answer.Results) {
		t.Fatalf("%s: %q, CouchDB: %s", selector, ids, x.answer)
	}
	for i, r := range answer.Results {
		if r.ID != ids[i] {
			t.Errorf("%s: %q, CouchDB: %s", selector, ids, x.answer)
		}
	}
}

func TestNormalFormGolden(t *testing.T) {
	checked := 0
	for _, x := range transcript(t, "mango-11-explain.http") {
		if !strings.HasSuffix(x.path, "/_explain") || x.status != 200 {
			continue
		}
		normal := raw(t, x.answer, "selector")
		if normal == nil {
			continue // not part of what is compared there
		}
		checked++
		sel, err := Parse(raw(t, x.request, "selector"))
		if err != nil {
			t.Errorf("%s: %v", x.title, err)
			continue
		}
		want, err := doc.Canonical(nil, normal)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(sel.Append(nil)); got != string(want) {
			t.Errorf("%s: %s, CouchDB: %s", x.title, got, want)
		}
	}
	if checked < 4 {
		t.Errorf("only %d selectors compared", checked)
	}
}

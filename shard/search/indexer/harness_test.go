package indexer

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"divan/shard"
	"divan/shard/script"
	"divan/shard/search"
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the indexer of a design document's index "i".
func open(t *testing.T, dialect syntax.Dialect, ddoc string, partitioned bool) search.Indexer {
	t.Helper()
	return openWithin(t, 10*time.Minute, dialect, ddoc, partitioned)
}

// openWithin is open for functions that have so much time for a document.
func openWithin(t *testing.T, timeout time.Duration, dialect syntax.Dialect, ddoc string, partitioned bool) search.Indexer {
	t.Helper()
	d, err := search.Parse([]byte(ddoc), dialect, "i", partitioned)
	if err != nil {
		t.Fatal(err)
	}
	e := script.New(script.Options{Timeout: func() time.Duration { return timeout }})
	t.Cleanup(func() { _ = e.Close() })
	x, err := New(e)(t.Context(), "db.1", d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// openFunction opens that of a function.
func openFunction(t *testing.T, dialect syntax.Dialect, source string) search.Indexer {
	t.Helper()
	text, err := json.Marshal("function (doc) { " + source + " }")
	if err != nil {
		t.Fatal(err)
	}
	member := "indexes"
	if dialect == syntax.Nouveau {
		member = "nouveau"
	}
	return open(t, dialect, `{"`+member+`":{"i":{"index":`+string(text)+`}}}`, false)
}

func document(id, body string) *shard.Doc {
	return &shard.Doc{ID: id, Rev: doc.Rev{Pos: 1, ID: "a"}, Body: []byte(body)}
}

// fieldsOf returns the fields of a document, as texts.
func fieldsOf(t *testing.T, x search.Indexer, d *shard.Doc) []string {
	t.Helper()
	fields, err := x.Index(t.Context(), nil, d)
	if err != nil {
		t.Fatal(err)
	}
	return texts(fields)
}

// texts shows fields: those that are not indexed in parentheses.
func texts(fields []search.Field) (out []string) {
	for i := range fields {
		f := &fields[i]
		value := fmt.Sprintf("%q", f.Text)
		if f.IsNumber {
			value = fmt.Sprint(f.Number)
		}
		s := f.Name + "=" + value
		if !f.Indexed {
			s = "(" + s + ")"
		}
		if f.Exact {
			s += " exact"
		}
		if f.Facet {
			s += " facet"
		}
		if f.Boost != 0 {
			s += fmt.Sprintf(" boost %g", f.Boost)
		}
		if f.Type != postings.Untyped {
			s += " " + f.Type.String()
		}
		if f.Stored != nil {
			s += " stored " + string(f.Stored)
		}
		out = append(out, s)
	}
	return out
}

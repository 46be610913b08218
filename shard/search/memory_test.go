package search

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard/search/postings"
	"divan/storage/fault"
)

// TestReadOnce: a list or a column is held once, however many parts of a request name it, and
// counts by its bytes.
func TestReadOnce(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	w := n.write(definition, postings.ChunkBytes)
	defer w.close()
	const docs, words, long = 20, 4000, 8 << 10
	for i := range docs { // each in a batch
		var v postings.Inverter
		v.Begin(fmt.Sprint("d", i))
		for at := range words {
			v.Term("t", []byte("word"), 2*at)
			v.Term("t", []byte("other"), 2*at+1)
		}
		value := fmt.Sprint(i, strings.Repeat("x", long))
		v.Term("tag", []byte(value), 0)
		v.Facet("tag", value)
		v.Keep()
		w.apply(&v, true)
	}
	text := func(q string) func(*Request) { return func(r *Request) { r.Query = q } }
	times := func(part, by string, times int) string { return strings.Repeat(part+by, times-1) + part }
	tag := []Sort{{By: ByString, Field: "tag"}, {By: ByString, Field: "tag", Descending: true}}
	for name, of := range map[string]struct {
		with  func(*Request)
		held  int  // bytes, at least
		often bool // all is allocated that often: what is read is merged from the batches first
	}{
		"or":       {text(times("t:word", " OR ", 400)), docs * words, true},
		"and":      {text(times("t:word", " AND ", 400)), docs * words, true},
		"groups":   {text(times("(t:word AND (t:other^2 OR t:word))", " ", 100)), 2 * docs * words, true},
		"not":      {text("*:*" + times(" -t:word", "", 400)), docs * words, true},
		"phrases":  {text(times(`t:"word other"`, " OR ", 10)), 2 * docs * words, false}, // each has positions
		"prefixes": {text(times(`t:wor*`, " OR ", 10)), docs * words, false},             // each walks over the lists
		"fuzzy":    {text(times("t:ward~1", " OR ", 10)), docs * words, false},
		"sort":     {func(r *Request) { r.Sort = slices.Repeat(tag, 60) }, docs * long, true},
		"counts":   {func(r *Request) { r.Counts = slices.Repeat([]string{"tag"}, 10) }, docs * long, false},
		"groups by a field": {func(r *Request) {
			r.Group = &Group{Field: "tag", Limit: 1, Sort: slices.Repeat(tag, 60)}
		}, docs * long, false},
		"drilldown": {func(r *Request) { r.Drilldown = slices.Repeat([]Drilldown{{Field: "tag"}}, 10) }, docs * long, false},
	} {
		req := Request{Query: "*:*", Limit: 1, IncludeFields: []string{}}
		of.with(&req)
		var err error
		req.Sort, _, err = Distinct(req.Sort)
		must(t, err)
		w.space = 60 << 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.answer(&req)
		runtime.ReadMemStats(&after)
		if took, most := int(after.TotalAlloc-before.TotalAlloc), 12*of.held+4<<20; of.often && took > most {
			t.Errorf("%s: %d bytes in place of %d", name, took, most)
		}
		w.space = of.held / 2
		if _, err := w.try(&req); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s with too little space: %v", name, err)
		}
	}
}

// TestDistinct: of the parts of an order with the same values the first one decides.
func TestDistinct(t *testing.T) {
	order := []Sort{{By: ByString, Field: "a"}, {By: ByID}, {By: ByString, Field: "a", Descending: true}, {By: ByNumber, Field: "a"}, {By: ByID}}
	parts, from, err := Distinct(order)
	if err != nil || !slices.Equal(parts, []Sort{order[0], order[1], order[3]}) || !slices.Equal(from, []int{0, 1, 0, 2, 1}) {
		t.Errorf("%v, %v, %v", parts, from, err)
	}
	if _, _, err := Distinct(slices.Repeat(order[:1], MaxParts+1)); !fault.Is(err, fault.BadRequest) {
		t.Errorf("%d parts: %v", MaxParts+1, err)
	}
}

// TestIncludedIsKept: of the stored fields of a hit those are kept that are asked for.
func TestIncludedIsKept(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	w := n.write(definition, postings.ChunkBytes)
	defer w.close()
	for i := range 50 {
		var v postings.Inverter
		v.Begin(fmt.Sprint("d", i))
		v.Term("t", []byte("word"), 0)
		v.Store("large", []byte(`"`+strings.Repeat("x", 1<<20)+`"`))
		v.Store("small", []byte("1"))
		v.Keep()
		w.apply(&v, true)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	a := w.answer(&Request{Query: "t:word", Limit: 50, IncludeFields: []string{"small"}})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(a.Hits) != 50 || len(a.Hits[0].Fields) != 1 {
		t.Fatalf("%d hits", len(a.Hits))
	}
	if more := int(after.HeapAlloc) - int(before.HeapAlloc); more > 16<<20 {
		t.Errorf("the small fields of 50 documents hold %d bytes", more)
	}
	runtime.KeepAlive(a)
}

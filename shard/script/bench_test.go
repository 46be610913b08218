package script

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// cpuTime reports the CPU time per operation of the whole process: on a shared
// machine it says more than the clock. The function that it returns ends it.
func cpuTime(b *testing.B) func() {
	b.Helper()
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	start := used()
	return func() { b.ReportMetric(float64(used()-start)/float64(b.N), "cpu-ns/op") }
}

// benchDocs are documents of about 1 KB, as a blog would have them.
func benchDocs(n int) [][]byte {
	docs := make([][]byte, n)
	for i := range docs {
		docs[i] = fmt.Appendf(nil, `{"_id":"post-%06d","_rev":"1-%032x","type":"post","author":"author %d","date":"2026-%02d-%02dT12:00:00Z",`+
			`"title":"The title of post number %d","tags":["go","database","tag%d","couch"],"stats":{"views":%d,"likes":[1,2,3],"ratio":0.%d},`+
			`"body":"%s","comments":[{"by":"joe","text":"nice"},{"by":"ann","text":"%s"}]}`,
			i, i, i%50, i%12+1, i%28+1, i, i%20, i*7, i, strings.Repeat("Lorem ipsum dolor sit amet. ", 18), strings.Repeat("more text ", 15))
	}
	return docs
}

func benchMaps() []string {
	return []string{
		"function (doc) { if (doc.type === 'post') { emit([doc.author, doc.date], doc.title); } }",
		"function (doc) { if (doc.tags) { for (var i = 0; i < doc.tags.length; i++) { emit(doc.tags[i], 1); } } }",
		"function (doc) { emit(doc._id, null); }",
	}
}

func BenchmarkMap(b *testing.B) {
	for _, c := range []struct {
		name string
		maps []string
	}{
		{"three", benchMaps()},
		{"whole", []string{"function (doc) { emit(doc._id, doc); }"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			m, err := newEngine(b, Options{}).Mapper(b.Context(), Program{Maps: c.maps})
			if err != nil {
				b.Fatal(err)
			}
			vm, err := m.Acquire(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer m.Release(vm)
			docs, rows := benchDocs(1000), 0
			b.SetBytes(int64(len(docs[0])))
			b.ReportAllocs()
			defer cpuTime(b)()
			for i := 0; b.Loop(); i++ {
				if err := vm.Map(b.Context(), docs[i%len(docs)], rowFunc(func(int, []byte, []byte) { rows++ })); err != nil {
					b.Fatal(err)
				}
			}
			if rows < b.N {
				b.Fatal(rows)
			}
		})
	}
}

func BenchmarkStart(b *testing.B) {
	e := newEngine(b, Options{})
	defer cpuTime(b)()
	for b.Loop() {
		m, err := e.Mapper(b.Context(), Program{Maps: benchMaps()})
		if err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}

func BenchmarkReduce(b *testing.B) {
	values := make([][]byte, 1000)
	for i := range values {
		values[i] = fmt.Appendf(nil, `{"n":%d,"name":"value %d"}`, i, i)
	}
	keys := []byte("[")
	for i := range values {
		keys = fmt.Appendf(keys, `[["a%d",%d],"id%06d"],`, i, i, i)
	}
	keys[len(keys)-1] = ']'
	for _, c := range []struct{ name, source string }{
		{"keys", "function (keys, values, rereduce) { var t = keys.length; for (var j = 0; j < values.length; j++) { t += values[j].n; } return t; }"},
		{"values", "function (keys, values, rereduce) { var t = 0; for (var j = 0; j < values.length; j++) { t += values[j].n; } return t; }"},
	} {
		b.Run(c.name, func(b *testing.B) {
			r, err := newEngine(b, Options{}).Reducer(b.Context(), "", c.source, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			b.ReportAllocs()
			defer cpuTime(b)()
			var out []byte
			for b.Loop() {
				if out, err = r.Reduce(b.Context(), out[:0], keys, values); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSmall are calls that do next to nothing: what a use of a VM costs.
func BenchmarkSmall(b *testing.B) {
	e := newEngine(b, Options{})
	r, err := e.Reducer(b.Context(), "", "function (keys, values) { return sum(values); }", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	d := e.Design("db", []byte(`{"validate_doc_update":"function (n, o, u, s) { if (n.type === 'x') { throw {forbidden: 'no'}; } }"}`))
	values, user := [][]byte{[]byte("1"), []byte("2"), []byte("3")}, []byte(`{"name":"x"}`)
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"rereduce", func() error { _, err := r.Rereduce(b.Context(), nil, values); return err }},
		{"validate", func() error { return d.Validate(b.Context(), []byte(`{"a":1}`), nil, user, []byte("{}")) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			defer cpuTime(b)()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// callCount counts calls of index().
type callCount int

func (n *callCount) Call(*Call) error { *n++; return nil }
func (n *callCount) Drop(int)         {}

func BenchmarkIndex(b *testing.B) {
	m, err := newEngine(b, Options{}).Mapper(b.Context(), Program{IndexArguments: 2, Maps: []string{
		"function (doc) { index('title', doc.title, {store: true}); index('body', doc.body); index('author', doc.author, {facet: true, index: 'not_analyzed'}); index('views', doc.stats.views); }",
	}})
	if err != nil {
		b.Fatal(err)
	}
	vm, err := m.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer m.Release(vm)
	docs := benchDocs(1000)
	var calls callCount
	b.ReportAllocs()
	defer cpuTime(b)()
	for i := 0; b.Loop(); i++ {
		if err := vm.Index(b.Context(), docs[i%len(docs)], &calls); err != nil {
			b.Fatal(err)
		}
	}
	if int(calls) < 4*b.N {
		b.Fatal(calls)
	}
}

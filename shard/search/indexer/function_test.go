package indexer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"divan/shard/index"
	"divan/shard/script"
	"divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// TestSearchCalls: what index(name, value, options) makes.
func TestSearchCalls(t *testing.T) {
	for source, want := range map[string][]string{
		`index("s", "Hello World", {store: true})`:                        {`s="Hello World" stored "Hello World"`},
		`index("s", "x", {store: "yes"}); index("s", "y", {store: "NO"})`: {`s="x" stored "x"`, `s="y"`},
		`index("n", 5, {store: true}); index("n", 12.5)`:                  {`n=5 stored 5.0`, `n=12.5`},
		`index("n", 1e100, {store: true, index: false})`:                  {`n=1e+100 stored 1e+100`},
		`index("b", true, {store: true, facet: true, index: false})`:      {`b="true" exact stored "true"`},
		`index("s", "x", {index: false, store: true})`:                    {`(s="") stored "x"`},
		`index("s", "x", {index: false})`:                                 {`(s="")`},
		`index("s", "x", {index: "no", store: true, boost: 3})`:           {`(s="") stored "x"`},
		`index("s", "x", {index: "not_analyzed"})`:                        {`s="x" exact`},
		`index("s", "x", {index: "NOT_ANALYZED_NO_NORMS"})`:               {`s="x" exact`},
		`index("s", "x", {index: "analyzed_no_norms"})`:                   {`s="x"`},
		`index("s", "x", {index: "what", boost: 2.5})`:                    {`s="x" boost 2.5`},
		`index("s", "x", {boost: 0}); index("s", "x", {boost: "7"})`:      {`s="x"`, `s="x"`},
		`index("f", "x", {facet: true, index: false})`:                    {`(f="x") facet`},
		`index("f", "", {facet: true, store: true})`:                      {`f="" stored ""`},
		`index("f", 3, {facet: true})`:                                    {`f=3 facet`},
		`index("n", Number("x"), {store: true, facet: true})`:             {`(n="")`},
		`index("a:b c", "x")`:                                             {`a:b c="x"`},
		`index("", "x")`:                                                  {`="x"`},
		`index("s", "x", 0); index("s", "y", "")`:                         {`s="x"`, `s="y"`},
		`index("s", "x", [1]); index("s", "y", new Date(0))`:              {`s="x"`, `s="y"`},
		// What throws leaves nothing.
		`index("s", "before"); index("s", doc.nosuch)`: nil,
		`index("s", null)`:                 nil,
		`index("s", {a: 1})`:               nil,
		`index("s", ["a"])`:                nil,
		`index("s", new String("a"))`:      nil,
		`index("s", "x", "store")`:         nil,
		`index("s", "x", 1)`:               nil,
		`index("s", "x", function () {})`:  nil,
		`index("_s", "x")`:                 nil,
		`index(3, "x")`:                    nil,
		`index("s")`:                       nil,
		`index(doc.long, "x")`:             nil,
		`index("s", "before"); throw "up"`: nil,
		`try { index("_s", "x") } catch (e) { index("e", e.name) }`:                   {`e="ReservedName"`},
		`try { index("s") } catch (e) { index("e", String(e instanceof TypeError)) }`: {`e="true"`},
	} {
		x := openFunction(t, syntax.Search, source)
		if got := fieldsOf(t, x, document("d", `{"long":"`+strings.Repeat("n", 2000)+`"}`)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", source, got)
		}
	}
}

// TestNouveauCalls: what index(type, name, value, options) makes.
func TestNouveauCalls(t *testing.T) {
	for source, want := range map[string][]string{
		`index("string", "s", "x", {store: true})`:                           {`s="x" exact facet STRING stored "x"`},
		`index("text", "t", "one two", {facet: true})`:                       {`t="one two" TEXT`},
		`index("double", "n", 1, {store: true}); index("double", "n", -2.5)`: {`n=1 facet DOUBLE stored 1.0`, `n=-2.5 facet DOUBLE`},
		`index("stored", "o", "s"); index("stored", "o", 3, {store: false})`: {`(o="") STORED stored "s"`, `(o=3) STORED stored 3.0`},
		`index("double", "n", 0/0, {store: true})`:                           {`(n="") DOUBLE`},
		`index("string", "$a", ""); index("string", "B_9", "y")`:             {`$a="" exact facet STRING`, `B_9="y" exact facet STRING`},
		`index("string", "s", "x", {store: "yes"})`:                          {`s="x" exact facet STRING stored "x"`},
		`index("string", "s", undefined)`:                                    nil,
		`index("string", "s", 1)`:                                            nil,
		`index("string", "s", "half"); index("double", "n", "no")`:           nil,
		`index("stored", "o", true)`:                                         nil,
		`index("text", "t", true)`:                                           nil,
		`index("date", "s", "x")`:                                            nil,
		`index(1, "s", "x")`:                                                 nil,
		`index("string")`:                                                    nil,
		`index("string", "_s", "x")`:                                         nil,
		`index("string", "s", "x", 1)`:                                       nil,
		`index("string", "bad-name", "x"); throw 1`:                          nil,
	} {
		x := openFunction(t, syntax.Nouveau, source)
		if got := fieldsOf(t, x, document("d", `{}`)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", source, got)
		}
	}
}

// TestNouveauNames: a name that cannot be one ends the build.
func TestNouveauNames(t *testing.T) {
	for _, name := range []string{"", "a-b", "a.b", "9", "$", "$$a", "$_a", "é", "a$", "a\x00"} {
		x := openFunction(t, syntax.Nouveau, fmt.Sprintf(`index("string", "ok", "x"); index("string", %q, "x")`, name))
		fields, err := x.Index(t.Context(), nil, document("d", `{}`))
		of := (*index.DocumentError)(nil)
		if len(fields) > 0 || fault.KindOf(err) != fault.BadRequest || !errors.As(err, &of) || of.ID != "d" {
			t.Errorf("%q: %v, %v", name, fields, err)
		}
	}
}

// TestDesignDocuments: only _search indexes them, and not in a partitioned database, where
// the partition is a field.
func TestDesignDocuments(t *testing.T) {
	const function = `{"index":"function (doc) { if (doc._id !== 'p:none') index('string', 'f', 'x'); }"}`
	const search2 = `{"index":"function (doc) { if (doc._id !== 'p:none') index('f', 'x'); }"}`
	for _, c := range []struct {
		dialect     syntax.Dialect
		ddoc        string
		partitioned bool
		design, doc int // fields
	}{
		{syntax.Search, `{"indexes":{"i":` + search2 + `}}`, false, 1, 1},
		{syntax.Search, `{"indexes":{"i":` + search2 + `}}`, true, 0, 2},
		{syntax.Nouveau, `{"nouveau":{"i":` + function + `}}`, false, 0, 1},
		{syntax.Nouveau, `{"nouveau":{"i":` + function + `}}`, true, 0, 2},
		{syntax.Search, `{"language":"query","indexes":{"i":{"index":{}}}}`, false, 0, 4},
	} {
		x := open(t, c.dialect, c.ddoc, c.partitioned)
		design, d, none := fieldsOf(t, x, document("_design/d", `{}`)), fieldsOf(t, x, document("p:d", `{}`)), fieldsOf(t, x, document("p:none", `{}`))
		if len(design) != c.design || len(d) < c.doc {
			t.Errorf("%s: %q, %q", c.ddoc, design, d)
		}
		if c.partitioned && (len(none) > 0 || !strings.HasPrefix(d[1], `_partition="p" exact`)) {
			t.Errorf("%s: %q, %q", c.ddoc, d, none)
		}
	}
}

// TestDocument: the function gets the document as map functions do.
func TestDocument(t *testing.T) {
	x := openFunction(t, syntax.Search, `index("id", doc._id + doc._rev); index("n", sum([doc.n, 1])); try { doc.n = 5 } catch (e) {} index("j", toJSON(doc.n)); log(doc); emit(1, 1)`)
	if got, want := fieldsOf(t, x, document("d", `{"n":2}`)), []string{`id="d1-a"`, `n=3`, `j="2"`}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestLimits: one document cannot take what all have.
func TestLimits(t *testing.T) {
	for source, code := range map[string]string{
		`for (var i = 0; i < 1e6; i++) index("a", "b")`:                  "too_many_fields",
		`var s = "x".repeat(1e6); for (;;) index("a", s, {store: true})`: "too_many_fields",
		`for (;;) { try { index("a", "b") } catch (e) {} }`:              "too_many_fields",
		`(function f() { f() })()`:                                       "stack_overflow",
		`var a = []; for (;;) a.push("x".repeat(99) + a.length)`:         "out_of_memory",
		`throw "fatal_error"`:                                            "map_runtime_error",
	} {
		x := openFunction(t, syntax.Search, source)
		fields, err := x.Index(t.Context(), nil, document("d", `{}`))
		of, f := (*index.DocumentError)(nil), (*fault.Error)(nil)
		if !errors.As(err, &of) || !errors.As(err, &f) || f.Code != code || len(fields) > 0 {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestTimeOut: a function that does not end fails, and its batch goes on.
func TestTimeOut(t *testing.T) {
	x := openWithin(t, 200*time.Millisecond, syntax.Search, `{"indexes":{"i":{"index":"function (doc) { index('f', 'x'); while (doc.n) ; }"}}}`, false)
	b := x.(search.Batched).Begin()
	defer b.End()
	for _, n := range []string{"0", "1", "0"} {
		fields, err := b.Index(t.Context(), nil, document("d", `{"n":`+n+`}`))
		f := (*fault.Error)(nil)
		if n == "0" && (err != nil || len(fields) != 1) || n == "1" && (!errors.As(err, &f) || f.Code != "os_process_error" || len(fields) > 0) {
			t.Errorf("%s: %v, %v", n, fields, err)
		}
	}
}

// TestBatches: one document does not reach another of its batch, on however many goroutines
// batches run.
func TestBatches(t *testing.T) {
	x := openFunction(t, syntax.Search, `if (doc.n % 3 == 0) throw doc.n; this.n = doc.n; for (var i = 0; i < doc.n % 5; i++) index("f" + doc.n, "x" + i)`)
	var running sync.WaitGroup
	for g := range 3 {
		running.Go(func() {
			b := x.(search.Batched).Begin()
			defer b.End()
			var fields []search.Field
			want := 0
			for n := range 100 {
				var err error
				if fields, err = b.Index(t.Context(), fields, document(fmt.Sprint(g), fmt.Sprintf(`{"n":%d}`, n))); err != nil {
					t.Error(err)
					return
				}
				if n%3 > 0 {
					want += n % 5
				}
				if len(fields) != want || n%3 > 0 && n%5 > 0 && fields[want-1].Name != fmt.Sprint("f", n) {
					t.Errorf("%d fields after document %d, want %d", len(fields), n, want)
					return
				}
			}
		})
	}
	running.Wait()
}

// TestOutOfMemory: a document gets a VM of its own before it fails for what others have
// left.
func TestOutOfMemory(t *testing.T) {
	x := openFunction(t, syntax.Search, `var f = arguments.callee; f.keep = f.keep || []; f.keep.push(new ArrayBuffer(12e6)); index("f", "x")`)
	b := x.(search.Batched).Begin()
	defer b.End()
	for range 12 {
		if fields, err := b.Index(t.Context(), nil, document("d", `{}`)); err != nil || len(fields) != 1 {
			t.Fatal(fields, err)
		}
	}
}

// TestOpenRefuses: a function that is none.
func TestOpenRefuses(t *testing.T) {
	e := script.New(script.Options{})
	defer func() { _ = e.Close() }()
	for _, source := range []string{`"function (doc { }"`, `"17"`} {
		d, err := search.Parse([]byte(`{"indexes":{"i":{"index":`+source+`}}}`), syntax.Search, "i", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(e)(t.Context(), "db.1", d); fault.KindOf(err) != fault.CompilationError {
			t.Errorf("%s: %v", source, err)
		}
	}
}

package script

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"divan/storage/fault"
)

// callList is the calls of index() over a document, as texts.
type callList struct {
	calls  []string
	refuse func(*Call) error
}

func (l *callList) Call(c *Call) error {
	if l.refuse != nil {
		if err := l.refuse(c); err != nil {
			return err
		}
	}
	var b strings.Builder
	for i := range c.Arguments {
		b.WriteString(show(&c.Arguments[i]) + " ")
	}
	b.WriteString(show(&c.Options))
	for i, name := range optionNames() {
		if a := c.option(i); a.Kind != Undefined {
			b.WriteString(" " + name + "=" + show(a))
		}
	}
	l.calls = append(l.calls, b.String())
	return nil
}

func (l *callList) Drop(int) { l.calls = nil }

func show(a *Argument) string {
	switch a.Kind {
	case Undefined:
		return "-"
	case Null:
		return "null"
	case Text:
		return fmt.Sprintf("%q", a.Text)
	case Number:
		return fmt.Sprint(a.Number)
	case Boolean:
		return fmt.Sprint(a.True)
	case Object:
		return "{}"
	default:
		return "?"
	}
}

// indexVM is a VM for one index function.
func indexVM(t *testing.T, o Options, source string) *MapVM {
	t.Helper()
	e := newEngine(t, o)
	m, err := e.Mapper(t.Context(), Program{Maps: []string{source}, IndexArguments: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	vm, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Release(vm) })
	return vm
}

// TestIndexCalls: the results of calls of index with arguments of all kinds.
func TestIndexCalls(t *testing.T) {
	for source, want := range map[string][]string{
		`index()`:                               {`- - -`},
		`index(null, undefined, "o")`:           {`null - "o"`},
		`index([], {}, [])`:                     {`{} {} {}`},
		`index(Symbol("x"), 5n, index)`:         {`? ? ?`},
		`index("a", 0/0); index("a", 1/0)`:      {`"a" NaN -`, `"a" +Inf -`},
		`index("a", doc.s)`:                     {`"a" "sé😀" -`},
		`index("a", 1.5, {store: true})`:        {`"a" 1.5 {} store=true`},
		`index("a", "x"); index("b", -7, null)`: {`"a" "x" -`, `"b" -7 null`},
		`index("a", true, {boost: 2, facet: "x", other: 1, index: undefined})`:                                                     {`"a" true {} facet="x" boost=2`},
		`index("a", "x", {get store() { return "y" + "es"; }, "facet": true})`:                                                     {`"a" "x" {} store="yes" facet=true`},
		`index("a", "x", Object.create({store: true}))`:                                                                            {`"a" "x" {} store=true`},
		`index("a", "x", new Proxy({}, {get: (o, n) => n}))`:                                                                       {`"a" "x" {} store="store" index="index" facet="facet" boost="boost"`},
		`index("a", "x", {store: doc, index: [], boost: null})`:                                                                    {`"a" "x" {} store={} index={} boost=null`},
		`index("a", "\ud800x\udc00")`:                                                                                              {"\"a\" \"�x�\" -"},
		`var r = ""; for (var i = 0; i < 3; i++) r += doc.long + "\ud83d\ude00\udc00"; index("a", r.length + r.slice(1000, 1004))`: {"\"a\" \"3009😀�y\" -"},
		`emit(1, 2)`:                                          nil,
		`index("a", "x"); throw "up"`:                         nil,
		`index("a", "x"); throw {name: "n"}`:                  nil,
		`index("a", "x"); nosuch()`:                           nil,
		`index("a", "x", {get store() { throw 1; }})`:         nil,
		`index("a", "x", {get store() { index("b", "y"); }})`: nil,
		`try { index("a", "x", {get store() { index("b", "y"); }}) } catch (e) { index("c", e.name) }`: {`"c" "InternalError" -`},
		`index = 5; index("a", "x")`:                                   nil,
		`var keep = index; index = null; keep("a", "x"); index = keep`: {`"a" "x" -`},
		`doc.s = "other"; index("a", doc.s)`:                           {`"a" "sé😀" -`},
		`Object.prototype.store = true; index("a", "x", {})`:           {`"a" "x" {} store=true`},
	} {
		vm := indexVM(t, Options{}, "function (doc) { "+source+" }")
		for range 2 {
			var got callList
			doc := `{"_id":"d","s":"sé😀","long":"` + strings.Repeat("y", 1000) + `"}`
			if err := vm.Index(t.Context(), []byte(doc), &got); err != nil || !slices.Equal(got.calls, want) {
				t.Errorf("%s: %q, %v", source, got.calls, err)
			}
		}
	}
}

// TestIndexRefusals: a script may catch what index throws, and nothing else that ends it.
func TestIndexRefusals(t *testing.T) {
	for source, want := range map[string][]string{
		`try { index("bad", 1) } catch (e) { index("caught", e.name + ": " + e.message + " " + (e instanceof Error)) }`: {`"caught" "Odd: it is odd true" -`},
		`index("good", 1); index("bad", 1)`: nil,
		`Error = null; TypeError = 5; try { index("bad", 1) } catch (e) { index("caught", e.message) }`: {`"caught" "it is odd" -`},
	} {
		vm := indexVM(t, Options{}, "function (doc) { "+source+" }")
		got := callList{refuse: func(c *Call) error {
			if string(c.Arguments[0].Text) == "bad" {
				return &Refusal{"Odd", "it is odd"}
			}
			return nil
		}}
		if err := vm.Index(t.Context(), []byte(`{}`), &got); err != nil || !slices.Equal(got.calls, want) {
			t.Errorf("%s: %q, %v", source, got.calls, err)
		}
	}
	full := errors.New("full")
	vm := indexVM(t, Options{}, `function (doc) { try { index("a", 1) } finally { index("b", 1) } }`)
	err := vm.Index(t.Context(), []byte(`{}`), &callList{refuse: func(*Call) error { return full }})
	if in := (*FunctionError)(nil); !errors.Is(err, full) || !errors.As(err, &in) {
		t.Error(err)
	}
}

// TestIndexHostile: what a function may not do ends it, and says so.
func TestIndexHostile(t *testing.T) {
	const short, long = 300 * time.Millisecond, time.Minute
	for source, code := range map[string]string{
		`for (;;) index("a", 1)`: "os_process_error",
		`for (;;) {}`:            "os_process_error",
		`var o = {get store() { for (;;) {} }}; try { index("a", "x", o) } catch (e) {}`: "os_process_error",
		`(function f() { f() })()`:                                        "stack_overflow",
		`var a = []; for (;;) a.push("x" + a.length)`:                     "out_of_memory",
		`var s = "x"; for (var i = 0; i < 27; i++) s += s; index("a", s)`: "too_large",
		`var s = "x"; for (var i = 0; i < 27; i++) s += s; index(s, 1)`:   "too_large",
		`throw "fatal_error"`:                                             "map_runtime_error",
		`throw ["fatal", "mine", "why"]`:                                  "mine",
		`Promise.resolve().then(() => index("late", 1)); index("a", 1)`:   "late_emit",
	} {
		timeout := long // but for functions that only the time ends
		if code == "os_process_error" {
			timeout = short
		}
		vm := indexVM(t, Options{Timeout: func() time.Duration { return timeout }, Memory: 16 << 20}, "function (doc) { "+source+" }")
		err := vm.Index(t.Context(), []byte(`{"_id":"d"}`), &callList{})
		if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Code != code {
			t.Errorf("%s: %v", source, err)
		}
	}
	for _, source := range []string{
		`throw null`, `throw undefined`, `throw {get name() { throw 1; }}`, `throw new Proxy({}, {get() { throw 1; }})`, `throw Symbol("x")`, `throw function () {}`,
		`throw ["error", "forbidden", "x"]`, `throw {forbidden: 1}`,
	} {
		got := callList{}
		vm := indexVM(t, Options{}, `function (doc) { index("a", 1); `+source+` }`)
		if err := vm.Index(t.Context(), []byte(`{"_id":"d"}`), &got); err != nil || len(got.calls) > 0 {
			t.Errorf("%s: %q, %v", source, got.calls, err)
		}
	}
}

// TestIndexIsForIndexFunctions: functions of views have no index.
func TestIndexIsForIndexFunctions(t *testing.T) {
	got := mapAll(t, Program{Maps: []string{`function (doc) { emit(typeof index, 1); }`}}, `{}`)
	if !slices.Equal(got, []string{`0 "undefined" 1`}) {
		t.Error(got)
	}
}

func TestTruthy(t *testing.T) {
	for _, a := range []Argument{{}, {Kind: Null}, {Kind: Text}, {Kind: Number}, {Kind: Number, Number: math.NaN()}, {Kind: Boolean}} {
		if a.Truthy() {
			t.Errorf("%+v", a)
		}
	}
	for _, a := range []Argument{{Kind: Text, Text: []byte("0")}, {Kind: Number, Number: -1}, {Kind: Boolean, True: true}, {Kind: Object}, {Kind: OtherValue}} {
		if !a.Truthy() {
			t.Errorf("%+v", a)
		}
	}
}

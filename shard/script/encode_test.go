package script

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	lib "modernc.org/libquickjs"
	"pgregory.net/rapid"
)

// scratchVM is a VM for what is below maps.
func scratchVM(t *testing.T) *vm {
	t.Helper()
	e := newEngine(t, Options{})
	s := functionSet{engine: e, kind: forIndexes, setUp: func(*vm) error { return nil }}
	v, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.release(v) })
	v.begin(t.Context(), e.o.Timeout())
	return v
}

// both are the texts that the encoder and the engine's own JSON.stringify make.
func both(t *testing.T, v *vm, source string) (encoded, stringified string) {
	t.Helper()
	x, err := v.realm.eval(source, "test")
	if err != nil || isException(x) {
		t.Fatal(source, err, v.exceptions.take())
	}
	defer v.realm.free(x)
	s := lib.XJS_JSONStringify(v.realm.tls, v.realm.ctx, x, undefined(), undefined())
	defer v.realm.free(s)
	switch {
	case isException(s):
		_ = v.exceptions.take()
		stringified = "exception"
	case int32(s.Ftag) == lib.EJS_TAG_UNDEFINED:
		stringified = "undefined"
	default:
		stringified, _ = v.realm.text(s)
		stringified = string(replaceSurrogates([]byte(stringified))) // as no text has them
	}
	v.encoder.unwind(0)
	written, ok := v.encoder.encode(x)
	switch {
	case !ok:
		_ = v.exceptions.take()
		return "exception", stringified
	case !written:
		return "undefined", stringified
	}
	return string(v.encoder.since(0)), stringified
}

func TestEncodeLikeStringify(t *testing.T) {
	t.Parallel()
	v := scratchVM(t)
	for _, source := range []string{
		"null", "undefined", "true", "1", "-0", "0.1+0.2", "1e21", "1e-7", "-1.5e-10", "123456789012345680000", "5e-324", "1.7976931348623157e308",
		"NaN", "-Infinity", "4294967296", "-2147483649", "Symbol('x')", "10n", "(function () {})",
		"''", "'a\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f'", "'üé\\xff'", "'日本😀'", "'\\ud800'", "'a\\udc00b'", "'\\ud800\\ud800\\udc00'", "'\\u2028\\u2029'",
		"'x'.repeat(600) + 'ü'.repeat(600) + '日'.repeat(600)",
		"[]", "[1,,2]", "[undefined, function () {}, Symbol()]", "var a = [1,2,3]; a.length = 5; a", "var a = [1,2,3]; a.length = 1; a", "var a = []; a[5] = 1; a",
		"var a = [1]; a.x = 2; a", "Object.freeze([1,{a:2}])", "[[[]],{}]",
		"({})", "({a: undefined, b: function () {}, c: null})", "({b: 1, 2: 'x', a: 1, 1: 'y', '-1': 0, '01': 0})", "({'ü': 1, '日': 2, '\"': 3, '': 4, '\\ud800': 5})",
		"({[Symbol('s')]: 1, a: 2})", "Object.create({a: 1})", "Object.create(null)", "var o = {a: 1, b: 2, c: 3}; delete o.b; o.d = 4; o",
		"Object.defineProperty({a: 1}, 'hidden', {value: 1})", "Object.defineProperty({a: 1}, 'g', {get: function () { return [2]; }, enumerable: true})",
		"({__proto__: null, a: 1})", "({['__proto__']: 1})", "var o = {}; for (var i = 0; i < 200; i++) { o['k' + i] = i; if (i % 3) { delete o['k' + (i - 1)]; } } o",
		"new Date(0)", "({d: new Date(1e12), e: [new Date(NaN)]})", "/x/", "new Map([[1, 2]])", "new Set([1])", "new Number(3)", "new String('s')", "new Boolean(false)",
		"new Uint8Array([1, 2])", "(function () { return arguments; })(1, 2)", "new Error('boom')", "new (class A { constructor() { this.x = 1; } })()",
		"new (class B extends Array {})(1, 2, 3)", "new Proxy({a: 1}, {})", "new Proxy([1, 2], {})", "[new Proxy([1], {})]",
		"({toJSON: function (k) { return {k: 1}; }})", "({toJSON: 5, a: 1})", "({a: {toJSON: function () { return undefined; }}})", "[{toJSON: function () {}}]",
		"Object.create({toJSON: function () { return 'inherited'; }})", "({a: {toJSON: function () { throw 1; }}})",
		"({get a() { throw 1; }})", "var c = {}; c.c = c; c", "var c = []; c.push([c]); c", "var s = {a: 1}; ({x: s, y: s})",
		"Object.prototype.toJSON = function () { return 'all'; }; ({a: 1})", "delete Object.prototype.toJSON; ({a: 1})",
		"Array.prototype.toJSON = function () { return 'array'; }; ({a: [1]})", "delete Array.prototype.toJSON; [1]",
		"Object.prototype.inherited = 1; ({a: 1})", "delete Object.prototype.inherited; ({a: 1})",
		"String.prototype.toJSON = function () { return 'no'; }; 'primitive'", "delete String.prototype.toJSON; 's'",
	} {
		if strings.HasPrefix(source, "String.prototype.toJSON") {
			continue // only JSON.stringify asks strings
		}
		if got, want := both(t, v, source); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}

// TestEncodeAnyJSON takes JSON there and back.
func TestEncodeAnyJSON(t *testing.T) {
	t.Parallel()
	v := scratchVM(t)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(), rapid.Int32().AsAny(),
			rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).AsAny(),
		}
		if depth > 0 {
			kinds = append(kinds, rapid.SliceOfN(value(depth-1), 0, 5).AsAny(), rapid.MapOfN(rapid.StringN(0, 6, -1), value(depth-1), 0, 5).AsAny())
		}
		return rapid.OneOf(kinds...)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text, err := json.Marshal(value(3).Draw(rt, "value"))
		if err != nil {
			rt.Fatal(err)
		}
		got, want := both(t, v, "("+string(text)+")")
		if got != want {
			rt.Errorf("%s: %s, want %s", text, got, want)
		}
	})
}

func TestModules(t *testing.T) {
	t.Parallel()
	library, err := json.Marshal(map[string]any{
		"math":     "exports.square = function (x) { return x * x; }; exports.name = module.id; exports.above = typeof module.parent;",
		"words":    map[string]any{"lower": "exports.lower = function (s) { return s.toLowerCase(); };", "deep": map[string]any{"first": "var l = require('../lower').lower; exports.first = function (s) { return l(s).charAt(0); };"}},
		"replaced": "module.exports = function (x) { return 'called with ' + x; };",
		"broken":   "this is not code",
		"throws":   "throw new Error('at load');",
		"circle1":  "exports.before = 1; exports.other = require('./circle2'); exports.after = 2;",
		"circle2":  "exports.seen = typeof require('./circle1').before;",
		"comment":  "exports.x = 1; // at the end",
		"counter":  "exports.n = 0;",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ body, want string }{
		{"var m = require('views/lib/math'); emit(m.square(4), [m.name, m.above]);", `0 16 ["views/lib/math","object"]`},
		{"emit(require('views/lib/words/deep/first').first('Tree'));", `0 "t" null`},
		{"emit(require('views/lib/replaced')(4));", `0 "called with 4" null`},
		{"var c = require('views/lib/circle1'); emit(c.after, c.other.seen);", `0 2 "undefined"`},
		{"emit(require('views/lib/comment').x);", "0 1 null"},
		{"require('views/lib/counter').n++; emit(require('views/lib/counter').n);", "0 1 null"},
		{"try { require('views/lib/broken'); } catch (e) { emit(e[0], e[1]); }", `0 "error" "compilation_error"`},
		{"try { require('views/lib/throws'); } catch (e) { emit(e[1], e[2]); }", `0 "compilation_error" "Module require('views/lib/throws') raised error Error: at load"`},
		{"for (var i = 0; i < 2; i++) { try { require('views/lib/throws'); } catch (e) { emit(i, e[1]); } }", `0 0 "compilation_error",0 1 "compilation_error"`},
		{"try { require('views/lib/nope'); } catch (e) { emit(e[0], e[1]); }", `0 "error" "invalid_require_path"`},
		{"try { require('other'); } catch (e) { emit(e[0], e[1]); }", `0 "error" "invalid_require_path"`},
		{"try { require('views/lib/words'); } catch (e) { emit(e[1], e[2]); }", `0 "invalid_require_path" "Must require a JavaScript string, not: object"`},
		{"try { require('./x'); } catch (e) { emit(e[0], e[1]); }", `0 "error" "invalid_require_path"`},
		{"try { require('views/lib/math/length'); } catch (e) { emit(e[0], e[1]); }", `0 "error" "invalid_require_path"`},
		{"require('views/lib/nope'); emit(1);", ""},
	} {
		got := mapAll(t, Program{Maps: []string{"function (doc) { " + c.body + " }"}, Lib: library}, `{"_id":"a"}`)
		if strings.Join(got, ",") != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
}

func TestMapFunctions(t *testing.T) {
	t.Parallel()
	const a = `{"_id":"a","_rev":"1-x","n":1,"list":[3,1,2],"text":"übergröße","when":"2024-02-29T12:00:00Z","nested":{"deep":{"x":1}}}`
	for _, c := range []struct{ source, want string }{
		{"function (doc) { throw 'oops'; }", ""},
		{"function (doc) { emit(1, 'before'); throw new Error('oops'); }", ""},
		{"function (doc) { emit(); emit(1); emit(undefined, undefined); emit([1, undefined], {a: undefined, b: null}); }", `null null|1 null|null null|[1,null] {"b":null}`},
		{"function (doc) { emit(0/0, 1/0); emit(-0, 9007199254740993); }", "null null|0 9007199254740992"},
		{"function (doc) { emit(new Date(doc.when), new Date(0)); }", `"2024-02-29T12:00:00.000Z" "1970-01-01T00:00:00.000Z"`},
		{"function (doc) { emit(/x/, function () {}); emit('e', new Error('boom')); }", `{} null|"e" {"error":"Error","message":"boom"}`},
		{"function (doc) { doc.n = 100; delete doc.list; emit(doc.n, doc.list); }", "1 [3,1,2]"},
		{"function (doc) { try { doc.list.sort(); emit('sorted', doc.list); } catch (e) { emit('frozen', doc.list); } }", `"frozen" [3,1,2]`},
		{"function (doc) { doc.nested.deep.x = 2; emit(doc.nested); }", `{"deep":{"x":1}} null`},
		{"function (doc) { emit([isArray(doc.list), typeof sum, typeof toJSON, typeof require, typeof log], sum([1, 2, doc.n])); }", `[true,"function","function","function","function"] 4`},
		{"function (doc) { emit(toJSON({a: [1]}), JSON.parse('{\"b\":2}')); }", `"{\"a\":[1]}" {"b":2}`},
		{"function (doc) { emit(doc.text.toUpperCase(), doc.text.length); }", `"ÜBERGRÖSSE" 9`},
		{"(doc) => { const {n, _id} = doc; emit([`k:${n}`, ...[_id]], null); }", `["k:1","a"] null`},
		{"function (doc) { return [[doc.n, 1]]; }", ""},
		{"function (doc) { emit(this === globalThis); }", "true null"},
		{"function map(doc) { emit(doc.n); };", "1 null"},
		{"  function (doc) { emit(doc.n); } ; // why", "1 null"},
		{"// why\nfunction (doc) { emit(doc.n); }\n/* why */", "1 null"},
		{"(function (doc) { emit(doc.n); })", "1 null"},
		{"var f = 2; function helper(x) { return x * f; } function (doc) { emit(helper(doc.n)); }", "2 null"},
		{"var f = function (doc) { emit(doc.n); }; f", "1 null"},
		{"'use strict'; (function (doc) { emit(doc.n); })", "1 null"},
	} {
		var got []string
		for _, row := range mapAll(t, Program{Maps: []string{c.source}}, a) {
			got = append(got, strings.TrimPrefix(row, "0 "))
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s: %s, want %s", c.source, s, c.want)
		}
	}
	// Each function has rows of its own, no matter what the others do.
	got := mapAll(t, Program{Maps: []string{
		"function (doc) { emit(doc.n); doc.n = 7; emit(2); throw 1; }", "function (doc) { emit(doc.n, 'x'); emit(doc.n, 'x'); }", "function (doc) { emit(doc._id); }",
	}}, `{"_id":"a","n":1}`, `{"_id":"b"}`)
	if s := fmt.Sprint(got); s != `[1 1 "x" 1 1 "x" 2 "a" null 1 null "x" 1 null "x" 2 "b" null]` {
		t.Error(s)
	}
}

func TestMapErrors(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Timeout: func() time.Duration { return time.Second }})
	for _, c := range []struct{ source, want string }{
		{"", "3 : missing function"},
		{"42", "28 : Expression does not eval to a function. (42)"},
		{"function (doc) { emit(", "28 : SyntaxError: "},
		{"function (keys { }", "28 : SyntaxError: "},
		{"this is no code", "28 : SyntaxError: "},
		{"(function () { throw new Error('x'); })()", "28 : Error: x ("},
		{"(function () { for (;;) {} })()", "40 os_process_error: OS process timed out."},
		{strings.Repeat("(", 500), "28 : "},
	} {
		for name, check := range map[string]func() error{
			"check":   func() error { return e.CheckFunction(t.Context(), "", c.source) },
			"mapper":  func() error { _, err := e.Mapper(t.Context(), Program{Maps: []string{c.source}}); return err },
			"reducer": func() error { _, err := e.Reducer(t.Context(), "", c.source, nil); return err },
		} {
			if err := check(); !strings.HasPrefix(told(err), c.want) {
				t.Errorf("%s %.50s: %.200s, want %s", name, c.source, told(err), c.want)
			}
		}
	}
	for _, c := range []struct{ source, want string }{
		{"function (doc) { throw 'fatal_error'; }", "40 map_runtime_error: function raised 'fatal_error'"},
		{"function (doc) { throw ['fatal', 'my_error', 'my reason']; }", "40 my_error: my reason"},
	} {
		m, err := e.Mapper(t.Context(), Program{Maps: []string{c.source}})
		if err != nil {
			t.Fatal(err)
		}
		vm, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := vm.Map(t.Context(), []byte("{}"), rowFunc(func(int, []byte, []byte) {})); told(err) != c.want {
			t.Errorf("%s: %s", c.source, told(err))
		}
		m.Release(vm)
		m.Close()
	}
}

package script

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAnalyse(t *testing.T) {
	t.Parallel()
	const all = "all"
	for _, c := range []struct{ source, reads string }{
		{"function (doc) { emit(doc.a, doc['b']); }", "a b"},
		{"function (doc) { emit(1, 2); }", ""},
		{"function () { emit(1, 2); }", ""},
		{"function (doc) { emit(doc); }", all},
		{"function (doc) { emit(doc[0]); }", all},
		{"function (doc) { emit(doc[x]); }", all},
		{"function (doc) { emit(doc['a' + 'b']); }", all},
		{"function (doc) { emit(doc?.a?.b, doc?.['c']); }", "a c"},
		{"function (doc) { emit((doc).a.b.c); }", "a"},
		{"(doc) => { emit(doc.a); }", "a"},
		{"doc => emit(doc.a, null)", "a"},
		{"function map(doc) { emit(doc.a); }", "a"},
		{"function (doc) { doc.a = 1; delete doc.b; doc.c++; }", "a b c"},
		// what is called gets the document as "this"
		{"function (doc) { emit(doc.hasOwnProperty('a')); }", all},
		{"function (doc) { emit(doc.f(1)); }", all},
		{"function (doc) { emit(doc['f'](1)); }", all},
		{"function (doc) { emit(doc?.f?.(1)); }", all},
		{"function (doc) { emit((doc.f)(1)); }", all},
		{"function (doc) { emit(doc.f`x`); }", all},
		{"function (doc) { emit(doc.a.f(1)); }", "a"},
		// other ways to the arguments
		{"function (doc) { emit(doc.a); return arguments[0]; }", all},
		{"function (doc) { emit(doc.a); eval('doc'); }", all},
		{"function (doc) { with (doc) { emit(a); } }", all},
		{"function (doc) { new Function('return 1'); emit(doc.a); }", all},
		{"function f(doc) { emit(f.arguments); }", all},
		{"function (doc) { emit(doc.a, (function g() { return g.caller; })()); }", all},
		// passing it along
		{"function (doc) { var d = doc; emit(d.a); }", all},
		{"function (doc) { helper(doc); emit(doc.a); }", all},
		{"function (doc) { emit([doc], {doc: doc}); }", all},
		{"function (doc) { emit({doc}); }", all},
		{"function (doc) { emit({...doc}); }", all},
		{"function (doc) { for (var k in doc) { emit(k); } }", all},
		{"function (doc) { for (const k of [doc]) { emit(k.a); } }", all},
		{"function (doc) { return doc; }", all},
		{"function (doc) { throw doc; }", all},
		{"function (doc) { emit(doc.a); if ('b' in doc) { emit(1); } }", all},
		{"function (doc) { emit(typeof doc, doc.a); }", all},
		{"function (doc) { emit(`${doc}`); }", all},
		{"function (doc) { emit(`${doc.a}`); }", "a"},
		{"function (doc) { (doc || {}).a; }", all},
		{"function (doc) { if (!doc) { return; } emit(doc.a); }", all},
		{"function (doc, x) { [doc.a, doc.b].forEach(emit); }", "a b"},
		{"function (doc) { var f = () => doc; emit(f().a); }", all},
		{"function (doc) { var f = () => doc.a; emit(f()); }", "a"},
		{"function (doc) { class A extends doc {} emit(doc.a); }", all},
		{"function (doc) { class A { [doc] = 1; } }", all},
		{"function (doc) { switch (doc) { case doc.a: emit(1); } }", all},
		{"function (doc) { async function f() { await doc; } emit(doc.a); }", all},
		{"function (doc) { function* f() { yield doc; } emit(doc.a); }", all},
		{"function (doc) { label: for (;;) { break label; } emit(doc.a); }", "a"},
		// shadowing and assignment
		{"function (doc) { var doc = {}; emit(doc.a); }", all},
		{"function (doc) { doc = {}; emit(doc.a); }", all},
		{"function (doc) { [{}].forEach(function (doc) { emit(doc.b); }); emit(doc.a); }", all},
		{"function (doc) { function doc() {} emit(doc.a); }", all},
		{"function (doc) { try { x(); } catch (doc) { emit(doc.a); } }", all},
		{"function (doc, doc) { emit(doc.a); }", all},
		{"function (doc) { let {doc: d} = doc; emit(d); }", "doc"},
		// patterns and defaults
		{"function ({a, b: {c}, d = 1}) { emit(a, c, d); }", "a b d"},
		{"function ({a, ...rest}) { emit(a, rest); }", all},
		{"function ({['a']: x}) { emit(x); }", all},
		{"function ([a]) { emit(a); }", all},
		{"function (doc = {}) { emit(doc.a); }", all},
		{"function (doc, x = doc) { emit(x); }", all},
		{"function (doc, {x = doc.b}) { emit(doc.a); }", "a b"},
		{"function (...docs) { emit(docs[0].a); }", all},
		{"function (doc) { const {a, b: c} = doc; emit(a, c); }", "a b"},
		{"function (doc) { const {a, ...rest} = doc; emit(a, rest); }", all},
		{"function (doc) { var a; ({a} = doc); emit(a); }", all},
		// prototypes
		{"function (doc) { doc.__proto__ = {get all() { return this; }}; emit(doc.all); }", all},
		{"function (doc) { emit(doc.constructor); }", all},
		{"function (doc) { emit(super_.x, doc.toString); }", all},
		// names in disguise
		{"function (doc) { emit(\\u0064oc); }", all},
		{"function (d\\u006fc) { emit(doc); }", all},
		{"function (doc) { emit(doc.\\u0061); }", "a"},
		{"function (doc) { emit(doc['\\u0061']); }", "a"},
		{"function (doc) { emit(doc['\\ud800']); }", all},
		// what is no single function
		{"(function () { return function (doc) { emit(doc.a); }; })()", all},
		{"function (doc) { emit(doc.a); }; x", all},
		{"function (doc) { emit(doc.a); }; // comment", "a"},
		{"/* comment */ function (doc) { emit(doc.a); }", "a"},
		{"function helper() {} function (doc) { emit(doc.a); }", all},
		{"function (doc) { emit(doc.a) <!-- doc\n }", all},
		{"function (doc) {", all},
		{"", all},
		{strings.Repeat("(", 1e6), all},
		{"function (doc) { emit(doc.a" + strings.Repeat(" ", maxAnalysed) + "); }", all},
	} {
		got := all
		if n := analyse(c.source).of(0); !n.all {
			slices.Sort(n.names)
			got = strings.Join(n.names, " ")
		}
		if got != c.reads {
			t.Errorf("%.80s reads %q, want %q", c.source, got, c.reads)
		}
	}
}

func TestAnalysePure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		pure bool
	}{
		{"emit(doc.a, doc.b);", true},
		{"if (doc.tags) { for (var i = 0; i < doc.tags.length; i++) { emit(doc.tags[i], 1); } }", true},
		{"doc.tags.forEach(function (t) { emit(t, doc._id); });", true},
		{"var d = new Date(doc.date); emit([d.getFullYear(), d.getMonth() + 1], Math.max(doc.a, doc.b));", true},
		{"var out = []; for (const t of doc.tags) { out.push(t); } out[0] = 1; emit(out);", true},
		{"var seen = {}; doc.text.toLowerCase().split(/\\W+/).forEach(function (w) { if (!seen[w]) { seen[w] = true; emit(w); } });", true},
		{"emit(Object.keys(doc.a).map(function (k) { return k.trim(); }));", true},
		{"let n = 0; n += doc.a; n++; emit(n);", true},
		{"doc.a = 1;", false},
		{"delete doc.a;", false},
		{"doc.a++;", false},
		{"doc.a.b = 1;", false},
		{"[doc.a] = [1];", false},
		{"for (doc.a of [1]) {}", false},
		{"for (doc.a in {x: 1}) {}", false},
		{"doc.list.sort(); emit(doc.list);", false},
		{"doc.list['sort']();", false},
		{"doc.list[f]();", false},
		{"var l = doc.list; l.push(1);", false},
		{"var l = []; l = doc.list; l.push(1);", false},
		{"var l = [], m = {}; [l] = [doc.list]; l.push(1);", false},
		{"var l = []; function f(l) { l.push(1); } f(doc.list);", false},
		{"var l = []; for (l of [doc.list]) { l.push(1); }", false},
		{"var o = {list: doc.list}; o.list.sort();", false},
		{"[].push.call(doc.list, 1);", false},
		{"var f = [].push; f;", false},
		{"const {push} = []; [1].forEach(push, doc.list);", false},
		{"var f = [][k]; [1].forEach(f, doc.list);", false},
		{"Object.assign(doc, {a: 1});", false},
		{"Object['assign'](doc, {a: 1});", false},
		{"var O = Object; O[x](doc, {a: 1});", false},
		{"Reflect.set(doc, 'a', 1);", false},
		{"var g = this; g.x(doc);", false},
		{"globalThis[x](doc);", false},
		{"require('views/lib/x')(doc);", false},
		{"doc.constructor.assign(doc, {});", false},
		{"emit(Object.isFrozen(doc));", false},
		{"eval('doc.a = 1');", false},
		{"var o = {__proto__: doc}; o.a = 1;", false},
	} {
		if got := analyse("function (doc) { " + c.body + " }").pure; got != c.pure {
			t.Errorf("%s: pure is %v", c.body, got)
		}
	}
}

// TestProjectionShowsNothing puts functions together from fragments: with or
// without projection and sealing, the rows are the same.
func TestProjectionShowsNothing(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Eval: evaluates})
	docs := []string{
		`{"_id":"a","a":1,"b":[3,1,2],"c":{"d":"x","e":null},"f":"text","__proto__":{"g":1},"toString":2}`,
		`{"_id":"b","b":"y","a":{"a":{"a":1}}, "c" : [ {"d":1} , 2 ] ,"\u0061":"escaped","f":"\"}{\\"}`,
		`{}`, `{"a":"first","a":"second"}`,
	}
	rapid.Check(t, func(rt *rapid.T) {
		source := randomFunction(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(rt, "fragments"))
		if got, want := mapWith(t, e, source, true, docs), mapWith(t, e, source, false, docs); got != want {
			rt.Errorf("%s\nprojected:\n%s\nwhole:\n%s", source, got, want)
		}
	})
}

// randomFunction makes a map function of fragments.
func randomFunction(choice []byte) string {
	fragments := []string{
		"emit(doc.a, doc.b);", "emit(doc['c'], 1);", "emit(doc.c.d, doc.f);", "for (var k in doc) { emit(k, 1); }",
		"emit(Object.keys(doc));", "doc.a = 5; emit(doc.a);", "delete doc.b; emit(doc.b);", "doc.b.sort(); emit(doc.b);",
		"var x = doc; emit(x.f);", "emit(arguments[0]);", "emit(eval('doc'));", "emit([1].map(function (doc) { return doc; }));",
		"emit((() => doc)());", "try { emit(doc.x.y); } catch (e) { emit(String(e)); }", "emit(doc.hasOwnProperty('b'));",
		"Object.defineProperty(Object.prototype, 'all', {get: function () { return this; }, configurable: true});",
		"emit(doc.all);", "delete Object.prototype.all;", "emit(doc.toString);", "const {a, ...more} = doc; emit(a, more);",
		"const {f} = doc; emit(f);", "emit(JSON.stringify(doc.c));", "if (doc.a) {", "}", "emit(doc?.c?.d);",
		"Object.prototype.z = 7; emit(doc.z);", "emit({...doc.c, doc: doc.a});", "var l = [doc.a]; l.push(2); emit(l);",
		"doc = {a: 9};", "emit(this === undefined, typeof doc);", "emit(`${doc.f}`, [doc.b, doc.b].length);",
		"(function () { emit(this && 1); }).call(doc);", "Object.prototype.toJSON = function () { return 'j'; };", "delete Object.prototype.toJSON;",
		"doc.__proto__ = {h: 1}; emit(doc.h);", "var d2 = {__proto__: doc.c}; d2.d = 1; emit(d2.d, doc.c);", "emit(doc.__proto__ === Object.prototype);",
		"Array.prototype.toJSON = function () { return this.length; };", "delete Array.prototype.toJSON;", "emit(doc.b, doc.c);",
	}
	var b strings.Builder
	b.WriteString("function (doc) { ")
	for _, c := range choice {
		b.WriteString(fragments[int(c)%len(fragments)])
		b.WriteByte(' ')
	}
	b.WriteString("}")
	return b.String()
}

// mapWith runs a function over documents, with the static check or without.
func mapWith(t *testing.T, e *Engine, source string, analysed bool, docs []string) string {
	t.Helper()
	m, err := e.Mapper(t.Context(), Program{Maps: []string{source, "function (doc) { emit('second', doc.b); }"}})
	if err != nil {
		return err.Error()
	}
	defer m.Close()
	if !analysed {
		m.read, m.pure = need{all: true}, false
	}
	vm, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release(vm)
	var b strings.Builder
	for _, d := range docs {
		var rows rowList
		err := vm.Map(t.Context(), []byte(d), &rows)
		fmt.Fprintln(&b, rows.texts(), err)
	}
	return b.String()
}

func TestProject(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ doc, want string }{
		{`{"a":1,"b":[1,{"a":2}],"c":"x"}`, `{"a":1,"c":"x"}`},
		{` { "b" : "}" , "a" : { "c" : 1 } , "c" : "\"" } `, `{"a" : { "c" : 1 },"c" : "\""}`},
		{`{"\u0061":1,"b\\":2}`, `{"\u0061":1,"b\\":2}`},
		{`{}`, `{}`},
		{`{"b":1}`, `{}`},
		{`{"a":-1.5e3,"b":true,"c":null}`, `{"a":-1.5e3,"c":null}`},
		{`[1]`, "no"},
		{``, "no"},
		{`{"a":1`, "no"},
		{`{"a"`, "no"},
		{`{"a":"x`, "no"},
		{`{"a":1} x`, "no"},
		{`{"`, "no"},
	} {
		got, ok := project(nil, []byte(c.doc), []string{"a", "c"})
		if !ok {
			got = []byte("no")
		}
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", c.doc, got, c.want)
		}
	}
}

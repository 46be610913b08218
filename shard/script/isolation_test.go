package script

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// lookAround is a function of scripts that sums up everything they can reach:
// globals, what instances inherit from, the design document, modules. Objects are
// named by the order in which they are found.
const lookAround = `function lookAround(self) {
	var found = new Map(), todo = [], out = [];
	function name(x) {
		if (typeof x === 'symbol') { return x.toString(); }
		if (typeof x === 'string' && x.length > 100) { return 'a source'; }
		if ((typeof x !== 'object' || x === null) && typeof x !== 'function') { return typeof x + ' ' + String(x); }
		if (!found.has(x)) { found.set(x, found.size); todo.push(x); }
		return '#' + found.get(x);
	}
	function proto(x) { return name(Object.getPrototypeOf(x)); }
	var m = require('views/lib/m');
	out.push(name(globalThis), name(self), m.count(), name(m), typeof WeakRef, typeof FinalizationRegistry);
	out.push(proto([][Symbol.iterator]()), proto(new Map().entries()), proto(new Set().keys()), proto(''[Symbol.iterator]()), proto(/x/g[Symbol.matchAll]('')));
	out.push(proto(function* () {}), proto(async function () {}), proto(async function* () {}), proto(Object.getPrototypeOf(new Uint8Array(1))));
	out.push(proto([1].values().map(function (x) { return x; })), proto(Iterator.from({next: function () {}})), proto(function () { return arguments; }()));
	out.push(proto(Symbol('')), proto(1), proto(1n), proto(true), name(Object.getOwnPropertyDescriptor(Object.prototype, '__proto__')));
	for (var o; todo.length > 0;) {
		o = todo.pop();
		var keys = Reflect.ownKeys(o), isFunction = typeof o === 'function';
		out.push(name(o), proto(o), Object.isExtensible(o), keys.length, isFunction ? o.name : '', isFunction ? o.length : '');
		if (isFunction && keys.length === 2) { continue; }
		for (var k of keys) {
			var d = Object.getOwnPropertyDescriptor(o, k);
			out.push(k.toString(), (d.writable ? 'w' : '') + (d.enumerable ? 'e' : '') + (d.configurable ? 'c' : ''), name(d.value));
			if (d.get || d.set) { out.push(name(d.get), name(d.set)); }
		}
	}
	return out.join();
}`

// leavings are ways to leave something behind.
var leavings = map[string]string{
	"undeclared variable":       `best = "left";`,
	"member of this":            `this.left = 1; this.views = {lib: {m: "exports.count = function () { return 7; }"}}; delete this.filters;`,
	"member inside this":        `this.views.left = 1; this.views.lib.m = "exports.count = function () { return 7; }";`,
	"global":                    `globalThis.left = 1;`,
	"permanent global":          `Object.defineProperty(globalThis, 'left', {value: 1}); Object.defineProperty(globalThis, 'l2', {get: function () { return 1; }});`,
	"symbol global":             `globalThis[Symbol.for('left')] = 1; globalThis[Symbol.iterator] = function* () {};`,
	"many globals":              `for (var i = 0; i < 500; i++) { globalThis['left' + i] = i; if (i % 3) { delete globalThis['left' + i]; } }`,
	"global of eval":            `(0, eval)('var left = 1; function left2() {}');`,
	"lexical global":            `(0, eval)('let left = 1; const String = function () { return "left"; }; class Map {}');`,
	"global of Function":        `new Function('left = 1; this.left2 = 2;')(); (async function () {}).constructor('left3 = 1')();`,
	"replaced helper":           `sum = toJSON = isArray = log = function () { return 'left'; };`,
	"replaced emit":             `emit = provides = registerType = start = send = getRow = require = function () {};`,
	"replaced global":           `Array = Object = JSON = Math = Map = null;`,
	"redefined undefined":       `Object.defineProperty(globalThis, 'isArray', {get: function () { return 1; }, configurable: true});`,
	"deleted global":            `delete globalThis.sum; delete globalThis.Date;`,
	"deleted and set again":     `var s = sum; delete globalThis.sum; sum = s;`,
	"prototype of global":       `Object.setPrototypeOf(globalThis, {left: 1});`,
	"sealed global":             `Object.preventExtensions(globalThis);`,
	"frozen global":             `Object.freeze(globalThis);`,
	"Object.prototype":          `Object.prototype.left = 1;`,
	"Object.prototype getter":   `Object.defineProperty(Object.prototype, 'look', {get: function () { return 1; }, configurable: true});`,
	"Object.prototype setter":   `Object.prototype.__defineSetter__('left', function () {});`,
	"Object.prototype symbol":   `Object.prototype[Symbol.toStringTag] = 'left';`,
	"through __proto__":         `var o = {}; o['__proto__'] = {}; ({})['__proto__'].left = 1;`,
	"through __proto__ of data": `var o = JSON.parse('{"__proto__": {"left": 1}}'), out = {}; for (var k in o) { out[k] = out[k] || {}; for (var x in o[k]) { out[k][x] = o[k][x]; } }`,
	"through constructor":       `({}).constructor.prototype.left = 1; ({}).constructor.left = 1;`,
	"toString":                  `Object.prototype.toString = Array.prototype.toString = Function.prototype.toString = function () { return 'left'; };`,
	"toJSON":                    `Object.prototype.toJSON = String.prototype.toJSON = Date.prototype.toJSON = function () { return 'left'; };`,
	"array method":              `Array.prototype.push = function () { return 5; };`,
	"array method, wrapped":     `var p = Array.prototype.push; Array.prototype.push = function (x) { globalThis.left = x; return p.call(this, x); };`,
	"array element":             `Array.prototype[3] = 'left';`,
	"array length":              `Array.prototype.length = 5;`,
	"array iterator":            `Array.prototype[Symbol.iterator] = function* () { yield 'left'; };`,
	"deleted method":            `delete Array.prototype.map; delete String.prototype.split;`,
	"flags of a method":         `Object.defineProperty(Array.prototype, 'map', {enumerable: true}); Object.defineProperty(Array.prototype, 'pop', {writable: false});`,
	"prototype of a prototype":  `Object.setPrototypeOf(Array.prototype, {left: 1}); Object.setPrototypeOf(Function.prototype, null);`,
	"frozen prototype":          `Object.freeze(Array.prototype); Object.preventExtensions(String.prototype);`,
	"sorted prototype":          `for (var k in {a: 1}) { Object.defineProperty(String.prototype, k, {value: 1}); delete String.prototype.at; String.prototype.at = 5; }`,
	"string method":             `String.prototype.trim = function () { return 'left'; };`,
	"number, boolean, date":     `Number.prototype.left = Boolean.prototype.left = Date.prototype.left = 1; Date.now = function () { return 0; };`,
	"regexp":                    `RegExp.prototype.exec = function () { return null; }; RegExp.left = 1; /(left)/.exec('left');`,
	"error":                     `Error.prototype.toJSON = Error.prototype.toString = null; TypeError.prototype.name = 'left'; Error.stackTraceLimit = 0; Error.prepareStackTrace = function () { return 'left'; };`,
	"functions":                 `Function.prototype.call = Function.prototype.apply = Function.prototype.bind = function () { return 'left'; };`,
	"namespaces":                `JSON.stringify = JSON.parse = Math.max = function () { return 'left'; }; Math.left = Reflect.left = Atomics.left = 1;`,
	"statics":                   `Object.keys = Array.isArray = Number.isInteger = String.fromCharCode = function () { return 'left'; };`,
	"members of functions":      `Math.max.left = JSON.stringify.left = sum.left = emit.left = require.cache = Array.prototype.push.left = 1;`,
	"names of functions":        `[Math.max, sum, emit, Object.keys, isArray].forEach(function (f) { Object.defineProperty(f, 'name', {value: 'left'}); });`,
	"prototypes of functions":   `Object.setPrototypeOf(Math.max, {left: 1}); Object.setPrototypeOf(emit, null);`,
	"prototype members of ours": `[sum, log, toJSON, require, String.raw, [].flat].forEach(function (f) { if (f.prototype) { f.prototype.left = 1; } f.prototype = {left: 1}; });`,
	"promises":                  `Promise.prototype.then = function () {}; Promise.resolve = null;`,
	"collections":               `Map.prototype.get = Set.prototype.has = function () { return 'left'; }; WeakMap.prototype.left = WeakSet.prototype.left = 1;`,
	"typed arrays":              `var t = Object.getPrototypeOf(Uint8Array); t.left = t.prototype.left = Uint8Array.prototype.left = ArrayBuffer.prototype.left = DataView.prototype.left = 1;`,
	"symbols and big integers":  `Symbol.prototype.left = BigInt.prototype.left = Symbol.left = BigInt.left = 1;`,
	"hidden iterators":          `[[][Symbol.iterator](), new Map().keys(), new Set().keys(), ''[Symbol.iterator](), /x/g[Symbol.matchAll]('')].forEach(function (i) { Object.getPrototypeOf(i).next = null; Object.getPrototypeOf(i).left = 1; });`,
	"hidden generators":         `var g = Object.getPrototypeOf(function* () {}); g.left = g.prototype.left = Object.getPrototypeOf(g.prototype).left = 1; Iterator.prototype.left = 1; Iterator.left = 1;`,
	"hidden async functions":    `[async function () {}, async function* () {}].forEach(function (f) { var p = Object.getPrototypeOf(f); p.left = 1; if (p.prototype) { p.prototype.left = Object.getPrototypeOf(p.prototype).left = 1; } });`,
	"iterator helpers":          `Object.getPrototypeOf([1].values().map(function (x) { return x; })).left = 1; Object.getPrototypeOf(Iterator.from({next: function () {}})).left = 1;`,
	"unscopables":               `Array.prototype[Symbol.unscopables].left = true; delete Array.prototype[Symbol.unscopables].flat;`,
	"species":                   `Object.defineProperty(Array, Symbol.species, {value: function () { return []; }});`,
	"thrower of arguments":      `(function () { 'use strict'; var d = Object.getOwnPropertyDescriptor(arguments, 'callee'); d.get.left = 1; })();`,
	"member of the function":    `arguments.callee.left = (arguments.callee.left || 0) + 1; if (arguments.callee.left > 1) { globalThis.seen = 1; Object.prototype.seen = 1; }`,
	"prototype of the function": `arguments.callee.prototype.left = 1; Object.setPrototypeOf(arguments.callee, null);`,
	"promise that runs later":   `Promise.resolve().then(function () { globalThis.left = 1; Object.prototype.left = 1; });`,
	"promise after promise":     `(async function () { for (var i = 0; i < 50; i++) { await null; } Array.prototype.left = 1; left = 1; })();`,
	"promise that never ends":   `(async function () { await new Promise(function () {}); globalThis.left = 1; })();`,
	"module":                    `var m = require('views/lib/m'); m.box.left = 1; m.left = 1; m.count(); m.count = function () { return 9; };`,
	"module in a module":        `require('views/lib/n').spoil();`,
	"polyfill in a module":      `require('views/lib/polyfill');`,
	"accessor of a prototype":   `Map.prototype.__defineGetter__('size', function () { return 0; }); Object.defineProperty(RegExp.prototype, 'flags', {get: function () { return ''; }});`,
	"private member":            `class A extends (function (o) { return o; }) { #left = 1; static has(o) { return #left in o; } } new A(Object.prototype); new A(Math.max); new A(globalThis); new A(sum);`,
	"proxies":                   `Object.setPrototypeOf(globalThis, new Proxy({}, {get: function () { return 'left'; }})); Object.setPrototypeOf(Array.prototype, new Proxy(Array.prototype, {}));`,
	"reflection":                `Reflect.defineProperty(Object.prototype, 'left', {value: 1}); Reflect.setPrototypeOf(String.prototype, Array.prototype); Reflect.deleteProperty(Math, 'max');`,
	"Object.assign":             `Object.assign(Object.prototype, {left: 1}); Object.assign(Math, {max: null}); Object.assign(this, {left: 1});`,
	"the sandbox's own state":   `registerType('left', 'text/left'); provides('left', function () { return 'left'; }); start({headers: {left: '1'}}); send('left');`,
	"frames of the sandbox":     `try { (function f() { f.caller.left = 1; f(); })(); } catch (e) { e.constructor.left = 1; e.stack.left = 1; }`,
	"regexp from elsewhere":     `var r = /x/; r.compile('left'); RegExp.prototype.lastIndex = 5; RegExp.prototype.compile = null;`,
	"stack overflow":            `left = 1; (function f() { Object.prototype.left = 1; f(); })();`,
	"an exception":              `Object.prototype.error = 'left'; Object.prototype.reason = 'left'; left = 1; throw {forbidden: 'left'};`,
}

// kind calls a function of some kind.
type kind struct {
	name string
	call func(data string) error
}

// world are functions of all kinds with the same body, of an instance of a database.
func world(t *testing.T, e *Engine, instance, leave string) [3][]kind {
	t.Helper()
	source := `function (a, b) {
		if ((a && a.look) || (b && b[0] && b[0].look)) { for (var i = 0, l = (` + lookAround + `)(this); i < l.length; i += 2000) { log(l.substr(i, 2000)); } }
		else { try { ` + leave + ` } catch (e) { } }
		return {0: null, 1: ''};
	}`
	lib := map[string]any{
		"m":        "var n = 0; exports.box = {}; exports.count = function () { return ++n; };",
		"n":        "exports.spoil = function () { require('./m').box.left = 1; require('./m').count(); globalThis.left = 1; exports.left = module.left = 1; };",
		"polyfill": "String.prototype.left = function () { return this; }; globalThis.left = 1; Array.prototype.push.left = 1;",
	}
	d := e.Design(instance, ddoc(t, map[string]any{
		"views":               map[string]any{"lib": lib, "f": map[string]any{"map": source}},
		"validate_doc_update": source, "rewrites": source,
		"filters": map[string]any{"f": source}, "shows": map[string]any{"f": source},
		"lists": map[string]any{"f": source}, "updates": map[string]any{"f": source},
	}))
	m, err := e.Mapper(t.Context(), Program{Instance: instance, Maps: []string{source}, Lib: ddoc(t, lib)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	r, err := e.Reducer(t.Context(), instance, source, ddoc(t, lib))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	return [3][]kind{{
		{"filter", func(data string) error { _, err := d.Filter(ctx, "f", [][]byte{[]byte(data)}, nil); return err }},
		{"filter by a view", func(data string) error { _, err := d.FilterView(ctx, "f", [][]byte{[]byte(data)}); return err }},
		{"validate", func(data string) error { return d.Validate(ctx, []byte(data), nil, []byte("{}"), []byte("{}")) }},
		{"show", func(data string) error { _, err := d.Show(ctx, "f", []byte(data), []byte("{}")); return err }},
		{"list", func(data string) error { return d.List(ctx, "f", []byte(data), []byte("{}"), silentList{}) }},
		{"update", func(data string) error { _, _, err := d.Update(ctx, "f", []byte(data), []byte("{}")); return err }},
		{"rewrite", func(data string) error { _, err := d.Rewrite(ctx, []byte(data)); return err }},
	}, {
		{"map", func(data string) error { return mapOnce(ctx, m, data) }},
	}, {
		{"reduce", func(data string) error {
			_, err := r.Reduce(ctx, nil, []byte("null"), [][]byte{[]byte(data)})
			return err
		}},
		{"rereduce", func(data string) error { _, err := r.Rereduce(ctx, nil, [][]byte{[]byte(data)}); return err }},
	}}
}

func mapOnce(ctx context.Context, m *Mapper, data string) error {
	vm, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	defer m.Release(vm)
	return vm.Map(ctx, []byte(data), rowFunc(func(int, []byte, []byte) {}))
}

// silentList is a view without rows, and without a client that reads.
type silentList struct{}

func (silentList) Row() ([]byte, error) { return nil, nil }
func (silentList) Start([]byte) error   { return nil }
func (silentList) Send([]byte) error    { return nil }
func (silentList) Abort()               {}

// TestNothingIsLeftBehind tries every way to leave something behind in every kind
// of function: neither the next function of the VM, of any kind, nor the next
// instance of the database sees anything of it.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	e := newEngine(t, Options{Eval: evaluates, Logger: zap.New(core)})
	look := func(k kind) string {
		t.Helper()
		logs.TakeAll()
		if err := k.call(`{"look":true}`); err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
		var said strings.Builder
		for _, line := range logs.FilterMessage("message of a script").All() {
			said.WriteString(line.ContextMap()["message"].(string))
		}
		return said.String()
	}
	fresh := map[string]string{}
	for _, kinds := range world(t, e, "/pond.0", "") {
		for _, k := range kinds {
			if fresh[k.name] = look(k); len(fresh[k.name]) < 30_000 {
				t.Fatalf("%s sees: %s", k.name, fresh[k.name])
			}
		}
	}
	sees := func(way, in string, k kind) {
		t.Helper()
		if got := look(k); got != fresh[k.name] {
			t.Errorf("%s in %s: %s sees %s", way, in, k.name, difference(got, fresh[k.name]))
		}
	}
	tried := 0
	for way, leave := range leavings { // in any order
		if tried++; testing.Short() && tried > 3 {
			break
		}
		mine, recreated := world(t, e, "/pond.1", leave), world(t, e, "/pond.2", leave)
		for s, kinds := range mine {
			for i, k := range kinds {
				_ = k.call(`{}`) // some throw
				sees(way, k.name, kinds[(i+1)%len(kinds)])
			}
			sees(way, kinds[0].name+", before the database was made again", recreated[s][0])
		}
		e.dropIdle(func(*vm) bool { return true })
	}
}

// TestForgettingRunsNoScript: what a function has put in the place of an iterator does
// not run while the sandbox forgets, when it could take itself away before anything is compared.
func TestForgettingRunsNoScript(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("/pond.1", ddoc(t, map[string]any{"shows": map[string]any{
		"look": "function (doc, req) { provides('text', function () { return 'x'; }); }",
		"leave": `function (doc, req) {
			registerType('left', 'a/left');
			var usual = Array.prototype[Symbol.iterator];
			Array.prototype[Symbol.iterator] = function () {
				if (this[0] === 'text') { this[1] = 'left/behind'; }
				if (this[0] === 'json') { Array.prototype[Symbol.iterator] = usual; }
				return usual.call(this);
			};
			return 'x';
		}`,
	}}))
	const want = `{"body":"x","headers":{"Content-Type":"text/plain; charset=utf-8"}}`
	for _, name := range []string{"look", "leave", "look"} {
		got, err := d.Show(t.Context(), name, nil, []byte(`{"query":{"format":"text"}}`))
		if err != nil || name == "look" && string(got) != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestTypesAreNotHandedOut: the lists of types that the sandbox keeps cannot be changed by
// a method of arrays that a function replaces for as long as it is called with them.
func TestTypesAreNotHandedOut(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("/pond.1", ddoc(t, map[string]any{"shows": map[string]any{
		"look": "function (doc, req) { provides('text', function () { return 'x'; }); }",
		"leave": `function (doc, req) {
			var usual = Array.prototype.flatMap;
			Array.prototype.flatMap = function (f) {
				Array.prototype.flatMap = usual;
				try { f(['text'])[0] = 'left/behind'; } catch (e) {}
				return usual.call(this, f);
			};
			provides('text', function () { return 'x'; });
		}`,
	}}))
	const want = `{"body":"x","headers":{"Content-Type":"text/plain; charset=utf-8"}}`
	for _, name := range []string{"look", "leave", "look"} {
		got, err := d.Show(t.Context(), name, nil, []byte(`{"headers":{"Accept":"text/plain"}}`))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestModulesAreThoseOfTheDocument: the source that is compiled for a module, and kept,
// is the one that the design document has under its id, no matter how a function
// changes the objects that require walks.
func TestModulesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("/pond.1", ddoc(t, map[string]any{
		"lib": map[string]any{
			"m":      "exports.v = 1;",
			"steps":  "module.parent.current = {m: 'exports.v = 7;'}; require('./m');",
			"ids":    "module.parent.id = 'other'; require('./n');",
			"parent": "module.parent.parent = {current: {lib: {m: 'exports.v = 7;'}}}; require('../lib/m');",
			"n":      "exports.v = 7;",
		},
		"rewrites": `function (req) {
			if (req.inherit) { Object.prototype.inherited = 'exports.v = 7;'; Object.prototype.id = 'lib'; Object.prototype.m = 'exports.v = 7;'; }
			if (req.name) { try { require(req.name); } catch (e) {} }
			return {path: '' + require('lib/m').v};
		}`,
	}))
	for _, way := range []string{`{"name":"lib/steps"}`, `{"name":"lib/ids"}`, `{"name":"lib/parent"}`, `{"name":"m","inherit":true}`, `{"name":"inherited","inherit":true}`} {
		for _, req := range []string{way, "{}"} {
			got, err := d.Rewrite(t.Context(), []byte(req))
			if err != nil || string(got) != `{"path":"1"}` {
				t.Errorf("%s, %s: %s, %v", way, req, got, err)
			}
		}
	}
}

// TestManyGlobals: so many new globals that deleting them would take seconds cost the
// VM instead.
func TestManyGlobals(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Timeout: func() time.Duration { return time.Minute }})
	d := e.Design("/pond.1", ddoc(t, map[string]any{
		"rewrites": "function (req) { if (typeof left5 === 'undefined') { for (var i = 0; i < req.n; i++) { globalThis['left' + i] = i; } return {path: 'x'}; } }",
	}))
	for n, broken := range map[string]uint64{"1000": 0, "80000": 1} {
		before := e.Stats().Broken
		for range 2 {
			if got, err := d.Rewrite(t.Context(), []byte(`{"n":`+n+`}`)); err != nil || string(got) != `{"path":"x"}` {
				t.Errorf("%s: %s, %v", n, got, err)
			}
		}
		if got := e.Stats().Broken - before; got != 2*broken {
			t.Errorf("%s globals: %d VMs were thrown away", n, got)
		}
	}
}

// TestScriptsDeclareAgain: what a source declares before its function is declared
// again in each use of the VM.
func TestScriptsDeclareAgain(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"let n = 5; function (doc) { emit(n++, null); }",
		"const n = 5; (function (doc) { emit(n, null); })",
		"const n = 5;\n(doc) => { emit(n, null); } // five",
		"let n = 4; class A { static n() { return ++n; } }; var a = A; function (doc) { emit(a.n(), null); }",
		"'use strict'; const n = 5; function (doc) { emit(n, null); try { left = 1; emit(left, null); } catch (e) { } }",
		"var n = 5; function f() { return n; } function (doc) { emit(f(), null); }",
	} {
		e := newEngine(t, Options{Eval: evaluates})
		m, err := e.Mapper(t.Context(), Program{Instance: "/pond.1", Maps: []string{source}})
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		for range 3 {
			vm, err := m.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var rows rowList
			err = vm.Map(t.Context(), []byte(`{"_id":"a"}`), &rows)
			m.Release(vm)
			if got := fmt.Sprint(rows.texts()); err != nil || got != "[0 5 null]" {
				t.Errorf("%s: %s, %v", source, got, err)
			}
		}
		m.Close()
		if s := e.Stats(); s.Started != 1 {
			t.Errorf("%s: %+v", source, s)
		}
	}
}

// TestModulesOfLikeNames: the module x and the module x of what has no name are two.
func TestModulesOfLikeNames(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("/pond.1", ddoc(t, map[string]any{
		"x": "exports.v = 1;", "": map[string]any{"x": "exports.v = 2;"},
		"rewrites": "function (req) { return {path: '' + require(req.name).v}; }",
	}))
	for _, name := range []string{"x", "/x", "x"} {
		got, err := d.Rewrite(t.Context(), []byte(`{"name":"`+name+`"}`))
		if want := `{"path":"` + map[string]string{"x": "1", "/x": "2"}[name] + `"}`; err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// difference is where a text differs from another.
func difference(got, want string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	from := max(i-60, 0)
	return fmt.Sprintf("…%s…, not …%s…", got[from:min(i+60, len(got))], want[from:min(i+60, len(want))])
}

// TestWhatIsUsualCostsNoVM: a variable that was not declared, a module, a member of
// this are forgotten without a new VM.
func TestWhatIsUsualCostsNoVM(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"undeclared variable", "member of this", "global", "symbol global", "many globals", "module", "promise that never ends", "the sandbox's own state"} {
		e := newEngine(t, Options{Eval: evaluates})
		all := world(t, e, "/pond.1", leavings[name])
		for range 20 {
			for _, kinds := range all {
				for _, k := range kinds {
					_ = k.call(`{}`)
				}
			}
		}
		if s := e.Stats(); s.Started != 3 || s.Broken != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestReduceForgets are the stories by which it was found: a variable that was not
// declared, and a sum by the names of members, among them __proto__.
func TestReduceForgets(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Eval: evaluates})
	best := "function (keys, values) { for (var i = 0; i < values.length; i++) { if (typeof best === 'undefined' || values[i] > best) { best = values[i]; } } return best; }"
	bySum := `function (keys, values) {
		var out = {};
		for (var i = 0; i < values.length; i++) {
			for (var k in values[i]) {
				out[k] = out[k] || {};
				for (var x in values[i][k]) { out[k][x] = (out[k][x] || 0) + values[i][k][x]; }
			}
		}
		return out;
	}`
	for _, c := range []struct {
		source, evil, left string
		value, want        string
	}{
		{best, "1000000", "1000000", "5", "5"},
		{bySum, `{"__proto__":{"eur":1000000}}`, `{"__proto__":{"eur":1000000}}`, `{"a":{"eur":1}}`, `{"a":{"eur":1}}`},
		{bySum, `{"constructor":{"eur":1000000}}`, `{}`, `{"a":{"eur":1}}`, `{"a":{"eur":1}}`},
		{bySum, `{"toString":{"eur":1000000},"valueOf":{"x":1}}`, `{}`, `{"a":{"eur":1}}`, `{"a":{"eur":1}}`},
	} {
		var answers []string
		for _, instance := range []string{"/bank.1", "/bank.1", "/shop.1", "/bank.2"} {
			r, err := e.Reducer(t.Context(), instance, c.source, nil)
			if err != nil {
				t.Fatal(err)
			}
			value := c.value
			if len(answers) == 0 {
				value = c.evil
			}
			got, err := r.Reduce(t.Context(), nil, []byte(`[["k","id"]]`), [][]byte{[]byte(value)})
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, string(got))
		}
		if got, want := fmt.Sprint(answers), fmt.Sprint([]string{c.left, c.want, c.want, c.want}); got != want {
			t.Errorf("%s: %s, want %s", strings.TrimSpace(c.evil), got, want)
		}
	}
}

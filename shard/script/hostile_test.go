package script

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Outcomes of a hostile script.
const (
	skipped   = "skipped"   // an exception: the document has no rows
	timeout   = "timeout"   // time was over
	memory    = "memory"    // memory was over
	stack     = "stack"     // the stack was over
	tooLarge  = "too large" // a row
	refused   = "refused"   // a call of a built-in function
	late      = "late"      // a row, when the function has returned
	fine      = "fine"      // a row
	exhausted = "exhausted" // time or memory
	limited   = "limited"   // time, or a row: a slow machine is stopped earlier
)

// TestHostileScripts runs scripts that want too much of something: each ends
// in bounded time with a clear outcome, and the next call works.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	const holes = "var a = []; a.length = 4294967295; "
	const long = "var a = 'a'.repeat(4e6), b = 'a'.repeat(1e6) + 'b'; "
	for _, c := range []struct{ name, body, want string }{
		{"endless loop", "for (;;) {}", timeout},
		{"endless loop that catches", "for (;;) { try { for (;;) {} } catch (e) {} }", timeout},
		{"endless loop in finally", "try { for (;;) {} } finally { for (;;) {} }", timeout},
		{"endless recursion", "(function f() { f(); })(); emit(1);", stack},
		{"endless recursion that catches", "function f() { try { f(); } catch (e) { f(); } } f(); emit(1);", timeout},
		{"endless recursion of getters", "var o = {get x() { return this.x; }}; o.x; emit(1);", stack},
		{"endless recursion of toString", "var o = {}; o.toString = function () { return '' + o; }; '' + o; emit(1);", stack},
		{"endless recursion of sort", "[3, 1, 2].sort(function f() { return [2, 1].sort(f); }); emit(1);", stack},
		{"regular expression", "/^(a+)+$/.test('a'.repeat(100) + 'b'); emit(1);", timeout},
		{"regular expression with reference", "/^(a*)*\\1b/.test('a'.repeat(1e5)); emit(1);", timeout},
		{"regular expression that is deep", "new RegExp('('.repeat(1e6)); emit(1);", skipped},
		{"memory in arrays", "var a = []; for (;;) { a.push({i: [a.length]}); }", exhausted},
		{"memory in strings", "var s = 'x'; for (;;) { s = s + s; s.charCodeAt(1); }", memory},
		{"memory that is caught", "for (;;) { try { var a = []; for (;;) { a.push(new Array(1000).fill(1)); } } catch (e) {} }", exhausted},
		{"memory at once", "new ArrayBuffer(1e9); emit(1);", memory},
		{"memory in closures", "var f = function () {}; for (;;) { f = (function (g) { return function () { return g; }; })(f); }", exhausted},
		{"memory in globals", "globalThis.hog = globalThis.hog || []; for (;;) { hog.push('x'.repeat(1000) + hog.length); }", exhausted},
		{"long text", "emit('x'.repeat(4e6).length);", fine},
		{"long text out", "emit('x'.repeat(4e6), 'ü'.repeat(1e6));", fine},
		{"too long a text out", "var s = 'x'.repeat(6e6); emit([s, s, s, s, s, s, s, s, s, s, s, s]);", tooLarge},
		{"too long a text out that is caught", "var s = 'x'.repeat(6e6); try { emit([s, s, s, s, s, s, s, s, s, s, s, s]); } catch (e) {} emit(1);", tooLarge},
		{"endless recursion that is caught", "try { (function f() { f(); })(); } catch (e) {} emit(1);", fine},
		{"flood of rows", "for (var i = 0; ; i++) { emit(i, 'x'.repeat(100000)); }", timeout},
		{"flood of rows that catches", "for (;;) { try { emit(1, 'x'.repeat(1000000)); } catch (e) {} }", timeout},
		{"emit of a cycle", "var a = []; a.push(a); emit(a);", skipped},
		{"emit of a cycle through objects", "var a = {b: {}}; a.b.c = [a]; emit(a);", skipped},
		{"emit of everything", "emit(globalThis);", fine},
		{"emit of something deep", "var a = []; for (var i = 0; i < 1e5; i++) { a = [a]; } emit(a);", tooLarge},
		{"emit of something that unfolds", "var a = []; for (var i = 0; i < 40; i++) { a = [a, a]; } emit(a);", limited},
		{"emit of holes", holes + "emit(a);", tooLarge},
		{"emit of a getter that throws", "emit({get x() { throw new Error('no'); }});", skipped},
		{"emit of a getter that loops", "emit({get x() { for (;;) {} }});", timeout},
		{"emit of a getter that emits", "emit({get x() { emit(2); return 1; }});", skipped},
		{"emit of a getter that emits its object", "var o = {get x() { emit(o); return 1; }}; emit(o);", skipped},
		{"emit of a proxy", "emit(new Proxy({}, {ownKeys: function () { throw 1; }}));", skipped},
		{"emit of an endless proxy", "var p = new Proxy({}, {get: function (t, k, r) { return r[k]; }}); emit(p.x);", stack},
		{"emit of a proxy of proxies", "var p = {}; for (var i = 0; i < 1e4; i++) { p = new Proxy(p, {}); } emit(p.x);", stack},
		{"toJSON that calls itself", "var o = {toJSON: function () { return {o: o}; }}; emit(o);", tooLarge},
		{"toJSON that unfolds", "function N() {} N.prototype.toJSON = function () { return [new N(), new N()]; }; emit(new N());", tooLarge},
		{"toJSON that changes its array", "var a = [{toJSON: function () { a.length = 0; return 1; }}, {}, {}]; emit(a);", fine},
		{"toJSON that changes its object", "var o = {a: {toJSON: function () { delete o.b; for (var i = 0; i < 100; i++) { o['x' + i] = i; } return 1; }}, b: {c: 1}}; emit(o);", fine},
		{"toJSON of a big integer", "emit(10n);", skipped},
		{"JSON that is deep", "emit(JSON.parse('['.repeat(1e5) + ']'.repeat(1e5)));", stack},
		{"source that is deep", "eval('('.repeat(1e6)); emit(1);", stack},
		{"holes searched", holes + "emit(a.indexOf(1));", refused},
		{"holes sorted", holes + "a.sort(); emit(1);", refused},
		{"holes joined", holes + "emit(a.join());", refused},
		{"holes that are concatenated", holes + "emit([].concat(a));", refused},
		{"holes below", holes + "emit([[a]].flat(3));", exhausted},
		{"holes dropped", holes + "a.values().drop(4e9).next();", timeout},
		{"holes visited", holes + "a.forEach(function () {}); emit(1);", refused},
		{"a length that lies", "var n = 0; [].indexOf.call({get length() { return n++ ? 9007199254740991 : 1; }}, 1); emit(1);", refused},
		{"a length that is inherited", "[].indexOf.call({__proto__: {length: 9007199254740991}}, 1); emit(1);", refused},
		{"a length that is computed", "[].indexOf.call({length: {valueOf: function () { return 9007199254740991; }}}, 1); emit(1);", refused},
		{"text searched in text", long + "emit(a.indexOf(b));", refused},
		{"text split by text", long + "emit(a.split(b));", refused},
		{"text replaced in text", long + "emit(a.replaceAll(b, ''));", refused},
		{"text that hides", long + "emit(a.indexOf({toString: function () { return b; }}));", refused},
		{"text that is searched for what is no text", "emit('x'.repeat(4e4).indexOf(['y']), 'x'.repeat(4e4).split(new String('y')).length);", fine},
		{"text that is normalized", "emit(('a' + '\\u0316\\u0301'.repeat(1e5)).normalize('NFD').length);", refused},
		{"text that is sorted", "var x = 'a'.repeat(2e5), l = []; for (var i = 0; i < 40; i++) { l.push(x + i); } for (;;) { l.sort().reverse(); }", exhausted},
		{"ropes that are compared", "var s = 'a'.repeat(600), u = 'a'.repeat(600); for (var i = 0; i < 20; i++) { s += s; u += u; } for (;;) { if (s < u) { break; } }", timeout},
		{"big integers", "var b = 3n ** 100000n; for (;;) { b * b; }", timeout},
		{"big integers one after the other", "var b = 3n ** 600000n; " + strings.Repeat("try { b * b; } catch (e) {} ", 200) + "for (;;) {}", timeout},
		{"promises", "(async function f() { for (;;) { await 1; } })();", timeout},
		{"promises that emit", "Promise.resolve().then(function () { emit('later'); }); emit('now');", late},
		{"generators", "function* g() { for (;;) { yield 1; } } for (var x of g()) {}", timeout},
		{"iterators", "new Set({__proto__: Array.prototype, length: 9007199254740991});", timeout},
		{"throw of nothing", "throw null;", skipped},
		{"throw of undefined", "throw undefined;", skipped},
		{"throw of what cannot be shown", "throw {get name() { throw 1; }, get 0() { throw 2; }};", skipped},
		{"throw of a proxy", "throw new Proxy({}, {get: function () { for (;;) {} }});", timeout},
		{"import", "import('fs'); emit(typeof process, typeof std);", fine},
		{"waiting", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); emit(1);", skipped},
		{"functions of the sandbox that are gone", "emit = log = null; Array.prototype.map = Object.keys = JSON.stringify = null; emit(1);", skipped},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			patience := time.Minute // for what ends by itself, on a slow machine
			if c.want == timeout || c.want == exhausted || c.want == limited {
				patience = time.Second
			}
			e := newEngine(t, Options{Timeout: func() time.Duration { return patience }, MaxVMs: 2, Eval: evaluates, Memory: 16 << 20})
			got, took := runHostile(t, e, "function (doc) { "+c.body+" }")
			want := map[string][]string{exhausted: {timeout, memory}, limited: {timeout, tooLarge}}[c.want]
			if got != c.want && !slices.Contains(want, got) {
				t.Errorf("%s, want %s", got, c.want)
			}
			if took > 3*time.Minute {
				t.Errorf("took %v", took)
			}
			if again, _ := runHostile(t, e, "function (doc) { emit(doc._id); }"); again != fine {
				t.Errorf("another function: %s", again)
			}
		})
	}
}

// runHostile says what becomes of a document under a map function, which has to
// give space in the end.
func runHostile(t *testing.T, e *Engine, source string) (string, time.Duration) {
	t.Helper()
	m, err := e.Mapper(t.Context(), Program{Maps: []string{source}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	vm, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release(vm)
	rows, start := 0, time.Now()
	err = vm.Map(t.Context(), []byte(`{"_id":"a"}`), rowFunc(func(int, []byte, []byte) { rows++ }))
	took := time.Since(start)
	switch {
	case err != nil && !fault.Is(err, fault.BadFunction):
		t.Errorf("an unclear error: %v", err)
	case err != nil && strings.Contains(err.Error(), "timed out"):
		return timeout, took
	case err != nil && strings.Contains(err.Error(), "stack"):
		return stack, took
	case err != nil && strings.Contains(err.Error(), "too much work"):
		return refused, took
	case err != nil && strings.Contains(err.Error(), "returned already"):
		return late, took
	case err != nil && (strings.Contains(err.Error(), "a row of more than") || strings.Contains(err.Error(), "too large")):
		return tooLarge, took
	case err != nil:
		return memory, took
	case rows > 0:
		return fine, took
	}
	return skipped, took
}

// TestTamperingStaysInside lets functions of one design document spoil
// everything they can reach: another one does not notice.
func TestTamperingStaysInside(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{MaxVMs: 4})
	spoil := `function (doc) {
		Object.prototype.evil = 1; Array.prototype.map = null; JSON.parse = null; Error.prototype.toJSON = null;
		String.prototype.toJSON = Array.prototype.toJSON = function () { return 'evil'; };
		emit = sum = require = null; Object.defineProperty(Object.prototype, 'n', {get: function () { return 'evil'; }});
	}`
	for range 3 {
		got, err := e.Design("evil", ddoc(t, map[string]any{"filters": map[string]any{"f": spoil}})).Filter(t.Context(), "f", [][]byte{[]byte("{}")}, []byte("{}"))
		if err == nil && len(got) != 1 {
			t.Error(got)
		}
		if rows := mapOn(t, e, "function (doc) { emit([doc.n, sum([1, 2])], {a: JSON.parse('[1]')}); }", `{"_id":"a","n":5}`); rows != `[5,3] {"a":[1]};` {
			t.Error(rows)
		}
	}
}

func mapOn(t *testing.T, e *Engine, source, doc string) string {
	t.Helper()
	m, err := e.Mapper(t.Context(), Program{Maps: []string{source}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	vm, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release(vm)
	var rows strings.Builder
	if err := vm.Map(t.Context(), []byte(doc), rowFunc(func(_ int, k, v []byte) { fmt.Fprintf(&rows, "%s %s;", k, v) })); err != nil {
		t.Fatal(err)
	}
	return rows.String()
}

// emit outside of map functions leaves nothing in an answer.
func TestEmitOutsideOfMaps(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("", ddoc(t, map[string]any{"shows": map[string]any{
		"s": `function () { return {json: {toJSON() { emit(1, 2); return {get a() { emit(3, 4); return 5; }}; }}}; }`,
	}}))
	if got, err := d.Show(t.Context(), "s", nil, []byte("{}")); string(got) != `{"json":{"a":5}}` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// A source that is checked is evaluated: it must not meet the next one.
func TestChecksDoNotMeet(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	if err := e.CheckFunction(t.Context(), "", "(globalThis.spy = function () {})"); err != nil {
		t.Fatal(err)
	}
	if err := e.CheckFunction(t.Context(), "", "spy"); err == nil || !strings.Contains(err.Error(), "spy") {
		t.Error(err)
	}
}

package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"divan/storage/fault"
)

// ddoc makes the JSON of a design document.
func ddoc(tb testing.TB, members map[string]any) []byte {
	tb.Helper()
	text, err := json.Marshal(members)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func newEngine(tb testing.TB, o Options) *Engine {
	tb.Helper()
	e := New(o)
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
		if s := e.Stats(); s.VMs != 0 || s.Bytes != 0 {
			tb.Errorf("VMs are left: %+v", s)
		}
	})
	return e
}

// told is how an error looks to a client.
func told(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return fmt.Sprint(err)
	}
	return fmt.Sprintf("%d %s: %s", f.Kind, f.Code, f.Reason)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("k", ddoc(t, map[string]any{
		"settings": map[string]any{"max": 10},
		"lib":      map[string]any{"check": "exports.isNumber = function (x) { return typeof x === 'number'; };"},
		"validate_doc_update": `function (newDoc, oldDoc, userCtx, secObj) {
			var t = newDoc.type;
			if (t === 'forbidden') { throw({forbidden: 'type is needed'}); }
			if (t === 'secret') { throw({unauthorized: 'who are you'}); }
			if (t === 'other') { throw({something: 'else'}); }
			if (t === 'string') { throw('just a string'); }
			if (t === 'list') { throw(['forbidden', 'a list']); }
			if (t === 'number') { throw(5); }
			if (t === 'null') { throw(null); }
			if (t === 'object') { throw({forbidden: {code: 7}}); }
			if (t === 'error') { throw(new Error('an error')); }
			if (t === 'broken') { undefinedFunction(); }
			if (t === 'false') { return false; }
			if (t === 'big' && newDoc.n > this.settings.max) { throw({forbidden: 'at most ' + this.settings.max}); }
			if (t === 'module' && !require('lib/check').isNumber(newDoc.n)) { throw({forbidden: 'n is no number'}); }
			if (t === 'old') { throw({forbidden: oldDoc === null ? 'null' : oldDoc._id}); }
			if (t === 'who') { throw({forbidden: userCtx.name + JSON.stringify(secObj)}); }
		}`,
	}))
	for _, c := range []struct{ doc, old, want string }{
		{`{"type":"forbidden"}`, "", "7 forbidden: type is needed"},
		{`{"type":"secret"}`, "", "6 unauthorized: who are you"},
		{`{"type":"other"}`, "", "40 unknown_error: else"},
		{`{"type":"string"}`, "", "40 unknown_error: just a string"},
		{`{"type":"list"}`, "", `40 unknown_error: ["forbidden","a list"]`},
		{`{"type":"number"}`, "", "40 unknown_error: 5"},
		{`{"type":"null"}`, "", "40 unknown_error: null"},
		{`{"type":"object"}`, "", `7 forbidden: {"code":7}`},
		{`{"type":"error"}`, "", "40 Error: an error"},
		{`{"type":"broken"}`, "", "40 ReferenceError: 'undefinedFunction' is not defined"},
		{`{"type":"false"}`, "", "<nil>"},
		{`{"type":"free"}`, "", "<nil>"},
		{`{"type":"big","n":11}`, "", "7 forbidden: at most 10"},
		{`{"type":"big","n":10}`, "", "<nil>"},
		{`{"type":"module","n":"1"}`, "", "7 forbidden: n is no number"},
		{`{"type":"module","n":1}`, "", "<nil>"},
		{`{"type":"old"}`, "", "7 forbidden: null"},
		{`{"type":"old"}`, `{"_id":"x"}`, "7 forbidden: x"},
		{`{"type":"who"}`, "", `7 forbidden: joe{"a":1}`},
	} {
		var old []byte
		if c.old != "" {
			old = []byte(c.old)
		}
		err := d.Validate(t.Context(), []byte(c.doc), old, []byte(`{"name":"joe"}`), []byte(`{"a":1}`))
		if got := told(err); got != c.want {
			t.Errorf("%s: %s, want %s", c.doc, got, c.want)
		}
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("k", ddoc(t, map[string]any{
		"types": []string{"x"},
		"lib":   map[string]any{"check": "exports.big = function (doc) { return doc.n > 2; };"},
		"filters": map[string]any{
			"type":    "function (doc, req) { return doc.t === req.query.t; }",
			"ddoc":    "function (doc, req) { return this.types.indexOf(doc.t) >= 0; }",
			"module":  "function (doc, req) { return require('lib/check').big(doc); }",
			"truthy":  "function (doc, req) { return doc.t; }",
			"nothing": "function (doc, req) { }",
			"string":  "function (doc, req) { return 'false'; }",
			"throws":  "function (doc, req) { throw({forbidden: 'no'}); }",
			"error":   "function (doc, req) { return doc.a.b.c; }",
			"syntax":  "function (doc, req) { return",
			"number":  "5",
		},
		"views": map[string]any{"v": map[string]any{"map": "function (doc) { if (doc.n > 1) { emit(doc.n); emit(1); } }"}},
	}))
	docs := [][]byte{[]byte(`{"n":1,"t":"x"}`), []byte(`{"n":2,"t":"y"}`), []byte(`{"n":3,"t":""}`)}
	for _, c := range []struct{ name, want, err string }{
		{"type", "[true false false]", "<nil>"},
		{"ddoc", "[true false false]", "<nil>"},
		{"module", "[false false true]", "<nil>"},
		{"truthy", "[true true false]", "<nil>"},
		{"nothing", "[false false false]", "<nil>"},
		{"string", "[true true true]", "<nil>"},
		{"throws", "[]", `40 unnamed_error: {"forbidden":"no"}`},
		{"error", "[]", "40 TypeError: cannot read property 'b' of undefined"},
		{"syntax", "[]", "40 compilation_error: SyntaxError: "},
		{"number", "[]", "40 compilation_error: Expression does not eval to a function. (5)"},
		{"nope", "[]", "3 : missing json key: nope"},
	} {
		got, err := d.Filter(t.Context(), c.name, docs, []byte(`{"query":{"t":"x"}}`))
		if fmt.Sprint(got) != c.want || !strings.HasPrefix(told(err), c.err) {
			t.Errorf("%s: %v %s, want %s %s", c.name, got, told(err), c.want, c.err)
		}
	}
	for range 2 {
		if got, err := d.FilterView(t.Context(), "v", docs); fmt.Sprint(got) != "[false true true]" || err != nil {
			t.Error(got, err)
		}
	}
}

const accept = `{"method":"GET","path":[1,2,3,4,5],"query":{},"headers":{"Accept":%q}}`

func TestShow(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("k", ddoc(t, map[string]any{
		"templates": map[string]any{"page": "<h1>TITLE</h1>"},
		"lib":       map[string]any{"esc": "exports.esc = function (s) { return s.replace(/&/g, '&amp;'); };"},
		"shows": map[string]any{
			"plain":     "function (doc, req) { return doc ? doc.title : 'no document ' + req.id; }",
			"html":      "function (doc, req) { return this.templates.page.replace('TITLE', require('lib/esc').esc(doc.title)); }",
			"object":    "function (doc, req) { return {body: 'made', headers: {'X-Own': 'yes'}, code: 202}; }",
			"formats":   "function (doc, req) { provides('json', function () { return toJSON({format: 'json', id: doc && doc._id}); }); provides('html', function () { return '<p>html</p>'; }); provides('xml', function () { return {body: '<x/>', headers: {'X-Kind': 'xml'}}; }); registerType('own', 'application/x-own'); provides('own', function () { return 'own'; }); }",
			"number":    "function (doc, req) { return 5; }",
			"nothing":   "function (doc, req) { }",
			"empty":     "function (doc, req) { return ''; }",
			"send":      "function (doc, req) { start({'X-Started': '1'}); send('a'); send('b'); return 'c'; }",
			"throws":    "function (doc, req) { throw({forbidden: 'no'}); }",
			"errorlist": "function (doc, req) { throw(['error', 'not_found', 'not here']); }",
			"n":         "function (doc, req) { return {json: {n: doc.n}}; }",
			"row":       "function (doc, req) { return String(getRow()); }",
		},
	}))
	const doc = `{"_id":"d1","title":"Hello & <bye>","n":5}`
	html, anything := `{"body":"<p>html</p>","headers":{"Content-Type":"text/html; charset=utf-8"}}`, ""
	for _, c := range []struct{ name, doc, req, want string }{
		{"plain", doc, anything, `{"body":"Hello & <bye>"}`},
		{"plain", "", `{"id":"x","path":[]}`, `{"body":"no document x"}`},
		{"html", doc, anything, `{"body":"<h1>Hello &amp; <bye></h1>"}`},
		{"object", doc, anything, `{"body":"made","headers":{"X-Own":"yes"},"code":202}`},
		{"formats", doc, fmt.Sprintf(accept, "application/json"), `{"body":"{\"format\":\"json\",\"id\":\"d1\"}","headers":{"Content-Type":"application/json"}}`},
		{"formats", doc, fmt.Sprintf(accept, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), html},
		{"formats", doc, fmt.Sprintf(accept, "text/xml"), `{"body":"<x/>","headers":{"X-Kind":"xml","Content-Type":"text/xml"}}`},
		{"formats", doc, fmt.Sprintf(accept, "application/x-own"), `{"body":"own","headers":{"Content-Type":"application/x-own"}}`},
		{"formats", doc, fmt.Sprintf(accept, "*/*"), `{"body":"{\"format\":\"json\",\"id\":\"d1\"}","headers":{"Content-Type":"text/x-json"}}`},
		{"formats", doc, `{"query":{"format":"html"},"headers":{}}`, html},
		{"formats", doc, `{"query":{},"headers":{}}`, `{"body":"{\"format\":\"json\",\"id\":\"d1\"}","headers":{"Content-Type":"application/json"}}`},
		{"formats", doc, fmt.Sprintf(accept, "image/png"), "25 not_acceptable: Content-Type image/png not supported, try one of: application/x-own, application/xml, text/xml, application/x-xml, text/html; charset=utf-8, application/json, text/x-json"},
		{"formats", doc, `{"query":{"format":"nope"},"headers":{}}`, "40 render_error: function raised error: TypeError: "},
		{"number", doc, anything, "40 render_error: undefined response from show function"},
		{"nothing", doc, anything, "{}"},
		{"empty", doc, anything, "{}"},
		{"send", doc, anything, `{"body":"abc","headers":{"X-Started":"1"}}`},
		{"throws", doc, anything, `40 render_error: function raised error: {"forbidden":"no"} `},
		{"errorlist", doc, anything, "3 not_found: not here"},
		{"n", "", `{"path":["db","_design","s","_show","n","nope"]}`, "3 not_found: document not found"},
		{"n", "", `{"path":["db","_design","s","_show","n"]}`, "40 render_error: function raised error: TypeError: "},
		{"nope", doc, anything, "3 : missing json key: nope"},
		{"row", doc, anything, `{"body":"null"}`},
	} {
		var text []byte
		if c.doc != "" {
			text = []byte(c.doc)
		}
		req := c.req
		if req == "" {
			req = "{}"
		}
		got, err := d.Show(t.Context(), c.name, text, []byte(req))
		if err != nil {
			got = []byte(told(err))
			if len(c.want) < len(got) && strings.HasPrefix(c.want, "40") {
				got = got[:len(c.want)]
			}
		}
		if string(got) != c.want {
			t.Errorf("%s %s: %s, want %s", c.name, req, got, c.want)
		}
	}
}

func TestUpdateFunction(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("k", ddoc(t, map[string]any{"updates": map[string]any{
		"hello":      "function (doc, req) { return [null, 'hello ' + (doc ? doc._id : 'nobody')]; }",
		"save":       "function (doc, req) { if (!doc) { doc = {_id: req.id, n: 0}; } doc.n += 1; return [doc, {json: {n: doc.n}}]; }",
		"exception":  "function (doc, req) { return [null, doc.a.b]; }",
		"nothing":    "function (doc, req) { }",
		"onlydoc":    "function (doc, req) { return [{_id: 'od'}]; }",
		"unknownkey": "function (doc, req) { return [null, {foo: 1}]; }",
		"errorlist":  "function (doc, req) { throw(['error', 'my_error', 'my reason']); }",
	}}))
	const undefinedResponse = "40 render_error: undefined response from update function"
	for _, c := range []struct{ name, doc, method, want string }{
		{"hello", "", "POST", `|{"body":"hello nobody"}|<nil>`},
		{"hello", `{"_id":"x"}`, "PUT", `|{"body":"hello x"}|<nil>`},
		{"save", "", "POST", `{"_id":"x","n":1}|{"json":{"n":1}}|<nil>`},
		{"save", `{"_id":"y","n":1}`, "POST", `{"_id":"y","n":2}|{"json":{"n":2}}|<nil>`},
		{"exception", "", "POST", `||40 render_error: function raised error: TypeError`},
		{"nothing", "", "POST", `||40 render_error: function raised error: TypeError`},
		{"onlydoc", "", "POST", `||` + undefinedResponse},
		{"unknownkey", "", "POST", `|{"foo":1}|<nil>`},
		{"errorlist", "", "POST", `||40 my_error: my reason`},
		{"hello", "", "GET", `||40 method_not_allowed: Update functions do not allow GET`},
	} {
		var text []byte
		if c.doc != "" {
			text = []byte(c.doc)
		}
		doc, resp, err := d.Update(t.Context(), c.name, text, []byte(`{"id":"x","method":"`+c.method+`"}`))
		if got := fmt.Sprintf("%s|%s|%s", doc, resp, told(err)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// listed is a ListStream that writes down what happens.
type listed struct {
	rows []string
	log  strings.Builder
	fail error
}

func (l *listed) Row() ([]byte, error) {
	if l.fail != nil {
		return nil, l.fail
	}
	if len(l.rows) == 0 {
		return nil, io.EOF
	}
	row := l.rows[0]
	l.rows = l.rows[1:]
	fmt.Fprintf(&l.log, "row;")
	return []byte(row), nil
}

func (l *listed) Start(resp []byte) error { fmt.Fprintf(&l.log, "start %s;", resp); return nil }
func (l *listed) Abort()                  {}
func (l *listed) Send(text []byte) error  { fmt.Fprintf(&l.log, "send %q;", text); return nil }

func TestList(t *testing.T) {
	t.Parallel()
	d := newEngine(t, Options{}).Design("k", ddoc(t, map[string]any{"lists": map[string]any{
		"plain":     "function (head, req) { var row; while (row = getRow()) { send(row.key + '=' + row.value + ';'); } }",
		"head":      "function (head, req) { send(toJSON(head)); }",
		"json":      "function (head, req) { start({headers: {'X-Own': 'yes'}, code: 201}); send('['); var row; while (row = getRow()) { send(toJSON(row)); } send(']'); }",
		"tail":      "function (head, req) { send('first '); var row; while (row = getRow()) { } return 'tail'; }",
		"norows":    "function (head, req) { return 'no rows read'; }",
		"onerow":    "function (head, req) { var row = getRow(); send(row ? row.key : 'none'); }",
		"nothing":   "function (head, req) { }",
		"before":    "function (head, req) { send('before '); start({headers: {'Content-Type': 'text/plain'}}); getRow(); send(' after'); }",
		"twice":     "function (head, req) { while (getRow()) { } send(String(getRow())); }",
		"formats":   "function (head, req) { provides('json', function () { var rows = [], row; while (row = getRow()) { rows.push(row.key); } send(toJSON(rows)); }); provides('html', function () { getRow(); return '<ul>'; }); }",
		"throws":    "function (head, req) { throw({forbidden: 'no'}); }",
		"late":      "function (head, req) { var row = getRow(); send('some '); throw(['error', 'late_error', 'too late']); }",
		"number":    "function (head, req) { send(5); send(true); }",
		"surrogate": "function (head, req) { send('a\\ud800b'); }",
		"catches":   "function (head, req) { try { getRow(); } catch (e) { send('caught'); } }",
	}}))
	const start = `start {"headers":{}};`
	two := []string{`{"key":1,"value":"x"}`, `{"key":2,"value":"y"}`}
	for _, c := range []struct{ name, accept, want string }{
		{"plain", "", start + `row;send "1=x;";row;send "2=y;";<nil>`},
		{"head", "", start + `send "{\"total_rows\":2}";<nil>`},
		{"json", "", `start {"headers":{"X-Own":"yes"},"code":201};send "[";row;send "{\"key\":1,\"value\":\"x\"}";row;send "{\"key\":2,\"value\":\"y\"}";send "]";<nil>`},
		{"tail", "", start + `send "first ";row;row;send "tail";<nil>`},
		{"norows", "", start + `send "no rows read";<nil>`},
		{"onerow", "", start + `row;send "1";<nil>`},
		{"nothing", "", start + "<nil>"},
		{"before", "", `start {"headers":{"Content-Type":"text/plain"}};send "before ";row;send " after";<nil>`},
		{"twice", "", start + `row;row;send "null";<nil>`},
		{"formats", "application/json", `start {"headers":{"Content-Type":"application/json"}};row;row;send "[1,2]";<nil>`},
		{"formats", "text/html", `start {"headers":{"Content-Type":"text/html; charset=utf-8"}};row;send "<ul>";<nil>`},
		{"formats", "image/png", "25 not_acceptable: Content-Type image/png not supported, try one of: text/html; charset=utf-8, application/json, text/x-json"},
		{"throws", "", `40 render_error: function raised error: {"forbidden":"no"}`},
		{"late", "", start + `row;40 late_error: too late`},
		{"number", "", start + `send "5true";<nil>`},
		{"surrogate", "", start + `send "a�b";<nil>`},
		{"nope", "", "3 : missing json key: nope"},
	} {
		l := &listed{rows: two}
		err := d.List(t.Context(), c.name, []byte(`{"total_rows":2}`), fmt.Appendf(nil, accept, c.accept), l)
		if got := l.log.String() + told(err); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	gone := errors.New("the client has gone")
	if err := d.List(t.Context(), "catches", nil, []byte("{}"), &listed{fail: gone}); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	d := e.Design("k", ddoc(t, map[string]any{
		"prefix":   "../../",
		"rewrites": `function (req) { switch (req.what) { case 'path': return this.prefix + 'x'; case 'object': return {path: '_view/n', query: {key: '1'}}; case 'null': return null; case 'number': return 5; case 'list': return ['a']; case 'throws': throw({forbidden: 'no'}); case 'errorlist': throw(['error', 'my_error', 'my reason']); } }`,
	}))
	for _, c := range []struct{ what, want string }{
		{"path", `{"path":"../../x","method":"PUT"} <nil>`},
		{"object", `{"path":"_view/n","query":{"key":"1"}} <nil>`},
		{"null", " <nil>"},
		{"undefined", " <nil>"},
		{"number", "5 <nil>"},
		{"list", `["a"] <nil>`},
		{"throws", " 40 rewrite_error: function raised error: {\"forbidden\":\"no\"}"},
		{"errorlist", " 40 my_error: my reason"},
	} {
		got, err := d.Rewrite(t.Context(), []byte(`{"method":"PUT","what":"`+c.what+`"}`))
		if s := fmt.Sprintf("%s %s", got, told(err)); !strings.HasPrefix(s, c.want) {
			t.Errorf("%s: %s, want %s", c.what, s, c.want)
		}
	}
	_, err := e.Design("b", []byte(`{"rewrites":"function (req) {"}`)).Rewrite(t.Context(), []byte("{}"))
	if !strings.HasPrefix(told(err), "40 compilation_error: SyntaxError: ") {
		t.Error(err)
	}
}

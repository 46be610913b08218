package script

import (
	"slices"
	"sync/atomic"
	"testing"
)

// evaluates is an Options.Eval for tests of what functions could do by it.
func evaluates() bool { return true }

// evaluations are ways to make code of text.
var evaluations = map[string]string{
	"eval":               `eval('1')`,
	"indirect eval":      `(0, eval)('1')`,
	"Function":           `Function('return 1')()`,
	"new Function":       `new Function('return 1')()`,
	"constructor":        `emit.constructor('return 1')()`,
	"generator":          `(function* () {}).constructor('yield 1')().next().value`,
	"asynchronous":       `(async function () {}).constructor('return 1')() && 1`,
	"Reflect":            `Reflect.construct(Function, ['return 1'])()`,
	"eval that is bound": `eval.bind(null, '1')()`,
}

// TestEval: functions make no code of text unless the setting says so, which holds from
// the next call on; the sandbox and what it compiles work either way.
func TestEval(t *testing.T) {
	t.Parallel()
	var allowed atomic.Bool
	e := newEngine(t, Options{Eval: allowed.Load})
	for name, code := range evaluations {
		d := e.Design("db", []byte(`{"_id":"_design/a","lib":"exports.two = 2;","shows":{"s":"function () {`+
			` var made; try { made = `+code+`; } catch (e) { made = e.name; }`+
			` return {json: [made, require('lib').two]}; }"}}`))
		for _, on := range []bool{false, true, false} {
			allowed.Store(on)
			want := `{"json":["TypeError",2]}`
			if on {
				want = `{"json":[1,2]}`
			}
			if got, err := d.Show(t.Context(), "s", nil, []byte(`{}`)); err != nil || string(got) != want {
				t.Errorf("%s, allowed %t: %s %v, want %s", name, on, got, err, want)
			}
		}
	}
}

// TestEvalInViews: a map function that makes code of text has no rows.
func TestEvalInViews(t *testing.T) {
	t.Parallel()
	for name, code := range evaluations {
		p := Program{Maps: []string{`function (doc) { ` + code + `; emit(doc._id, 1); }`, `function (doc) { emit(doc._id, 2); }`}}
		if got := mapAll(t, p, `{"_id":"a"}`, `{"_id":"b"}`); !slices.Equal(got, []string{`1 "a" 2`, `1 "b" 2`}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

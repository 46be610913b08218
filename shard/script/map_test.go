package script

import (
	"fmt"
	"slices"
	"testing"
)

func mapAll(t *testing.T, p Program, docs ...string) []string {
	t.Helper()
	e := New(Options{})
	defer func() { _ = e.Close() }()
	m, err := e.Mapper(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	vm, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release(vm)
	var out []string
	for _, d := range docs {
		var rows rowList
		if err := vm.Map(t.Context(), []byte(d), &rows); err != nil {
			t.Fatal(err)
		}
		out = append(out, rows.texts()...)
	}
	return out
}

func TestMap(t *testing.T) {
	got := mapAll(t, Program{Maps: []string{"function (doc) { emit(doc.n, doc.t); }"}}, `{"_id":"a","n":1,"t":["x",1.5]}`)
	if fmt.Sprint(got) != `[0 1 ["x",1.5]]` {
		t.Error(got)
	}
}

// rowList is the rows of a document.
type rowList []emitted

type emitted struct {
	fn         int
	key, value string
}

func (l *rowList) Emit(fn int, key, value []byte) error {
	*l = append(*l, emitted{fn, string(key), string(value)})
	return nil
}

func (l *rowList) Drop(fn int) {
	*l = slices.DeleteFunc(*l, func(e emitted) bool { return e.fn == fn })
}

func (l *rowList) texts() (out []string) {
	for _, e := range *l {
		out = append(out, fmt.Sprintf("%d %s %s", e.fn, e.key, e.value))
	}
	return out
}

// rowFunc is Rows that takes everything, and takes nothing back: for functions that do
// not fail.
type rowFunc func(fn int, key, value []byte)

func (f rowFunc) Emit(fn int, key, value []byte) error { f(fn, key, value); return nil }
func (f rowFunc) Drop(int)                             {}

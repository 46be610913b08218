package script

import (
	"fmt"
	"testing"
)

func mapAll(t *testing.T, p Program, docs ...string) []string {
	t.Helper()
	e := New(Options{})
	defer func() { _ = e.Close() }()
	m, err := e.Mapper(p)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	vm, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release(vm)
	var rows []string
	for _, d := range docs {
		if err := vm.Map(t.Context(), []byte(d), func(fn int, key, value []byte) {
			rows = append(rows, fmt.Sprintf("%d %s %s", fn, key, value))
		}); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

func TestMap(t *testing.T) {
	got := mapAll(t, Program{Maps: []string{"function (doc) { emit(doc.n, doc.t); }"}}, `{"_id":"a","n":1,"t":["x",1.5]}`)
	if fmt.Sprint(got) != `[0 1 ["x",1.5]]` {
		t.Error(got)
	}
}

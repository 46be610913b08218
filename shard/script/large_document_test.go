package script

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"divan/shard/fairqueue"
	"divan/storage/fault"
)

// manyObjects is a document of so many bytes that takes as much memory as there can
// be of it.
func manyObjects(size int) []byte {
	n := size / len("{},")
	return []byte(`{"_id":"a","v":[` + strings.Repeat("{},", n) + `{}]}`)
}

// TestLargeDocuments: what a database takes is taken by functions of every kind, also
// by those for which the document is made read-only.
func TestLargeDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about sizes, for which the race detector takes minutes")
	}
	t.Parallel()
	e := newEngine(t, Options{Timeout: func() time.Duration { return time.Minute }})
	text, ctx := manyObjects(2_000_000), t.Context()
	for _, source := range []string{
		"function (doc) { emit(doc.v.length, null); }",
		"function (doc) { doc.v = 5; for (var k in doc) { if (k === 'v') { emit(doc[k].length, null); } } }",
	} {
		if rows := mapOn(t, e, source, string(text)); rows != "666667 null;" {
			t.Errorf("%s: %s", source, rows)
		}
	}
	d := e.Design("db", ddoc(t, map[string]any{
		"validate_doc_update": "function (n) { if (n.v.length !== 666667) { throw {forbidden: 'short'}; } }",
		"filters":             map[string]any{"f": "function (d) { return d.v.length === 666667; }"},
	}))
	if err := d.Validate(ctx, text, nil, []byte("{}"), []byte("{}")); err != nil {
		t.Error(err)
	}
	if passed, err := d.Filter(ctx, "f", [][]byte{text}, nil); err != nil || !passed[0] {
		t.Error(passed, err)
	}
	r, err := e.Reducer(t.Context(), "", "function (keys, values) { return values[0].v.length; }", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := r.Rereduce(ctx, nil, [][]byte{text}); err != nil || string(got) != "666667" {
		t.Errorf("%s, %v", got, err)
	}
}

// take takes an allowance as a database that is none of the test's, and returns what gives it back.
func take(t *testing.T, e *Engine, size int) (giveBack func()) {
	t.Helper()
	var turn fairqueue.Turn
	must(t, e.allowances[1][size].Acquire(t.Context(), &turn, fairqueue.Flow{Database: fmt.Sprint(rand.Uint64())}, time.Now(), time.Minute))
	return func() { turn.Release(time.Now()) }
}

// given checks that all allowances were given back.
func given(t *testing.T, e *Engine) {
	t.Helper()
	for _, r := range e.allowances {
		for _, q := range r {
			if s := q.Stats(); s.Held+s.Waiting != 0 {
				t.Errorf("an allowance was not given back: %+v", s)
			}
		}
	}
}

// TestLargeDocumentsShareMemory: when all allowances for large documents are taken one waits,
// no longer than the request or the call.
func TestLargeDocumentsShareMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it has two seconds, of which the race detector takes more")
	}
	t.Parallel()
	e := newEngine(t, Options{Timeout: func() time.Duration { return 2 * time.Second }})
	m, err := e.Mapper(t.Context(), Program{Maps: []string{"function (doc) { for (var k in doc) {} emit(1, null); }"}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	first, second := take(t, e, 1), take(t, e, 1)
	text := manyObjects(600_000)
	if err := mapOnce(t.Context(), m, string(text)); !fault.Is(err, fault.Busy) {
		t.Errorf("without memory: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	vm, err := m.Acquire(gone)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := vm.Map(gone, text, rowFunc(func(int, []byte, []byte) {})); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that has gone: %v", err)
	}
	m.Release(vm)
	for _, text := range []string{`{"_id":"small"}`, `{"_id":"text","t":"` + strings.Repeat("x", 4<<20) + `"}`, string(manyObjects(300_000))} {
		if err := mapOnce(t.Context(), m, text); err != nil {
			t.Errorf("a smaller document: %v", err)
		}
	}
	first()
	second()
	given(t, e)
}

// TestLargeDocumentsTakeTurns: functions that never end with a large document hold up
// large documents of no other database.
func TestLargeDocumentsTakeTurns(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Processors: 2, Timeout: func() time.Duration { return time.Minute }})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	hostile, own := e.Design("hostile", []byte(looping)), e.Design("innocent", ddoc(t, map[string]any{
		"validate_doc_update": "function (n) { if (n.v.length < 1000) { throw {forbidden: 'short'}; } }",
	}))
	for range 40 {
		text := manyObjects(700_000)
		all.Go(func() {
			if err := hostile.Validate(ctx, text, nil, []byte("{}"), []byte("{}")); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	for e.allowances[0][1].Stats().Waiting == 0 { // until no more of them have an allowance
		runtime.Gosched()
	}
	for range 3 {
		for _, size := range []int{300_000, 700_000} {
			must(t, own.Validate(t.Context(), manyObjects(size), nil, []byte("{}"), []byte("{}")))
		}
	}
	cancel()
	all.Wait()
	given(t, e)
}

// TestWeigh: what texts take is never more than what they are said to.
func TestWeigh(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about sizes, for which the race detector takes long")
	}
	t.Parallel()
	many := func(one string) string { return "[" + strings.Repeat(one+",", 40_000) + one + "]" }
	for name, list := range map[string]string{
		"objects": many("{}"), "lists": many("[]"), "numbers": many("0"), "strings": many(`"a"`), "wide": many(`"\u20ac€"`),
		"members": many(`{"a":{}}`), "nested": many(`[[{"b":[0]}]]`), "text": `"` + strings.Repeat("x", 1<<20) + `"`,
		"names": func() string {
			var b strings.Builder
			for i := range 40_000 {
				fmt.Fprintf(&b, `{"%x":%d},`, i, i)
			}
			return "[" + b.String() + "0]"
		}(),
	} {
		v, err := newVM(1 << 30)
		must(t, err)
		before := v.bytes()
		x, err := v.realm.parse([]byte(list))
		must(t, err)
		if isException(x) {
			t.Fatal(name)
		}
		if took, said := v.bytes()-before, weigh([][]byte{[]byte(list)}); 2*took > said+said/8 {
			t.Errorf("%s: %d bytes take %d, %d for each, and are said to take %d when they are read-only", name, len(list), took, took/int64(len(list)), said)
		}
		v.realm.free(x)
		v.close()
	}
}

// TestWaitForMemoryHoldsNoTurn: who waits for the memory of a large document holds up no
// other function meanwhile, and an update of an index waits as long as it takes.
func TestWaitForMemoryHoldsNoTurn(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Processors: 1, Timeout: func() time.Duration { return time.Minute }})
	const source = "function (doc) { for (var k in doc) {} emit(1, null); }"
	large, err := e.Mapper(t.Context(), Program{Instance: "large", Maps: []string{source}})
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	small, err := e.Mapper(t.Context(), Program{Instance: "small", Maps: []string{source}})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	first, second := take(t, e, 1), take(t, e, 1)
	done := make(chan error)
	patient := fairqueue.With(t.Context(), fairqueue.Caller{Patient: true})
	go func() { done <- mapOnce(patient, large, string(manyObjects(600_000))) }()
	for e.turns[1].Stats().Held == 0 {
		runtime.Gosched()
	}
	d := e.Design("other", ddoc(t, map[string]any{"validate_doc_update": "function (n) { if (n.v.length < 100000) { throw {forbidden: 'short'}; } }"}))
	if err := d.Validate(t.Context(), manyObjects(600_000), nil, []byte("{}"), []byte("{}")); err != nil {
		t.Errorf("a large document is validated beside one who waits: %v", err)
	}
	for range 50 { // each needs the only turn
		if err := mapOnce(t.Context(), small, `{"_id":"small"}`); err != nil {
			t.Fatalf("beside one who waits: %v", err)
		}
		select {
		case err := <-done:
			t.Fatalf("without memory: %v", err)
		default:
		}
	}
	first()
	second()
	if err := <-done; err != nil {
		t.Errorf("with memory again: %v", err)
	}
	given(t, e)
}

package script

import (
	"context"
	"errors"
	"runtime"
	"strings"
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
	t.Parallel()
	e := newEngine(t, Options{Timeout: func() time.Duration { return time.Minute }})
	text, ctx := manyObjects(1_800_000), t.Context()
	for _, source := range []string{
		"function (doc) { emit(doc.v.length, null); }",
		"function (doc) { doc.v = 5; for (var k in doc) { if (k === 'v') { emit(doc[k].length, null); } } }",
	} {
		if rows := mapOn(t, e, source, string(text)); rows != "600001 null;" {
			t.Errorf("%s: %s", source, rows)
		}
	}
	d := e.Design("db", ddoc(t, map[string]any{
		"validate_doc_update": "function (n) { if (n.v.length !== 600001) { throw {forbidden: 'short'}; } }",
		"filters":             map[string]any{"f": "function (d) { return d.v.length === 600001; }"},
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
	if got, err := r.Rereduce(ctx, nil, [][]byte{text}); err != nil || string(got) != "600001" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestLargeDocumentsShareMemory: beyond what all VMs have together for large documents
// they wait for each other, no longer than the request or the call.
func TestLargeDocumentsShareMemory(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Timeout: func() time.Duration { return time.Second }})
	m, err := e.Mapper(t.Context(), Program{Maps: []string{"function (doc) { for (var k in doc) {} emit(1, doc); }"}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !e.large[1].TryAcquire(largeMemory) {
		t.Fatal("somebody has some")
	}
	text := manyObjects(300_000)
	if err := mapOnce(t.Context(), m, string(text)); !fault.Is(err, fault.Timeout) {
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
	if err := mapOnce(t.Context(), m, `{"_id":"small"}`); err != nil {
		t.Errorf("a small document: %v", err)
	}
	e.large[1].Release(largeMemory)
	if !e.large[1].TryAcquire(largeMemory) {
		t.Error("some was not given back")
	}
	e.large[1].Release(largeMemory)
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
	if !e.large[1].TryAcquire(largeMemory) {
		t.Fatal("somebody has some")
	}
	done := make(chan error)
	patient := fairqueue.With(t.Context(), fairqueue.Caller{Patient: true})
	go func() { done <- mapOnce(patient, large, string(manyObjects(300_000))) }()
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
	e.large[1].Release(largeMemory)
	if err := <-done; err != nil {
		t.Errorf("with memory again: %v", err)
	}
	if !e.large[1].TryAcquire(largeMemory) {
		t.Error("some was not given back")
	}
	e.large[1].Release(largeMemory)
}

package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/shard/fairqueue"
	"divan/storage/fault"
)

// TestVMsAreBounded uses more functions than there may be VMs: idle ones make
// allowance, and who finds none waits, or goes with its request.
func TestVMsAreBounded(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{MaxVMs: 11, Processors: 9})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d := e.Design(fmt.Sprint("d", i%6), fmt.Appendf(nil, `{"n":%d,"filters":{"f":"function (doc) { return doc.n === this.n; }"}}`, i%6))
			for range 5 {
				got, err := d.Filter(t.Context(), "f", [][]byte{fmt.Appendf(nil, `{"n":%d}`, i%6)}, nil)
				if err != nil || !got[0] {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
	if s := e.Stats(); s.VMs > 11 || s.Idle != s.VMs || s.Bytes <= 0 || s.Broken != 0 {
		t.Errorf("%+v", s)
	}

	m, err := e.Mapper(t.Context(), Program{Maps: []string{"function (doc) {}"}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var held []*MapVM
	for i := range 2 {
		vm, err := m.Acquire(fairqueue.With(t.Context(), fairqueue.Caller{Account: fmt.Sprint(i)}))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, vm)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// Functions of design documents have VMs of their own.
	if _, err := e.Design("x", []byte(`{"filters":{"f":"function () {}"}}`)).Filter(t.Context(), "f", nil, nil); err != nil {
		t.Error(err)
	}
	for _, vm := range held {
		m.Release(vm)
	}
}

func TestNoVMInTime(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{MaxVMs: 2, Processors: 3, Timeout: func() time.Duration { return time.Second }})
	m, err := e.Mapper(t.Context(), Program{Maps: []string{"function (doc) {}"}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	vm, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Acquire(t.Context()); !fault.Is(err, fault.Busy) {
		t.Error(err)
	}
	// Other kinds of functions have slots of their own.
	if err := e.CheckFunction(t.Context(), "", "function (doc) {}"); err != nil {
		t.Error(err)
	}
	d := e.Design("k", []byte(`{"filters":{"f":"function () { return true; }"},"lists":{"l":"function () { send('x'); getRow(); }"}}`))
	stalled := stalledClient{sent: make(chan struct{}), read: make(chan struct{})}
	listed := make(chan error, 1)
	go func() { listed <- d.List(t.Context(), "l", []byte("{}"), []byte("{}"), stalled) }()
	<-stalled.sent
	if pass, err := d.Filter(t.Context(), "f", [][]byte{[]byte("{}")}, []byte("{}")); err != nil || !pass[0] {
		t.Error(pass, err)
	}
	close(stalled.read)
	if err := <-listed; err != nil {
		t.Error(err)
	}
	m.Release(vm)
}

// stalledClient takes what a list sends when read is closed.
type stalledClient struct{ sent, read chan struct{} }

// Row implements ListStream.
func (stalledClient) Row() ([]byte, error) { return nil, nil }

// Start implements ListStream.
func (stalledClient) Start([]byte) error { return nil }

// Abort implements ListStream.
func (stalledClient) Abort() {}

// Send implements ListStream.
func (s stalledClient) Send([]byte) error {
	close(s.sent)
	<-s.read
	return nil
}

func TestCanceledCall(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Timeout: func() time.Duration { return time.Minute }})
	d := e.Design("k", []byte(`{"filters":{"f":"function () { for (;;) {} }"}}`))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.Filter(ctx, "f", [][]byte{[]byte("{}")}, nil); err == nil {
		t.Error("the function has ended")
	}
	if s := e.Stats(); s.Broken != 1 || s.Timeouts != 1 || s.VMs != 0 {
		t.Errorf("%+v", s)
	}
}

// TestIdleVMsGo lets idle VMs expire.
func TestIdleVMsGo(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	for i := range 3 {
		d := e.Design(fmt.Sprint(i), []byte(`{"filters":{"f":"function () {}"}}`))
		if _, err := d.Filter(t.Context(), "f", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s := e.Stats(); s.VMs != 3 || s.Idle != 3 {
		t.Errorf("%+v", s)
	}
	e.mu.Lock()
	for _, v := range e.mu.idle[:2] {
		v.idleSince = time.Now().Add(-2 * idleTime)
	}
	e.mu.Unlock()
	e.expire()
	if s := e.Stats(); s.VMs != 1 || s.Idle != 1 {
		t.Errorf("%+v", s)
	}
}

func TestClosedEngine(t *testing.T) {
	t.Parallel()
	e := New(Options{})
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Mapper(t.Context(), Program{}); !fault.Is(err, fault.Closed) {
		t.Error(err)
	}
}

// TestLogIsBounded cuts what scripts log.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	e := newEngine(t, Options{Logger: zap.New(core)})
	mapOn(t, e, "function (doc) { log('hello'); log({a: 1}); log('ü'.repeat(1e6)); log(new Error('x')); log(undefined); }", "{}")
	mapOn(t, e, "function (doc) { throw 'x'.repeat(1e6); }", `{"_id":"the id"}`)
	var got []string
	for _, l := range logs.All() {
		for key, x := range l.ContextMap() {
			if s := fmt.Sprint(x); len(s) > maxLogLine+3 {
				t.Errorf("%s has %d bytes", key, len(s))
			} else if len(s) < 50 {
				got = append(got, s)
			}
		}
	}
	if s := strings.Join(got, "|"); s != `hello|{"a":1}|Error: x|undefined|the id` {
		t.Error(s)
	}
}

// TestMemoryComesBack starts, uses and loses many VMs: memory outside of Go's
// heap does not grow.
func TestMemoryComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("the memory of the race detector is none of the program's")
	}
	e := newEngine(t, Options{Timeout: func() time.Duration { return time.Minute }, Memory: 8 << 20})
	round := func(n int) {
		for i := range n {
			mapOn(t, e, "function (doc) { emit(doc.a, {b: [doc]}); throw {c: doc}; }", `{"_id":"a","a":{"x":[1,2,3]}}`)
			d := e.Design(fmt.Sprint(i), []byte(`{"lib":{"m":"exports.x = 1;"},"filters":{"f":"function (doc) { return require('lib/m').x; }","hog":"function () { var a = []; for (;;) { a.push('x' + a.length); } }"}}`))
			if _, err := d.Filter(t.Context(), "f", [][]byte{[]byte("{}")}, nil); err != nil {
				t.Fatal(err)
			}
			if i%20 == 0 {
				if _, err := d.Filter(t.Context(), "hog", [][]byte{[]byte("{}")}, nil); err == nil {
					t.Error("no error")
				}
			}
			d.Close()
		}
	}
	round(40)
	before := resident(t)
	round(120)
	if after := resident(t); after > before+48<<20 {
		t.Errorf("resident memory grew from %d to %d MB", before>>20, after>>20)
	}
}

// resident is the resident memory of the process.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func TestReduce(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	values := [][]byte{[]byte("1"), []byte("2"), []byte("[3]")}
	keys := []byte(`[["x","a"],["y","b"],["z","c"]]`)
	for _, c := range []struct {
		source, reduced, rereduced string
		keys                       bool
	}{
		{"function (keys, values, rereduce) { return sum([1, 2]); }", "3", "3", false},
		{"function (keys, values, rereduce) { return [keys === null, values, rereduce]; }", "[false,[1,2,[3]],false]", "[true,[1,2,[3]],true]", true},
		{"function (keys, values, rereduce) { return rereduce ? 0 : keys.map(function (k) { return k[0] + '/' + k[1]; }); }", `["x/a","y/b","z/c"]`, "0", true},
		{"function (k, values) { return values.length; }", "3", "3", false},
		{"function () { return arguments[0] === null ? 'none' : arguments[0].length; }", "3", `"none"`, true},
		{"function (keys, values) { }", "null", "null", false},
		{"function (keys, values) { throw 'no'; }", "null", "null", false},
		{"function (keys, values) { return 0 / 0; }", "null", "null", false},
		{"function (keys, values) { values.push(4); return values; }", "[1,2,[3],4]", "[1,2,[3],4]", false},
	} {
		r, err := e.Reducer(t.Context(), "", c.source, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.KeysUsed() != c.keys {
			t.Errorf("%s: keys used %v", c.source, r.KeysUsed())
		}
		reduced, err1 := r.Reduce(t.Context(), []byte("> "), keys, values)
		rereduced, err2 := r.Rereduce(t.Context(), nil, values)
		if string(reduced) != "> "+c.reduced || string(rereduced) != c.rereduced || err1 != nil || err2 != nil {
			t.Errorf("%s: %s %v, %s %v", c.source, reduced, err1, rereduced, err2)
		}
		r.Close()
	}
}

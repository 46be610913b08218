package script

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/storage/fault"
)

// panics is a ListStream that panics where it is told to.
type panics struct {
	listed
	row, start, send bool
	panicked, later  int // calls that panicked, and those behind the first of them
}

func (p *panics) call(what string, told bool) {
	if p.panicked > 0 {
		p.later++
	}
	if told {
		p.panicked++
		panic(what)
	}
}

func (p *panics) Row() ([]byte, error) {
	p.call("row", p.row)
	return p.listed.Row()
}

func (p *panics) Start(resp []byte) error {
	p.call("start", p.start)
	return p.listed.Start(resp)
}

func (p *panics) Abort() {}

func (p *panics) Send(text []byte) error {
	p.call("send", p.send)
	return p.listed.Send(text)
}

// A native function that panics below frames of the engine ends its script with an
// error, no matter how the script tries to catch it, and the next call works.
func TestNativePanics(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.ErrorLevel)
	e := newEngine(t, Options{Logger: zap.New(core)})
	d := e.Design("k", ddoc(t, map[string]any{"lists": map[string]any{
		"all":     "function (head, req) { start({code: 200}); var row; while (row = getRow()) { send('row'); } }",
		"catches": "function (head, req) { for (;;) { try { start({code: 200}); getRow(); send('x'); } catch (e) { } finally { send('y'); } } }",
		"deep":    "function (head, req) { [3, 1, 2].sort(function (a, b) { return JSON.parse('[1]', function () { return getRow(); }); }); }",
		"tail":    "function (head, req) { return 'tail'; }",
	}}))
	for _, c := range []struct {
		name string
		l    panics
	}{
		{"all", panics{row: true}},
		{"all", panics{start: true}},
		{"all", panics{send: true}},
		{"catches", panics{row: true}},
		{"catches", panics{start: true}},
		{"catches", panics{send: true}},
		{"deep", panics{row: true}},
		{"tail", panics{send: true}},
	} {
		l := c.l
		l.rows = []string{`{"key":1,"value":2}`}
		err := d.List(t.Context(), c.name, []byte("{}"), []byte("{}"), &l)
		if !fault.Is(err, fault.Internal) || fault.Reason(err) != "a native function of scripts panicked" || l.panicked != 1 || l.later != 0 {
			t.Errorf("%s, %+v: %v, %d calls after the panic", c.name, c.l, err, l.later)
		}
		if n := logs.FilterMessage("a native function of scripts panicked").Len(); n != 1 {
			t.Errorf("%s, %+v: logged %d times", c.name, c.l, n)
		}
		logs.TakeAll()
		fine := &listed{rows: []string{`{"key":1,"value":2}`, `{"key":2,"value":2}`}}
		if err := d.List(t.Context(), "all", []byte("{}"), []byte("{}"), fine); err != nil || fine.log.String() != `start {"code":200,"headers":{}};row;send "row";row;send "row";` {
			t.Errorf("after %s: %s, %v", c.name, &fine.log, err)
		}
	}
}

// brokenLog is a log that cannot be written.
type brokenLog struct{ zapcore.Core }

func (b brokenLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if e.Level == zapcore.InfoLevel {
		panic("the log")
	}
	return b.Core.Check(e, c)
}

// The same of a map function, which keeps its VM for the documents behind.
func TestNativePanicsInMap(t *testing.T) {
	t.Parallel()
	core, _ := observer.New(zapcore.InfoLevel)
	e := newEngine(t, Options{Logger: zap.New(brokenLog{core})})
	m, err := e.Mapper(t.Context(), Program{Maps: []string{"function (doc) { if (doc.log) { try { log('x'); } catch (e) { } } emit(doc._id, 1); }"}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, bad := range []bool{false, true, false, true} {
		vm, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		emit := rowFunc(func(int, []byte, []byte) { rows++ })
		doc := `{"_id":"a"}`
		if bad {
			doc = `{"_id":"a","log":true}`
		}
		err = vm.Map(t.Context(), []byte(doc), emit)
		m.Release(vm)
		if bad && (!fault.Is(err, fault.Internal) || rows != 0) || !bad && (err != nil || rows != 1) {
			t.Errorf("%s: %d rows, %v", doc, rows, err)
		}
	}
}

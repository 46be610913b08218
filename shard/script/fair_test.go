package script

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"divan/shard/fairqueue"
	"divan/storage/fault"
)

// account is a context for the work of an account.
func account(t *testing.T, name string) context.Context {
	t.Helper()
	return fairqueue.With(t.Context(), fairqueue.Caller{Account: name})
}

const looping = `{
	"views": {"v": {"map": "function (doc) { for (;;) { } }"}},
	"validate_doc_update": "function () { for (;;) { } }",
	"shows": {"s": "function () { for (;;) { } }", "fine": "function () { return 'fine'; }"},
	"filters": {"f": "function () { for (;;) { } }"},
	"lists": {"l": "function () { for (;;) { } }"}}`

const innocent = `{
	"validate_doc_update": "function (n) { if (n.bad) { throw({forbidden: 'bad'}); } }",
	"shows": {"s": "function (doc) { return 'one'; }"},
	"filters": {"f": "function (doc) { return doc.n > 1; }"},
	"lists": {"l": "function () { var row; while (row = getRow()) { send(row.key); } }"}}`

// harass has a database use its functions of every kind all the time, until the test
// ends: 60 connections, 40 builds and 20 design documents that are saved, of an account.
func harass(t *testing.T, e *Engine, owner string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	d := e.Design(owner, []byte(looping))
	for i := range 60 {
		ctx := fairqueue.With(ctx, fairqueue.Caller{Account: "hostile"})
		all.Go(func() {
			for ctx.Err() == nil {
				var err error
				switch i % 4 {
				case 0:
					err = d.Validate(ctx, []byte("{}"), nil, []byte("{}"), []byte("{}"))
				case 1:
					_, err = d.Show(ctx, "s", nil, []byte("{}"))
				case 2:
					_, err = d.Filter(ctx, "f", [][]byte{[]byte("{}")}, []byte("{}"))
				case 3:
					err = d.List(ctx, "l", []byte("{}"), []byte("{}"), &listed{})
				}
				if err == nil {
					t.Error("an endless function has ended")
				}
			}
		})
	}
	for range 20 {
		ctx := fairqueue.With(ctx, fairqueue.Caller{Account: "hostile"})
		all.Go(func() {
			for ctx.Err() == nil {
				if e.CheckFunction(ctx, owner, "(function () { for (;;) { } })()") == nil {
					t.Error("an endless source has ended")
				}
			}
		})
	}
	m, err := e.Mapper(account(t, "hostile"), Program{Instance: owner, Maps: []string{"function (doc) { for (;;) { } }"}})
	must(t, err)
	t.Cleanup(m.Close)
	for range 40 {
		ctx := fairqueue.With(ctx, fairqueue.Caller{Account: "hostile"})
		all.Go(func() {
			for ctx.Err() == nil {
				vm, err := m.Acquire(ctx)
				if err != nil {
					continue
				}
				if vm.Map(ctx, []byte("{}"), rowFunc(func(int, []byte, []byte) {})) == nil {
					t.Error("an endless function has ended")
				}
				m.Release(vm)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// work uses functions of every kind, and fails when one is refused.
func work(ctx context.Context, t *testing.T, e *Engine, owner string) {
	t.Helper()
	d := e.Design(owner, []byte(innocent))
	m, err := e.Mapper(ctx, Program{Instance: owner, Maps: []string{"function (doc) { emit(doc.n, 1); }"}})
	must(t, err)
	defer m.Close()
	r, err := e.Reducer(ctx, owner, "function (keys, values) { return sum(values); }", nil)
	must(t, err)
	defer r.Close()
	for range 5 {
		must(t, d.Validate(ctx, []byte("{}"), nil, []byte("{}"), []byte("{}")))
		_, err := d.Show(ctx, "s", nil, []byte("{}"))
		must(t, err)
		pass, err := d.Filter(ctx, "f", [][]byte{[]byte(`{"n":1}`), []byte(`{"n":2}`)}, []byte("{}"))
		must(t, err)
		l := &listed{rows: []string{`{"key":1}`, `{"key":2}`}}
		must(t, d.List(ctx, "l", []byte("{}"), []byte("{}"), l))
		vm, err := m.Acquire(ctx)
		must(t, err)
		rows := 0
		must(t, vm.Map(ctx, []byte(`{"n":1}`), rowFunc(func(int, []byte, []byte) { rows++ })))
		m.Release(vm)
		sum, err := r.Reduce(ctx, nil, nil, [][]byte{[]byte("1"), []byte("2")})
		must(t, err)
		if fmt.Sprint(pass) != "[false true]" || rows != 1 || string(sum) != "3" || !strings.Contains(l.log.String(), `send "2"`) {
			t.Fatal(pass, rows, string(sum), &l.log)
		}
	}
	must(t, e.CheckFunction(ctx, owner, "function () {}"))
}

// TestLoopsHoldUpTheirOwnDatabaseOnly: functions that never end within the test hold up
// neither another database nor another account.
func TestLoopsHoldUpTheirOwnDatabaseOnly(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Processors: 2, Timeout: func() time.Duration { return time.Minute }})
	for i := range 2 {
		harass(t, e, fmt.Sprint("hostile ", i))
	}
	work(account(t, "mary"), t, e, "innocent")
	work(account(t, "paul"), t, e, "innocent")
	work(account(t, "mary"), t, e, "hostile 0")
}

// TestChecksTakeTurns: design documents whose functions never end when they are saved
// hold up those of no other database, whose ever they are, and none longer than its client
// waits.
func TestChecksTakeTurns(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Processors: 2, Timeout: func() time.Duration { return time.Minute }})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := e.CheckFunction(ctx, "hostile", "(function () { for (;;) { } })()"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	for e.Stats().Queues[forChecks].Waiting == 0 {
		runtime.Gosched() // until no more of them may run
	}
	for range 5 {
		must(t, e.CheckFunction(t.Context(), "innocent", "function () {}"))
	}
	cancel()
	all.Wait()
}

// TestFunctionsHaveTheirTime: what others' turns take is not a function's.
func TestFunctionsHaveTheirTime(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Processors: 1})
	d := e.Design("a", []byte(innocent))
	v, err := d.set.acquire(t.Context())
	must(t, err)
	defer d.set.release(v)
	v.begin(t.Context(), time.Minute)
	other := make(chan *lease)
	go func() {
		l, err := e.lease(account(t, "b"), forFunctions, "b")
		if err != nil {
			t.Error(err)
		}
		other <- l
	}()
	for e.turns[1].Stats().Waiting == 0 {
		runtime.Gosched() // until it waits
	}
	before := v.limits.deadline
	go func() {
		l := <-other
		<-time.After(50 * time.Millisecond)
		e.end(l, time.Now())
	}()
	v.limits.yield(time.Now().Add(fairqueue.Slice))
	if moved := v.limits.deadline.Sub(before); moved < 40*time.Millisecond || v.limits.halted != nil {
		t.Errorf("the deadline moved by %v, %v", moved, v.limits.halted)
	}
}

// TestWhoWaitsTooLong gets an error of its own kind, and does not take it for a time-out.
func TestWhoWaitsTooLong(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Processors: 1, Timeout: func() time.Duration { return 50 * time.Millisecond }})
	l, err := e.lease(account(t, "a"), forFunctions, "a")
	must(t, err)
	d := e.Design("a", []byte(innocent))
	_, err = d.Show(t.Context(), "s", nil, []byte("{}"))
	if !fault.Is(err, fault.Busy) || fault.Reason(err) == "" {
		t.Error(err)
	}
	e.end(l, time.Now())
	if s := e.Stats(); s.Queues[forFunctions].Waiting != 0 || s.Turns.Refused != 1 {
		t.Errorf("%+v", s)
	}
}

// unread is a client that takes nothing, until it is cut off.
type unread struct {
	stuck, cut chan struct{}
	once       sync.Once
}

func newUnread() *unread { return &unread{stuck: make(chan struct{}), cut: make(chan struct{})} }

var errCut = errors.New("cut off")

func (u *unread) Row() ([]byte, error) { return []byte(`{"key":1}`), nil }
func (u *unread) Start([]byte) error   { return nil }
func (u *unread) Abort()               { close(u.cut) }
func (u *unread) Send([]byte) error {
	u.once.Do(func() { close(u.stuck) })
	<-u.cut
	return errCut
}

// TestUnreadListsHoldUpNobody: clients that take nothing of a list cost memory alone, and
// of that so much as there is for them: then those go that have waited longest, of the
// account that has most of them.
func TestUnreadListsHoldUpNobody(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Processors: 2, Memory: 4 << 20})
	var all sync.WaitGroup
	start := func(owner, name string) *unread {
		u := newUnread()
		d := e.Design(owner, []byte(innocent))
		ctx := account(t, name)
		all.Go(func() {
			if err := d.List(ctx, "l", []byte("{}"), []byte("{}"), u); !errors.Is(err, errCut) {
				t.Error(err)
			}
		})
		<-u.stuck
		return u
	}
	lone := start("db", "slow")
	var hostile []*unread
	for range 150 {
		hostile = append(hostile, start("db", "hostile"))
	}
	work(account(t, "mary"), t, e, "db")
	work(account(t, "mary"), t, e, "innocent")
	isCut := func(u *unread) bool {
		select {
		case <-u.cut:
			return true
		default:
			return false
		}
	}
	cut := 0
	for i, u := range hostile {
		if isCut(u) {
			if cut++; cut != i+1 {
				t.Errorf("client %d was cut off before one that had waited longer", i)
			}
		}
	}
	s := e.Stats()
	if cut == 0 || cut > 140 || isCut(lone) || s.ListsCut != uint64(cut) || s.Parked+9 < 150-cut || s.ParkedBytes > parkedVMs*4<<20 {
		t.Errorf("%d were cut off, the other account's: %v; %+v", cut, isCut(lone), s)
	}
	for _, u := range append(hostile, lone) {
		if !isCut(u) {
			u.Abort()
		}
	}
	all.Wait()
	if s := e.Stats(); s.Parked != 0 || s.ParkedBytes != 0 || s.Queues[forLists].Held != 0 {
		t.Errorf("%+v", s)
	}
}

// TestWhatWasEndedHasNoResult: a script that catches the refusal of memory, which comes
// when its time is over or its client has gone, does not pass for one that ended well.
func TestWhatWasEndedHasNoResult(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Timeout: func() time.Duration { return time.Minute }})
	list := "a = [" + strings.Repeat("{},", 100) + "];" // takes memory, and neither jumps nor calls
	catches := "function () { try { var a; " + strings.Repeat(list, 30) + " } catch (e) { } return 'ended'; }"
	d := e.Design("a", ddoc(t, map[string]any{
		"validate_doc_update": catches, "shows": map[string]any{"s": catches}, "filters": map[string]any{"f": catches}, "rewrites": catches,
	}))
	calls := map[string]func(ctx context.Context) error{
		"validate": func(ctx context.Context) error {
			return d.Validate(ctx, []byte("{}"), nil, []byte("{}"), []byte("{}"))
		},
		"show": func(ctx context.Context) error { _, err := d.Show(ctx, "s", nil, []byte("{}")); return err },
		"filter": func(ctx context.Context) error {
			_, err := d.Filter(ctx, "f", [][]byte{[]byte("{}")}, []byte("{}"))
			return err
		},
		"rewrite": func(ctx context.Context) error { _, err := d.Rewrite(ctx, []byte("{}")); return err },
	}
	for name, call := range calls {
		must(t, call(t.Context())) // it is compiled
		for n := range 20 {
			// The call ends after so many looks at the context: at every step of its way.
			ctx := &fading{Context: t.Context(), left: n}
			if err := call(ctx); err == nil && ctx.left < 0 {
				t.Errorf("%s has ended well", name)
			}
			must(t, call(t.Context()))
		}
	}
}

// fading is a context that ends after so many looks at it.
type fading struct {
	context.Context
	left int
}

func (f *fading) Err() error {
	if f.left--; f.left >= 0 {
		return nil
	}
	return context.Canceled
}

// TestCloseEndsWaiting: no call waits for a turn at an engine that is closed.
func TestCloseEndsWaiting(t *testing.T) {
	t.Parallel()
	e := New(Options{Processors: 1})
	l, err := e.lease(account(t, "a"), forFunctions, "a")
	must(t, err)
	waits := make(chan error)
	go func() {
		_, err := e.Design("a", []byte(innocent)).Show(t.Context(), "s", nil, []byte("{}"))
		waits <- err
	}()
	for e.turns[1].Stats().Waiting == 0 {
		runtime.Gosched() // until it waits
	}
	must(t, e.Close())
	if err := <-waits; !fault.Is(err, fault.Closed) {
		t.Error(err)
	}
	e.end(l, time.Now())
}

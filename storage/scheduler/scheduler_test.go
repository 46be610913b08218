package scheduler

import (
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// fakeDB behaves as a Pebble instance towards the scheduler: refused once, it
// never asks again until it has said that nothing waits.
type fakeDB struct {
	c  *StoreScheduler
	mu sync.Mutex // the store's mutex: held in every call to the scheduler but Done

	allowed int
	work    int // compactions to run
	waiting bool
	running []pebble.CompactionGrantHandle
	urgent  float64
	onAsk   func() // called inside GetWaitingCompaction, after the answer is made
}

func newFakeDB(s *Scheduler, allowed int) *fakeDB {
	d := &fakeDB{c: s.ForStore(), allowed: allowed}
	d.c.Register(1, d)
	return d
}

// more adds work, as a flush does.
func (d *fakeDB) more(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.work += n
	for d.work > 0 && !d.waiting {
		ok, h := d.c.TrySchedule()
		if !ok {
			d.waiting = true
			return
		}
		d.start(h)
	}
}

func (d *fakeDB) start(h pebble.CompactionGrantHandle) {
	d.work--
	d.running = append(d.running, h)
}

// finish ends one compaction.
func (d *fakeDB) finish() {
	d.mu.Lock()
	h := d.running[0]
	d.running = d.running[1:]
	d.mu.Unlock()
	h.Done()
}

func (d *fakeDB) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.running)
}

// GetAllowedWithoutPermission implements pebble.DBForCompaction.
func (d *fakeDB) GetAllowedWithoutPermission() int { return d.allowed }

// GetWaitingCompaction implements pebble.DBForCompaction.
func (d *fakeDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	d.mu.Lock()
	d.waiting = d.waiting && d.work > 0
	ok := d.waiting
	d.mu.Unlock()
	if d.onAsk != nil {
		d.onAsk()
	}
	return ok, pebble.WaitingCompaction{Score: d.urgent}
}

// Schedule implements pebble.DBForCompaction.
func (d *fakeDB) Schedule(h pebble.CompactionGrantHandle) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.waiting || d.work == 0 {
		d.waiting = false
		return false
	}
	d.start(h)
	return true
}

func wantRunning(t *testing.T, d *fakeDB, n int) {
	t.Helper()
	if got := d.count(); got != n {
		t.Fatalf("%d compactions run, want %d", got, n)
	}
}

func TestSchedulerLimits(t *testing.T) {
	s := New(2)
	a, b := newFakeDB(s, 2), newFakeDB(s, 1)
	a.more(3)
	wantRunning(t, a, 2)
	b.more(2)
	wantRunning(t, b, 0)
	b.urgent = 9
	a.finish() // the slot goes to the most urgent
	wantRunning(t, a, 1)
	wantRunning(t, b, 1)
	a.finish() // b may not run two
	wantRunning(t, a, 1)
	wantRunning(t, b, 1)
	b.finish()
	wantRunning(t, b, 1)
}

// TestSchedulerKeepsWaiters: a store that is refused at the very moment at which
// it is asked, and answers that nothing waits, must not be forgotten.
func TestSchedulerKeepsWaiters(t *testing.T) {
	s := New(1)
	a, b := newFakeDB(s, 1), newFakeDB(s, 1)
	a.more(1)
	b.more(1)
	wantRunning(t, b, 0)
	b.mu.Lock()
	b.work = 0 // picked up by a compaction that needs no permission
	b.mu.Unlock()
	b.onAsk = func() {
		b.onAsk = nil
		// The only slot is taken again and b refused, while grant still holds
		// the answer that nothing waits.
		a.more(1)
		b.more(1)
	}
	a.finish()
	wantRunning(t, a, 1)
	wantRunning(t, b, 0)
	a.finish()
	wantRunning(t, b, 1)
}

// TestSchedulerNothingLost: in any order of events, all work is done.
func TestSchedulerNothingLost(t *testing.T) {
	s := New(2)
	var dbs []*fakeDB
	var wg sync.WaitGroup
	for range 8 {
		d := newFakeDB(s, 2)
		dbs = append(dbs, d)
		wg.Go(func() {
			for range 500 {
				d.more(1)
				for d.count() > 0 {
					d.finish()
				}
			}
		})
	}
	wg.Wait()
	for _, d := range dbs {
		for d.count() > 0 {
			d.finish()
		}
	}
	for moved := true; moved; {
		moved = false
		for _, d := range dbs {
			for d.count() > 0 {
				d.finish()
				moved = true
			}
		}
	}
	for i, d := range dbs {
		if d.work != 0 {
			t.Errorf("store %d has %d compactions left that nobody will run", i, d.work)
		}
	}
	if s.mu.running != 0 {
		t.Errorf("%d slots are taken", s.mu.running)
	}
}

// TestSchedulerUnregister waits for calls into the store that is closed.
func TestSchedulerUnregister(t *testing.T) {
	s := New(1)
	a, b := newFakeDB(s, 1), newFakeDB(s, 1)
	a.more(1)
	b.more(1)
	asked, answer, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b.onAsk = func() {
		close(asked)
		<-answer
	}
	done := make(chan struct{})
	go func() {
		a.finish()
		close(done)
	}()
	<-asked
	go func() {
		b.c.Unregister()
		close(closed)
	}()
	select {
	case <-closed:
		t.Fatal("Unregister returned while the store was being asked")
	default:
	}
	close(answer)
	<-closed
	<-done
	if ok, _ := b.c.TrySchedule(); ok {
		t.Fatal("an unregistered store got a slot")
	}
}

// TestSchedulerDelay: after a failed compaction a store waits, and is not
// forgotten.
func TestSchedulerDelay(t *testing.T) {
	s := New(2)
	a, b := newFakeDB(s, 2), newFakeDB(s, 2)
	a.c.Delay(time.Hour)
	a.more(1)
	b.more(1)
	wantRunning(t, a, 0)
	wantRunning(t, b, 1)
	b.finish()
	wantRunning(t, a, 0)
	a.c.Delay(-time.Hour)
	s.grant()
	wantRunning(t, a, 1)
}

package script

import (
	"time"

	"divan/shard/fairqueue"
	"divan/storage/fault"
)

// useKind is the purpose that JavaScript is run for. Each has slots of its own, so that no
// use waits for another use that may wait for it: a list function waits for rows, which
// may need map and reduce functions, and for a client that reads slowly; a write waits for
// validation functions.
type useKind uint8

const (
	forIndexes     useKind = iota // map and reduce functions
	forFunctions                  // shows, updates, rewrites, filters
	forValidations                // validate_doc_update
	forLists
	forChecks // of functions, when a design document is saved
	kinds     = iota
)

// KindNames are the kinds of uses in the order of Stats.Queues.
var KindNames = [kinds]string{"indexes", "functions", "validations", "lists", "checks"}

// queues are the queues in which uses of JavaScript wait. A slot is the right to have a
// VM, and is about memory; it is held while the VM is used, and shared so that some are
// always left. A turn is the right to run on a processor, and goes on to the next after a
// slice, no matter what the script does. Validations have turns of their own.
type queues struct {
	slots [kinds]*fairqueue.Queue
	turns [2]*fairqueue.Queue // of validations, of all others
}

// errBusy refuses a call whose turn has not come in time.
var errBusy = fault.New(fault.Busy, "The functions of this database have too much to do at the moment. Try again later.")

// slotsOf divides VMs among kinds.
func slotsOf(vms int) (n [kinds]int) {
	checks := max(1, vms/9)
	each := max(1, (vms-checks)/4)
	for k := range n {
		n[k] = each
	}
	n[forIndexes] = max(1, vms-checks-3*each)
	n[forChecks] = checks
	return n
}

func (e *Engine) newQueues() {
	for k, n := range slotsOf(e.o.MaxVMs) {
		o := fairqueue.Options{Capacity: n, Shares: true, Busy: errBusy}
		if useKind(k) == forLists {
			o.Yielded = e.park
		}
		e.slots[k] = fairqueue.New(o)
	}
	for i := range e.turns {
		e.turns[i] = fairqueue.New(fairqueue.Options{Capacity: e.o.Processors, Busy: errBusy})
	}
}

// turnsOf returns where a kind gets its turns.
func (q *queues) turnsOf(k useKind) *fairqueue.Queue { return q.turns[k.group()] }

// group is 0 for validations, 1 for all others: what writes wait for is their own.
func (k useKind) group() int {
	if k == forValidations {
		return 0
	}
	return 1
}

func (q *queues) closeQueues() {
	for _, s := range q.slots {
		s.Close()
	}
	for _, t := range q.turns {
		t.Close()
	}
}

// checkPatience is how many times as long as other calls a check waits for its turn: it
// begins with a new VM, and a design document that is refused is not tried again.
const checkPatience = 6

// lease is a slot and a turn.
type lease struct {
	slot, turn fairqueue.Turn
	kind       useKind
	flow       fairqueue.Flow
	patience   time.Duration // 0: without end
}

// lease waits for a slot and for a turn.
func (e *Engine) lease(ctx caller, k useKind, instance string) (*lease, error) {
	f, patience := fairqueue.Flow{Database: instance}, e.o.Timeout()
	if ctx != nil {
		c := fairqueue.CallerOf(ctx)
		f.Account, f.Background = c.Account, c.Background != nil && c.Background()
		if c.Patient {
			patience = 0
		}
	}
	if k == forChecks {
		patience *= checkPatience
	}
	l, _ := e.leases.Get().(*lease)
	if l == nil {
		l = &lease{}
	}
	l.kind, l.flow, l.patience = k, f, patience
	now := time.Now()
	if err := e.slots[k].Acquire(ctx, &l.slot, f, now, patience); err != nil {
		return nil, err
	}
	if err := e.turnsOf(k).Acquire(ctx, &l.turn, f, now, patience); err != nil {
		l.slot.Release(time.Now())
		return nil, err
	}
	return l, nil
}

// end gives both back.
func (e *Engine) end(l *lease, now time.Time) {
	l.turn.Release(now)
	l.slot.Release(now)
	l.slot.Holder = nil
	e.leases.Put(l)
}

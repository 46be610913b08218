package script

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/shard/fairqueue"
)

// parked are the list functions that wait, for their clients or for rows, and whose
// slots others have got meanwhile. All that is left to them is their VMs, which count
// against a budget. When that is used up the function whose client has taken nothing
// for longest is ended, of the account that takes most of it.
type parked struct {
	mu    sync.Mutex
	vms   map[*vm]struct{}
	bytes int64 // that their VMs had when they were parked
	cut   uint64
}

// parkedVMs is the budget of parked VMs, in VMs that have all the memory there may be.
// Most have a hundredth.
const parkedVMs = 4

// park takes the slot of a function that waits for something else, and reports whether it
// could. It is called while the function cannot come back.
func (e *Engine) park(t *fairqueue.Turn) bool {
	v := t.Holder.(*vm) //nolint:forcetypeassert // nothing else has slots
	p := &e.parked
	p.mu.Lock()
	defer p.mu.Unlock()
	bytes := v.bytes()
	if p.bytes+bytes > parkedVMs*e.o.Memory {
		e.cutLocked()
		return false // until that one has gone
	}
	if p.vms == nil {
		p.vms = map[*vm]struct{}{}
	}
	p.vms[v] = struct{}{}
	v.parkedBytes = bytes
	p.bytes += bytes
	return true
}

// unpark takes a function out that goes on, or ends.
func (e *Engine) unpark(v *vm) {
	p := &e.parked
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.vms[v]; ok {
		delete(p.vms, v)
		p.bytes -= v.parkedBytes
	}
}

// count returns how many VMs are parked.
func (p *parked) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.vms)
}

// cutLocked ends the function that has waited longest for its client, of the account of
// the database that takes most of the budget. One at a time.
func (e *Engine) cutLocked() {
	type account struct{ database, name string }
	p := &e.parked
	databases, accounts := map[string]int64{}, map[account]int64{}
	for v := range p.vms {
		l := v.list
		if l.cut {
			return
		}
		if l.sending {
			databases[v.set.instance] += v.parkedBytes
			accounts[account{v.set.instance, l.account}] += v.parkedBytes
		}
	}
	var victim *vm
	worse := func(v *vm) bool {
		if victim == nil {
			return true
		}
		a, b := account{v.set.instance, v.list.account}, account{victim.set.instance, victim.list.account}
		switch {
		case databases[a.database] != databases[b.database]:
			return databases[a.database] > databases[b.database]
		case accounts[a] != accounts[b]:
			return accounts[a] > accounts[b]
		}
		return v.list.since.Before(victim.list.since)
	}
	for v := range p.vms {
		if v.list.sending && worse(v) {
			victim = v
		}
	}
	if victim == nil {
		return
	}
	l := victim.list
	l.cut = true
	p.cut++
	e.o.Logger.Info("a client that takes nothing of a list is cut off: too many of them wait", zap.String("database", victim.set.instance),
		zap.String("account", l.account), zap.Duration("waited", time.Since(l.since)))
	l.Abort()
}

// outside does what is not the script's own work: its time stands still, and others may
// have its turn and its slot.
func (v *vm) outside(sending bool, f func(*listing) error) (err error) {
	l := v.list
	if l == nil {
		return errNoList
	}
	l.sending, l.since = sending, time.Now()
	v.lease.turn.Leave(l.since)
	v.lease.slot.Leave(l.since)
	ended := true // and what is left of the script is to be cleared away; a stream may panic
	defer func() {
		if ended {
			v.lease.turn.Abandon()
			v.lease.slot.Abandon()
			v.set.engine.unpark(v)
		}
	}()
	if err = f(l); err != nil {
		return err
	}
	now := time.Now()
	if err = v.lease.slot.Return(v.limits.done, now); err != nil {
		return err
	}
	v.set.engine.unpark(v)
	if err = v.lease.turn.Return(v.limits.done, now); err != nil {
		return err
	}
	v.limits.deadline = time.Now().Add(l.timeout)
	ended = false
	return nil
}

package protocol

import (
	"sync"

	"divan/replicator/endpoint"
)

// batch is changes that were read together.
type batch struct {
	rows []endpoint.Change
	seq  endpoint.Seq // behind the last row
	done bool
}

// watermark is how far a run has come.
//
//	I1. open holds, in the order of the feed, the first batch that is not
//	    done and everything behind it;
//	I2. every change up to through is on the target, or was refused for good;
//	I3. committed is what the newest checkpoint says, and never beyond through.
type watermark struct {
	mu        sync.Mutex
	open      []*batch
	through   endpoint.Seq
	committed endpoint.Seq
	changed   bool // a change has been read
	waiting   bool // somebody will write a checkpoint
}

// add takes a batch that has been read.
func (w *watermark) add(b *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, b)
	w.changed = w.changed || len(b.rows) > 0
}

// complete notes that a batch is done. begin: the caller has to see to a
// checkpoint.
func (w *watermark) complete(b *batch) (through endpoint.Seq, begin bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.done, b.rows = true, nil // others may wait long for one before them
	for len(w.open) > 0 && w.open[0].done {
		w.through = w.open[0].seq
		w.open[0] = nil
		w.open = w.open[1:]
	}
	if len(w.open) == 0 {
		w.open = nil // what was allocated for them goes while nothing happens
	}
	begin = !w.waiting && w.through != w.committed
	w.waiting = w.waiting || begin
	return w.through, begin
}

// reached returns the position that a checkpoint may name, and whether it is
// another one than that of the last checkpoint.
func (w *watermark) reached() (through endpoint.Seq, news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.through, w.through != w.committed
}

// commit notes a checkpoint. It reports whether there is need for another one;
// if not, nobody waits to write one any more.
func (w *watermark) commit(seq endpoint.Seq) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.committed = seq
	w.waiting = w.through != seq
	return w.waiting
}

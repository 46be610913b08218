package protocol

import (
	"sync"

	"divan/replicator/endpoint"
	"divan/storage/memory"
)

// batch is changes that were read together.
type batch struct {
	rows []endpoint.Change
	hold memory.Hold  // of rows
	seq  endpoint.Seq // behind the last row
	n    int64        // rows that were read
	done bool
}

// watermark is how far a run has come.
//
//	I1. open holds, in the order of the feed, the first batch that is not
//	    done and everything behind it;
//	I2. every change up to through is on the target, or was refused for good;
//	I3. committed is the position of the newest checkpoint, never beyond through.
type watermark struct {
	mu        sync.Mutex
	open      []*batch
	through   endpoint.Seq
	committed endpoint.Seq
	changed   bool // a change has been read
	waiting   bool // a worker is about to write a checkpoint

	passed int64 // rows up to through
	marked int64 // those up to what reached returned last
	behind int64 // changes behind that position, as the source said; -1: unknown
	from   int64 // the rows that were passed there
}

// add takes a batch that has been read.
func (w *watermark) add(b *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.n = int64(len(b.rows))
	w.open = append(w.open, b)
	w.changed = w.changed || len(b.rows) > 0
}

// complete notes that a batch is done. begin: the caller has to see to a
// checkpoint.
func (w *watermark) complete(b *batch) (through endpoint.Seq, begin bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.done, b.rows = true, nil // others may wait long for one before them
	b.hold.Release()
	for len(w.open) > 0 && w.open[0].done {
		w.through = w.open[0].seq
		w.passed += w.open[0].n
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
	w.marked = w.passed
	return w.through, w.through != w.committed
}

// count notes how many changes are behind the position that reached returned last, and
// returns how many of them are still to do; -1: unknown.
func (w *watermark) count(behind int64) int64 {
	w.mu.Lock()
	w.behind, w.from = behind, w.marked
	w.mu.Unlock()
	return w.pending()
}

// pending returns how many changes are to do; -1: unknown. A filtered feed has fewer
// rows than changes, so that the next count may say less.
func (w *watermark) pending() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.behind < 0 {
		return -1
	}
	return max(0, w.behind-(w.passed-w.from))
}

// commit notes a checkpoint. It reports whether there is need for another one; if not, the caller
// is no longer the one that writes checkpoints.
func (w *watermark) commit(seq endpoint.Seq) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.committed = seq
	w.waiting = w.through != seq
	return w.waiting
}

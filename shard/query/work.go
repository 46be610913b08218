package query

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// What matching may take, as Work counts it.
const (
	// documentWork is for one document. The largest takes some ten milliseconds,
	// unless it is matched against hundreds of conditions or a costly pattern.
	documentWork = time.Second
	// requestWork is for all documents of a request, on one copy, of which each took
	// more than usualWork: a request that looks at many documents may take as
	// long as it likes.
	requestWork = 10 * time.Second
	usualWork   = 2 * time.Millisecond
	// turnWork is after how much the request's context is asked, and others get
	// their turn on the processor.
	turnWork = time.Millisecond
	// patience is how long a request may take before its documents of more than
	// smallWork wait at the gate, too.
	patience  = 100 * time.Millisecond
	smallWork = 100 * time.Microsecond
)

// The cost of what is counted, in nanoseconds.
const (
	conditionCost = 8
	perByte       = 1  // of a text that is scanned or compared
	setByte       = 4  // the same, made ready for $all
	keyByte       = 8  // the same, for its collation key
	perInst       = 20 // of a program, for each character: regexp takes 5 to 18
)

// Work is the state of matching, and bounds what that takes: the time of a document and of a request. It is
// estimated from what is looked at, so that the same documents give the same answer
// on a busy machine; only regular expressions are measured as well. A value belongs
// to one request, and is used by one goroutine.
type Work struct {
	ctx   context.Context
	gate  Gate
	now   func() time.Time // by which regular expressions are measured
	held  bool             // a place of gate
	spent time.Duration    // of all documents before
	heavy time.Duration    // of those that took more than is usual
	left  time.Duration    // for this document
	ask   time.Duration    // when so little is left the limits are looked at
	err   error            // why the document is given up

	slots   [][]byte // the values that the selector's slots have in the document
	scratch []byte   // holds a collation key
}

// Gate bounds how many documents that take more than usual are matched at the same
// time: the rest of the processors is left to other work. nil: no bound.
type Gate chan struct{}

// NewGate returns a gate of half the processors.
func NewGate(processors int) Gate { return make(Gate, max(1, processors/2)) }

// NewWork returns the work of a request; it ends with ctx.
func NewWork(ctx context.Context, g Gate) *Work { return &Work{ctx: ctx, gate: g, now: time.Now} }

// begin begins a document.
func (w *Work) begin() {
	w.left, w.ask, w.err = documentWork, documentWork-turnWork, nil
	if w.spent > patience {
		w.ask = documentWork - smallWork
	}
}

// pass waits for a place of the gate, unless this document has one.
func (w *Work) pass() bool {
	if w.held || w.gate == nil {
		return true
	}
	select {
	case w.gate <- struct{}{}:
		w.held = true
	case <-w.ctx.Done():
		w.err = w.ctx.Err()
	}
	return w.held
}

// leave gives that place back.
func (w *Work) leave() {
	if w.held {
		<-w.gate
		w.held = false
	}
}

// end ends it.
func (w *Work) end() error {
	took := documentWork - w.left
	w.spent += took
	if took > usualWork {
		w.heavy += took
	}
	return w.err
}

// take counts n nanoseconds, and reports whether to go on.
func (w *Work) take(n int) bool {
	w.left -= time.Duration(n)
	return w.left > w.ask || w.look()
}

// look looks at the limits.
func (w *Work) look() bool {
	switch {
	case w.err != nil:
	case w.left <= 0:
		w.err = expensive(fmt.Sprintf("matching one document takes more than %s", documentWork))
	case w.heavy+documentWork-w.left > requestWork:
		w.err = expensive(fmt.Sprintf("documents that take long to match took more than %s", requestWork))
	default:
		if w.err = w.ctx.Err(); w.err == nil {
			w.ask = w.left - turnWork
			runtime.Gosched()
			if documentWork-w.left <= usualWork && w.spent <= patience || w.pass() {
				return true
			}
		}
	}
	w.ask = documentWork // look again at the rest, which is little
	return false
}

func expensive(what string) error {
	return invalid("selector_too_expensive", "The selector is too expensive: "+what+
		". Use fewer conditions, simpler regular expressions, or an index.")
}

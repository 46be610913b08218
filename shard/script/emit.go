package script

import (
	"strconv"

	"modernc.org/libc"

	"divan/storage/fault"
)

// emitState says what a call of emit does.
type emitState int

const (
	emitNothing emitState = iota // no map function is running
	emitRows
	emitBusy // a row is being made
)

// taker takes what functions give of a document: Rows or Calls.
type taker interface{ Drop(fn int) }

// emitter takes what the functions of an index give, by emit() or by index(), to the taker of
// the document.
type emitter struct {
	realm   *realm
	encoder *encoder
	sandbox *sandbox
	reader  callReader

	taker   taker // nil: no functions are running
	rows    Rows  // it, when they are map functions
	calls   Calls // it, when they are index functions
	state   emitState
	fn      int    // the function that runs
	refused error  // why a row of that function was not taken
	emits   uint64 // rows of the document that is mapped
	// Outside of the functions of an index emit only says that there was one: in a filter
	// by a view, and in what a function has put off.
	onlyCount, emitted bool
}

// begin starts a function of an index.
func (e *emitter) begin(fn int) { e.fn, e.state, e.refused = fn, emitRows, nil }

// end ends it.
func (e *emitter) end() { e.state = emitNothing }

// counts reports whether a call only says that there was one, and notes it.
func (e *emitter) counts() bool {
	e.emitted = e.emitted || e.onlyCount
	return e.onlyCount
}

// nativeEmit is emit(key, value) of map functions.
func nativeEmit(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	if v.set.indexArguments > 0 {
		return undefined()
	}
	return v.emitter.emit(argument(argc, argv, 0), argument(argc, argv, 1))
}

// emit takes a row.
func (e *emitter) emit(key, val value) value {
	if e.counts() {
		return undefined()
	}
	switch e.state {
	case emitNothing:
		return undefined()
	case emitBusy: // a getter or toJSON of what is being emitted
		return e.realm.throw("emit is called while a row is made")
	case emitRows:
	}
	if e.refused != nil {
		return undefined()
	}
	e.state = emitBusy
	defer func() { e.state = emitRows }()
	start := e.encoder.mark()
	if !e.encoder.encodeOrNull(key) {
		return e.unwind(start)
	}
	middle := e.encoder.mark()
	if !e.encoder.encodeOrNull(val) {
		return e.unwind(start)
	}
	e.emits++
	e.refused = e.rows.Emit(e.fn, e.encoder.since(start)[:middle-start], e.encoder.since(middle))
	e.encoder.cut(start)
	return undefined()
}

// unwind drops what was written of a row whose encoding has thrown. That a row is
// too large is not for the script to catch: it would be lost.
func (e *emitter) unwind(to int) value {
	e.encoder.unwind(to)
	if e.encoder.overflow {
		return e.realm.abort(errRowTooLarge(e.encoder.limit))
	}
	return exceptionValue()
}

// errRowTooLarge is that of a row whose text goes beyond limit, what a VM may write.
func errRowTooLarge(limit int) error {
	return &fault.Error{Kind: fault.BadFunction, Code: "too_large", Reason: "The script emits a row of more than " + strconv.FormatInt(int64(limit)>>20, 10) + " MB."}
}

// nativeEmitted reports whether emit was called since it was last asked, for
// filters by a view, which emit no rows.
func nativeEmitted(_ *libc.TLS, ctx uintptr, _ value, _ int32, _ uintptr) value {
	e := &vmOf(ctx).emitter
	was := e.emitted
	e.onlyCount, e.emitted = true, false
	return boolean(was)
}

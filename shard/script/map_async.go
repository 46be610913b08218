package script

import (
	"slices"
	"unsafe"

	"go.uber.org/zap"
	"modernc.org/libc"
	lib "modernc.org/libquickjs"

	"divan/storage/fault"
)

// promised is a promise that a map function returned and that goes on later, as of
// an async function, or a rejected promise of a function that it called.
type promised struct {
	fn      int
	promise value
}

// returned takes what a map function has returned.
func (v *vm) returned(fn int, r value) {
	if isObject(r) && objectAt(addressOf(r)).Fclass_id == lib.EJS_CLASS_PROMISE && v.promiseAt(r) < 0 {
		v.promises = append(v.promises, promised{fn, r})
		return
	}
	v.free(r)
}

func (v *vm) promiseAt(promise value) int {
	return slices.IndexFunc(v.promises, func(p promised) bool { return addressOf(p.promise) == addressOf(promise) })
}

// maxRejections is how many unhandled promises of a document are watched.
const maxRejections = 16

// nativeRejected is told of promises that are rejected without a handler, and of
// rejected promises that get a handler later. A map function may call an async
// function whose promise it does not return: an error that ends that function, for
// want of stack, must be known.
func nativeRejected(_ *libc.TLS, ctx uintptr, promise, _ value, handled int32, _ uintptr) {
	v := vmOf(ctx)
	at := v.promiseAt(promise)
	switch {
	case v.host.taker == nil:
	case handled != 0 && at >= 0:
		v.free(v.promises[at].promise)
		v.promises = slices.Delete(v.promises, at, at+1)
	case handled == 0 && at < 0 && len(v.promises) < maxRejections:
		v.promises = append(v.promises, promised{v.host.fn, lib.XDupValue(v.tls, v.ctx, promise)})
	}
}

func rejectionPointer(f func(*libc.TLS, uintptr, value, value, int32, uintptr)) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

// settleMaps runs what the map functions of a document have put off. Rows come
// from what they do before they return: one that is emitted later, or a function
// that ends later for want of stack, would lose rows.
func (v *vm) settleMaps(document []byte) error {
	v.host.emitted = false
	v.settle()
	last := len(v.functions) - 1
	if err := v.stopped(); err != nil {
		return &FunctionError{last, err}
	}
	if v.host.emitted {
		if len(v.promises) > 0 {
			last = v.promises[0].fn
		}
		reason := "The script emits a row when its map function has returned already."
		if v.set.indexArguments > 0 {
			reason = "The script calls index when its function has returned already."
		}
		return &FunctionError{last, &fault.Error{Kind: fault.BadFunction, Code: "late_emit", Reason: reason}}
	}
	for _, p := range v.promises {
		if lib.XJS_PromiseState(v.tls, v.ctx, p.promise) != lib.EJS_PROMISE_REJECTED {
			continue
		}
		e := lib.XJS_PromiseResult(v.tls, v.ctx, p.promise)
		t := v.describe(e)
		v.free(e)
		if err := t.fatal(); err != nil {
			return &FunctionError{p.fn, err}
		}
		v.set.engine.o.Logger.Info(v.set.what()+" raised an exception after it had returned", zap.String("error", bounded(t.Error())), zap.String("document", documentID(document)))
	}
	return nil
}

func (v *vm) dropPromises() {
	for _, p := range v.promises {
		v.free(p.promise)
	}
	v.promises = v.promises[:0]
}

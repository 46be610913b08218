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
func (f *functions) returned(fn int, r value) {
	if isObject(r) && objectAt(addressOf(r)).Fclass_id == lib.EJS_CLASS_PROMISE && f.promiseAt(r) < 0 {
		f.promises = append(f.promises, promised{fn, r})
		return
	}
	f.realm.free(r)
}

func (f *functions) promiseAt(promise value) int {
	return slices.IndexFunc(f.promises, func(p promised) bool { return addressOf(p.promise) == addressOf(promise) })
}

// maxRejections is how many unhandled promises of a document are watched.
const maxRejections = 16

// nativeRejected is told of promises that are rejected without a handler, and of
// rejected promises that get a handler later. A map function may call an async
// function whose promise it does not return: an error that ends that function, for
// want of stack, must be known.
func nativeRejected(_ *libc.TLS, ctx uintptr, promise, _ value, handled int32, _ uintptr) {
	v := vmOf(ctx)
	if v.emitter.taker != nil {
		v.functions.rejected(v.emitter.fn, promise, handled != 0)
	}
}

// rejected takes a rejected promise of a function, and lets go of one that is handled.
func (f *functions) rejected(fn int, promise value, handled bool) {
	at := f.promiseAt(promise)
	switch {
	case handled && at >= 0:
		f.realm.free(f.promises[at].promise)
		f.promises = slices.Delete(f.promises, at, at+1)
	case !handled && at < 0 && len(f.promises) < maxRejections:
		f.promises = append(f.promises, promised{fn, f.realm.dup(promise)})
	}
}

func rejectionPointer(f func(*libc.TLS, uintptr, value, value, int32, uintptr)) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

// settle runs what the functions have put off for a document. Rows come
// from what they do before they return: one that is emitted later, or a function
// that ends later for want of stack, would lose rows.
func (m *MapVM) settle(document []byte) error {
	v, fs := m.vm, &m.vm.functions
	v.emitter.emitted = false
	v.settle()
	last := len(fs.made) - 1
	if err := v.limits.stopped(); err != nil {
		return &FunctionError{last, err}
	}
	if v.emitter.emitted {
		if len(fs.promises) > 0 {
			last = fs.promises[0].fn
		}
		reason := "The script emits a row when its map function has returned already."
		if v.set.indexArguments > 0 {
			reason = "The script calls index when its function has returned already."
		}
		return &FunctionError{last, &fault.Error{Kind: fault.BadFunction, Code: "late_emit", Reason: reason}}
	}
	for _, p := range fs.promises {
		if lib.XJS_PromiseState(v.realm.tls, v.realm.ctx, p.promise) != lib.EJS_PROMISE_REJECTED {
			continue
		}
		e := lib.XJS_PromiseResult(v.realm.tls, v.realm.ctx, p.promise)
		t := v.exceptions.describe(e)
		v.realm.free(e)
		if err := t.fatal(); err != nil {
			return &FunctionError{p.fn, err}
		}
		v.set.engine.o.Logger.Info(v.set.what()+" raised an exception after it had returned", zap.String("error", bounded(t.Error())), zap.String("document", documentID(document)))
	}
	return nil
}

func (f *functions) dropPromises() {
	for _, p := range f.promises {
		f.realm.free(p.promise)
	}
	f.promises = f.promises[:0]
}

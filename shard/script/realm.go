package script

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// realm is one QuickJS runtime with one context in it, and the operations on its values.
// It owns its heap; both end with close. A value that a method returns is the caller's,
// who frees it; arguments stay the caller's.
type realm struct {
	tls       *libc.TLS
	limits    *limits // of the call that runs
	heap      heap
	input     input
	rt, ctx   uintptr
	scratch   uintptr // two words, for results by pointer
	evaluator uintptr // the engine's function that compiles source
}

// open starts the engine with at most memory bytes. user is the address that vmOf finds.
// After an error the realm has to be closed.
func (r *realm) open(memory int64, user uintptr) error {
	r.tls = libc.NewTLS()
	r.heap.limits, r.input.heap = r.limits, &r.heap
	r.rt = newRuntime(r.tls, uintptr(unsafe.Pointer(&r.heap)))
	if r.rt == 0 {
		return errOutOfMemory
	}
	r.limitMemory(memory)
	r.ctx = lib.XJS_NewContext(r.tls, r.rt)
	r.scratch = r.heap.malloc(argSize)
	if r.ctx == 0 || r.scratch == 0 {
		return errOutOfMemory
	}
	r.evaluator = r.context().Feval_internal
	lib.XJS_SetContextOpaque(r.tls, r.ctx, user)
	lib.XJS_SetInterruptHandler(r.tls, r.rt, interruptPointer(interrupt), uintptr(unsafe.Pointer(r)))
	lib.XJS_SetHostPromiseRejectionTracker(r.tls, r.rt, rejectionPointer(nativeRejected), 0)
	return nil
}

// close frees the realm with its heap. All values of it have to be freed before.
func (r *realm) close() {
	if r.ctx != 0 {
		lib.XJS_FreeContext(r.tls, r.ctx)
	}
	if r.rt != 0 {
		lib.XJS_FreeRuntime(r.tls, r.rt)
	}
	r.heap.close()
	r.tls.Close()
}

// bytes is the memory that the engine has from the system.
func (r *realm) bytes() int64 {
	rt := (*lib.TJSRuntime)(pointer(r.rt))
	return int64(rt.Fmalloc_ctx.Fmalloc_state.Fmalloc_size) + int64(r.input.size)
}

// limitMemory lets the runtime have at most n bytes.
func (r *realm) limitMemory(n int64) { lib.XJS_SetMemoryLimit(r.tls, r.rt, libc.Tsize_t(n)) }

func (r *realm) context() *lib.TJSContext { return (*lib.TJSContext)(pointer(r.ctx)) }

// pollSoon makes the engine look at the clock soon.
func (r *realm) pollSoon() { r.context().Finterrupt_counter = r.limits.every }

// interrupt is called by the engine every pollEvery jumps: not zero ends the
// script, which cannot catch that.
func interrupt(_ *libc.TLS, _, opaque uintptr) int32 {
	r := (*realm)(pointer(opaque))
	if !r.limits.poll() {
		return 1
	}
	r.pollSoon()
	return 0
}

func interruptPointer(f func(*libc.TLS, uintptr, uintptr) int32) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

// call calls fn. exceptionValue is returned for an exception, which is pending.
func (r *realm) call(fn, this value, args ...value) value {
	size := len(args) * argSize
	argv := r.tls.Alloc(size)
	defer r.tls.Free(size)
	for i, a := range args {
		*(*value)(pointer(argv + uintptr(i)*argSize)) = a
	}
	r.pollSoon()
	return lib.XJS_Call(r.tls, r.ctx, fn, this, int32(len(args)), argv)
}

// eval runs a script and returns its completion value.
func (r *realm) eval(source, name string) (value, error) {
	return r.evaluate(source, name, lib.MJS_EVAL_TYPE_GLOBAL)
}

// evaluate gives the engine a source, even where functions may not evaluate source.
func (r *realm) evaluate(source, name string, flags int32) (value, error) {
	p, err := r.input.write([]byte(source + "\x00" + name))
	if err != nil {
		return exceptionValue(), err
	}
	was := r.context().Feval_internal != 0
	r.mayEvaluate(true)
	defer r.mayEvaluate(was)
	r.pollSoon()
	n := uintptr(len(source))
	return lib.XJS_Eval(r.tls, r.ctx, p, libc.Tsize_t(n), p+n+1, flags), nil
}

// run runs compiled source, which it takes, and returns its completion value.
func (r *realm) run(code value) value { return lib.XJS_EvalFunction(r.tls, r.ctx, code) }

// mayEvaluate says whether source is taken: eval and Function throw a TypeError when it
// is not. That is QuickJS's own way of leaving them out.
func (r *realm) mayEvaluate(on bool) {
	r.context().Feval_internal = 0
	if on {
		r.context().Feval_internal = r.evaluator
	}
}

// runJobs runs what scripts have put off (promises), until the call has to end.
func (r *realm) runJobs() {
	list := &(*lib.TJSRuntime)(pointer(r.rt)).Fjob_list
	for list.Fnext != uintptr(unsafe.Pointer(list)) && !r.limits.overdue() {
		if lib.XJS_ExecutePendingJob(r.tls, r.rt, r.scratch) < 0 {
			r.dropException()
		}
	}
}

// parse makes a value of JSON text.
func (r *realm) parse(text []byte) (value, error) {
	p, err := r.input.write(text)
	if err != nil {
		return exceptionValue(), err
	}
	return lib.XJS_ParseJSON(r.tls, r.ctx, p, libc.Tsize_t(len(text)), p+uintptr(len(text))), nil
}

// text is a string value as UTF-8, lone surrogates replaced by U+FFFD.
func (r *realm) text(x value) (string, bool) {
	p := lib.XJS_ToCStringLen2(r.tls, r.ctx, r.scratch, x, 0)
	if p == 0 {
		return "", false
	}
	n := *(*uintptr)(pointer(r.scratch))
	s := validText(unsafe.Slice((*byte)(pointer(p)), n))
	lib.XJS_FreeCString(r.tls, r.ctx, p)
	return s, true
}

// newText makes a string.
func (r *realm) newText(s string) value {
	p, err := r.input.write([]byte(s))
	if err != nil {
		return r.abort(err)
	}
	return lib.XJS_NewStringLen(r.tls, r.ctx, p, libc.Tsize_t(len(s)))
}

// newAtom makes an atom of a name, which freeAtom frees.
func (r *realm) newAtom(name string) (lib.TJSAtom, error) {
	p, err := r.input.write([]byte(name))
	if err != nil {
		return 0, err
	}
	return lib.XJS_NewAtomLen(r.tls, r.ctx, p, libc.Tsize_t(len(name))), nil
}

func (r *realm) freeAtom(atom lib.TJSAtom) { lib.XJS_FreeAtom(r.tls, r.ctx, atom) }

// property reads a member of an object.
func (r *realm) property(x value, name string) value {
	p, err := r.input.write([]byte(name))
	if err != nil {
		return exceptionValue()
	}
	return lib.XJS_GetPropertyStr(r.tls, r.ctx, x, p)
}

// member reads the member of an object that an atom names.
func (r *realm) member(x value, atom lib.TJSAtom) value {
	return lib.XJS_GetPropertyInternal(r.tls, r.ctx, x, atom, x, 0)
}

// element reads element i of an array.
func (r *realm) element(x value, i uint32) value {
	return lib.XJS_GetPropertyUint32(r.tls, r.ctx, x, i)
}

func (r *realm) isFunction(x value) bool {
	return isObject(x) && lib.XJS_IsFunction(r.tls, r.ctx, x) != 0
}

func (r *realm) free(x value) { lib.XFreeValue(r.tls, r.ctx, x) }

// dup returns x once more, for another owner.
func (r *realm) dup(x value) value { return lib.XDupValue(r.tls, r.ctx, x) }

// throw makes message the pending exception, an Error of the engine's.
func (r *realm) throw(message string) value {
	p, err := r.input.write(append([]byte("%s\x00"), message...))
	if err != nil {
		return exceptionValue()
	}
	bp := r.tls.Alloc(argSize)
	defer r.tls.Free(argSize)
	return lib.XJS_ThrowInternalError(r.tls, r.ctx, p, libc.VaList(bp, p+3))
}

// abort ends the script that has called a native, which cannot catch it.
func (r *realm) abort(err error) value {
	r.limits.halt(err)
	r.throw("aborted")
	lib.XJS_SetUncatchableException(r.tls, r.ctx, 1)
	return exceptionValue()
}

// dropException forgets the pending exception.
func (r *realm) dropException() { r.free(lib.XJS_GetException(r.tls, r.ctx)) }

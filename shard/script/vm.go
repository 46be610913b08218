package script

import (
	"errors"
	"runtime"
	"time"
	"unsafe"

	"go.uber.org/zap"
	"modernc.org/libc"
	lib "modernc.org/libquickjs"
	allocator "modernc.org/memory"

	"divan/storage/fault"
)

// value is a JavaScript value. A value that a function of the engine returns
// is owned by the caller, who frees it; arguments stay the caller's.
type value = lib.TJSValue

// vm is one JavaScript engine: a heap and a context in it, outside of Go's
// memory. It is for one goroutine at a time.
type vm struct {
	tls     *libc.TLS
	heap    allocator.Allocator
	large   bool // a large block was freed since the last trim
	rt, ctx uintptr
	scratch uintptr // two words, for results by pointer
	in      uintptr // text on its way in; ends with a NUL
	inCap   int
	pin     runtime.Pinner // the engine knows the address of this vm
	watch
	tenancy
	known
	sources
	intrinsics intrinsics
	globals    globals

	api value // what the sandbox's script gives to Go

	joined []byte    // texts that are put together on their way in
	out    []byte    // texts on their way out
	path   []uintptr // the objects around the one that is being encoded
	host   host
}

// known holds the values of a context that Go needs.
type known struct {
	evaluator     uintptr // what it compiles source with
	toJSON        lib.TJSAtom
	length        lib.TJSAtom
	options       [4]lib.TJSAtom // of index(), as optionNames has them
	guarded       []guard
	object, array prototype
	analysed      bool // the functions have the form that analyse assumed
}

// sources are the sources that users wrote, and the values made of them.
type sources struct {
	programs  []program          // of an index
	functions []value            // made of them for this use of the vm
	promises  []promised         // which those returned for a document
	compiled  map[string]program // of a design document, by path, and of modules, by id
}

// watch limits a call, and says why it was ended.
type watch struct {
	done     caller
	deadline time.Time
	halted   error
	starved  bool // memory was refused
	polled   time.Time
	every    int32 // steps from one look at the clock to the next
}

// tenancy is the Engine's state of a vm; guarded by its lock while the vm is
// idle.
type tenancy struct {
	set         *functionSet
	room        room   // for a large document
	lease       *lease // while it is used
	accounted   int64  // bytes, in the figures
	parkedBytes int64  // guarded by parked.mu
	idleSince   time.Time
}

// host is the state of the functions that scripts call.
type host struct {
	outLimit int  // bytes of out
	overflow bool // out went beyond its limit
	encoded  uint // values
	emit     emitState
	refused  error  // why a row of the function that runs was not taken
	taker    taker  // of what the functions of an index give; nil: none are running
	rows     Rows   // it, when they are map functions
	calls    Calls  // it, when they are index functions
	call     Call   // the one that is read
	fn       int    // the one that runs
	emits    uint64 // rows of the document that is mapped
	// A filter by a view: emit only says that there was one.
	onlyCount, emitted bool
	list               *listing
	touched            bool // the sandbox's script has to forget something
}

// emitState says what a call of emit does.
type emitState int

const (
	emitNothing emitState = iota // no map function is running
	emitRows
	emitBusy // a row is being made
)

const (
	argSize    = 16      // bytes of a value
	keepBuffer = 1 << 20 // buffers beyond it are given back after the call
	// pollEvery is how many jumps and calls lie between two looks at the clock,
	// at most. The engine's own 10,000 would be minutes for a script whose every
	// step takes as long as its memory allows.
	pollEvery = 25
	// slowStep is the time between two looks from which on each step is watched.
	slowStep = 5 * time.Millisecond
)

var (
	errOutOfMemory = errors.New("out of memory")
	errDeadline    = errors.New("deadline")
)

// newVM starts an engine with at most memory bytes.
func newVM(memory int64) (*vm, error) {
	v := &vm{tls: libc.NewTLS()}
	v.pin.Pin(v)
	self := uintptr(unsafe.Pointer(v))
	v.rt = newRuntime(v.tls, self)
	if v.rt == 0 {
		v.close()
		return nil, errOutOfMemory
	}
	lib.XJS_SetMemoryLimit(v.tls, v.rt, libc.Tsize_t(memory))
	v.ctx = lib.XJS_NewContext(v.tls, v.rt)
	v.scratch = v.malloc(argSize)
	if v.ctx == 0 || v.scratch == 0 {
		v.close()
		return nil, errOutOfMemory
	}
	v.evaluator = v.context().Feval_internal
	lib.XJS_SetContextOpaque(v.tls, v.ctx, self)
	lib.XJS_SetInterruptHandler(v.tls, v.rt, interruptPointer(interrupt), self)
	lib.XJS_SetHostPromiseRejectionTracker(v.tls, v.rt, rejectionPointer(nativeRejected), 0)
	if err := v.atoms(); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

func (v *vm) atoms() error {
	atoms := map[string]*lib.TJSAtom{"toJSON": &v.toJSON, "length": &v.length}
	for i, name := range optionNames() {
		atoms[name] = &v.options[i]
	}
	for name, atom := range atoms {
		p, err := v.input([]byte(name))
		if err != nil {
			return err
		}
		*atom = lib.XJS_NewAtomLen(v.tls, v.ctx, p, libc.Tsize_t(len(name)))
	}
	return nil
}

// close frees everything. Values of this vm must not be used any more.
func (v *vm) close() {
	if v.ctx != 0 {
		v.dropFunctions()
		for _, p := range v.programs {
			v.free(p.code)
		}
		for _, p := range v.compiled {
			v.free(p.code)
		}
		v.letGo()
		v.free(v.api)
		lib.XJS_FreeAtom(v.tls, v.ctx, v.toJSON)
		lib.XJS_FreeAtom(v.tls, v.ctx, v.length)
		for _, atom := range v.options {
			lib.XJS_FreeAtom(v.tls, v.ctx, atom)
		}
		lib.XJS_FreeContext(v.tls, v.ctx)
	}
	if v.rt != 0 {
		lib.XJS_FreeRuntime(v.tls, v.rt)
	}
	_ = v.heap.Close() // memory that the machine does not take back is lost
	v.tls.Close()
	v.pin.Unpin()
	*v = vm{}
}

// bytes is the memory that the engine has from the system.
func (v *vm) bytes() int64 {
	rt := (*lib.TJSRuntime)(pointer(v.rt))
	return int64(rt.Fmalloc_ctx.Fmalloc_state.Fmalloc_size) + int64(v.inCap) + int64(cap(v.out))
}

// pollSoon makes the engine look at the clock soon.
func (v *vm) pollSoon() { v.context().Finterrupt_counter = v.every }

// begin starts a call that has to be over by the deadline, and ends with ctx.
func (v *vm) begin(ctx caller, timeout time.Duration) {
	now := time.Now()
	v.watch = watch{done: ctx, deadline: now.Add(timeout), starved: v.starved, polled: now, every: pollEvery}
	v.host.overflow, v.host.onlyCount = false, false
	v.host.outLimit = int(v.set.engine.o.Memory)
	v.mayEvaluate(v.set.engine.o.Eval())
	v.path = v.path[:0]
}

// interrupt is asked by the engine every pollEvery jumps: not zero ends the
// script, which cannot catch that.
func interrupt(_ *libc.TLS, _, opaque uintptr) int32 {
	v := vmAt(opaque)
	if v.overdue() {
		return 1
	}
	// Steps that take long are counted one by one.
	now := time.Now()
	if v.lease.turn.Wanted(now) {
		if v.yield(now); v.halted != nil {
			return 1
		}
		now = time.Now()
		v.polled = now
	}
	v.every = min(2*v.every+1, pollEvery)
	if now.Sub(v.polled) > slowStep {
		v.every = 1
	}
	v.polled = now
	v.pollSoon()
	return 0
}

// call calls fn. The result is the caller's; exception reports one that is
// pending.
func (v *vm) call(fn, this value, args ...value) value {
	size := len(args) * argSize
	argv := v.tls.Alloc(size)
	defer v.tls.Free(size)
	for i, a := range args {
		*(*value)(pointer(argv + uintptr(i)*argSize)) = a
	}
	v.pollSoon()
	return lib.XJS_Call(v.tls, v.ctx, fn, this, int32(len(args)), argv)
}

// eval runs a script and returns its completion value.
func (v *vm) eval(source, name string) (value, error) {
	p, err := v.input(append([]byte(source), append([]byte{0}, name...)...))
	if err != nil {
		return exceptionValue(), err
	}
	n := uintptr(len(source))
	return v.evaluate(p, n, p+n+1, lib.MJS_EVAL_TYPE_GLOBAL), nil
}

// evaluate gives the engine n bytes of source at p, even where functions may
// not evaluate source.
func (v *vm) evaluate(p, n, name uintptr, flags int32) value {
	was := v.context().Feval_internal != 0
	v.mayEvaluate(true)
	defer v.mayEvaluate(was)
	v.pollSoon()
	return lib.XJS_Eval(v.tls, v.ctx, p, libc.Tsize_t(n), name, flags)
}

// mayEvaluate says whether source is taken: eval and Function throw a TypeError when it
// is not. That is QuickJS's own way of leaving them out.
func (v *vm) mayEvaluate(on bool) {
	v.context().Feval_internal = 0
	if on {
		v.context().Feval_internal = v.evaluator
	}
}

func (v *vm) context() *lib.TJSContext { return (*lib.TJSContext)(pointer(v.ctx)) }

// parse makes a value of JSON text.
func (v *vm) parse(text []byte) (value, error) {
	p, err := v.input(text)
	if err != nil {
		return exceptionValue(), err
	}
	return lib.XJS_ParseJSON(v.tls, v.ctx, p, libc.Tsize_t(len(text)), p+uintptr(len(text))), nil
}

// input copies text to where the engine can read it, with a NUL behind it.
func (v *vm) input(text []byte) (uintptr, error) {
	if need := len(text) + 1; need > v.inCap {
		need = max(need+need/4, 4<<10)
		v.mfree(v.in)
		if v.in = v.malloc(need); v.in == 0 {
			v.inCap = 0
			return 0, errOutOfMemory
		}
		v.inCap = need
	}
	copy(unsafe.Slice((*byte)(pointer(v.in)), v.inCap), text)
	*(*byte)(pointer(v.in + uintptr(len(text)))) = 0
	return v.in, nil
}

// settle runs what scripts have put off (promises), which otherwise would pile
// up. No call waits for it, so it cannot emit.
func (v *vm) settle() {
	v.host.onlyCount = true
	list := &(*lib.TJSRuntime)(pointer(v.rt)).Fjob_list
	for list.Fnext != uintptr(unsafe.Pointer(list)) && !v.overdue() {
		if lib.XJS_ExecutePendingJob(v.tls, v.rt, v.scratch) < 0 {
			v.free(lib.XJS_GetException(v.tls, v.ctx))
		}
	}
	v.host.onlyCount = false
}

// endUse has nothing of this use reach the next. It is false when something would.
// The sandbox's script forgets when all that is built in is known to be as it was:
// what a function has put in the place of an iterator would run there.
func (v *vm) endUse() bool {
	v.dropFunctions()
	if v.stopped() != nil {
		return true // it is thrown away for that
	}
	if !v.restoreGlobals() || !v.intrinsics.untouched() {
		return false
	}
	if !v.host.touched {
		return true
	}
	v.host.touched = false
	r := v.invoke("forget")
	if isException(r) {
		v.free(lib.XJS_GetException(v.tls, v.ctx))
		return false
	}
	v.free(r)
	return true
}

func (v *vm) dropFunctions() {
	for _, f := range v.functions {
		v.free(f)
	}
	v.functions = v.functions[:0]
}

// rest ends a call: buffers that one large document has left are given back.
func (v *vm) rest() {
	v.leaveRoom()
	v.done = nil

	if v.inCap > keepBuffer {
		v.mfree(v.in)
		v.in, v.inCap = 0, 0
	}
	if cap(v.out) > keepBuffer {
		v.out = nil
	}
	if cap(v.joined) > keepBuffer {
		v.joined = nil
	}
}

func (v *vm) free(x value) { lib.XFreeValue(v.tls, v.ctx, x) }

// text is a string value as UTF-8, lone surrogates replaced by U+FFFD.
func (v *vm) text(x value) (string, bool) {
	p := lib.XJS_ToCStringLen2(v.tls, v.ctx, v.scratch, x, 0)
	if p == 0 {
		return "", false
	}
	n := *(*uintptr)(pointer(v.scratch))
	s := validText(unsafe.Slice((*byte)(pointer(p)), n))
	lib.XJS_FreeCString(v.tls, v.ctx, p)
	return s, true
}

// setProperty sets a member of an object to a new value, which it takes.
func (v *vm) setProperty(x value, name string, to value) bool {
	if isException(to) {
		return false
	}
	p, err := v.input([]byte(name))
	if err != nil {
		v.free(to)
		return false
	}
	return lib.XJS_SetPropertyStr(v.tls, v.ctx, x, p, to) >= 0
}

// property reads a member of an object.
func (v *vm) property(x value, name string) value {
	p, err := v.input([]byte(name))
	if err != nil {
		return exceptionValue()
	}
	return lib.XJS_GetPropertyStr(v.tls, v.ctx, x, p)
}

// throw makes message the pending exception, an Error of that class.
func (v *vm) throw(message string) value {
	p, err := v.input(append([]byte("%s\x00"), message...))
	if err != nil {
		return exceptionValue()
	}
	bp := v.tls.Alloc(argSize)
	defer v.tls.Free(argSize)
	return lib.XJS_ThrowInternalError(v.tls, v.ctx, p, libc.VaList(bp, p+3))
}

// contain ends the script when a native panics: the frames of the engine below
// it must not be left behind.
func (v *vm) contain(result *value) {
	if r := recover(); r != nil {
		v.set.engine.o.Logger.Error("a native function of scripts panicked", zap.Any("panic", r), zap.Stack("stack"))
		*result = v.abort(fault.New(fault.Internal, "a native function of scripts panicked"))
	}
}

// abort ends the script that has called a native, which cannot catch it.
func (v *vm) abort(err error) value {
	if v.halted == nil {
		v.halted = err
	}
	v.throw("aborted")
	lib.XJS_SetUncatchableException(v.tls, v.ctx, 1)
	return exceptionValue()
}

func undefined() value      { return value{Ftag: lib.EJS_TAG_UNDEFINED} }
func null() value           { return value{Ftag: lib.EJS_TAG_NULL} }
func exceptionValue() value { return value{Ftag: lib.EJS_TAG_EXCEPTION} }
func boolean(b bool) value {
	x := value{Ftag: lib.EJS_TAG_BOOL}
	if b {
		*(*int32)(unsafe.Pointer(&x)) = 1
	}
	return x
}

func isException(x value) bool { return int32(x.Ftag) == lib.EJS_TAG_EXCEPTION }
func isObject(x value) bool    { return int32(x.Ftag) == lib.EJS_TAG_OBJECT }

// argument is argument i of a call from a script.
func argument(argc int32, argv uintptr, i int32) value {
	if i >= argc {
		return undefined()
	}
	return *(*value)(pointer(argv + uintptr(i)*argSize))
}

// pointer turns an address in the engine's memory, or one that is pinned, into
// a pointer. The indirection is for the checks of unsafe conversions, which
// know only Go's own memory.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// vmAt is the vm at an address that newVM gave to the engine, which pins it.
func vmAt(opaque uintptr) *vm { return (*vm)(pointer(opaque)) }

// vmOf is the vm of a context.
func vmOf(ctx uintptr) *vm { return vmAt((*lib.TJSContext)(pointer(ctx)).Fuser_opaque) }

// native is a function that scripts can call. It must be a function of the
// package: the engine keeps its address, of which the collector knows nothing.
type native func(tls *libc.TLS, ctx uintptr, this value, argc int32, argv uintptr) value

func nativePointer(f native) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func interruptPointer(f func(*libc.TLS, uintptr, uintptr) int32) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

// newFunction makes a function value of a native.
func (v *vm) newFunction(name string, f native, length int32) value {
	p, err := v.input([]byte(name))
	if err != nil {
		return exceptionValue()
	}
	return lib.XJS_NewCFunction2(v.tls, v.ctx, nativePointer(f), p, length, lib.EJS_CFUNC_generic, 0)
}

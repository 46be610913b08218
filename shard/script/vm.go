package script

import (
	"runtime"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// vm is one JavaScript engine: a realm, and the parts that run functions in it. It is for
// one goroutine at a time.
//
// The parts refer to each other by address, and the engine knows those of the vm, of its
// realm and of its heap: a vm is pinned, and never copied. Each part frees the values that
// it holds in its close, before the realm closes.
type vm struct {
	pin runtime.Pinner
	tenancy
	limits     limits
	realm      realm
	sandbox    sandbox
	encoder    encoder
	exceptions exceptions
	compiler   compiler
	guards     guards
	intrinsics intrinsics
	globals    globals
	functions  functions // of an index
	emitter    emitter   // of what those give
	list       *listing  // the list function that runs
	joined     []byte    // texts that are put together on their way in
}

// tenancy is the Engine's state of a vm; guarded by its lock while the vm is
// idle.
type tenancy struct {
	set         *functionSet
	allowance   allowance // for a large document
	lease       *lease    // while it is used
	accounted   int64     // bytes, in the figures
	parkedBytes int64     // guarded by parked.mu
	idleSince   time.Time
}

// newVM starts an engine with at most memory bytes.
func newVM(memory int64) (*vm, error) {
	v := &vm{}
	v.pin.Pin(v)
	v.connect()
	if err := v.open(memory); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// connect has the parts know each other.
func (v *vm) connect() {
	r := &v.realm
	r.limits = &v.limits
	v.sandbox.realm, v.sandbox.exceptions = r, &v.exceptions
	v.encoder.realm = r
	v.exceptions = exceptions{r, &v.sandbox, &v.encoder}
	v.compiler.realm, v.compiler.exceptions = r, &v.exceptions
	v.guards.realm, v.guards.exceptions = r, &v.exceptions
	v.intrinsics.realm, v.intrinsics.sandbox = r, &v.sandbox
	v.globals.realm = r
	v.functions.realm, v.functions.compiler, v.functions.sandbox = r, &v.compiler, &v.sandbox
	v.emitter.realm, v.emitter.encoder, v.emitter.sandbox = r, &v.encoder, &v.sandbox
	v.emitter.reader.realm, v.emitter.reader.encoder = r, &v.encoder
}

// open starts the realm, and what the parts need of it.
func (v *vm) open(memory int64) error {
	if err := v.realm.open(memory, uintptr(unsafe.Pointer(v))); err != nil {
		return err
	}
	if err := v.encoder.open(); err != nil {
		return err
	}
	if err := v.guards.open(); err != nil {
		return err
	}
	return v.emitter.reader.open()
}

// close frees everything. Values of this vm must not be used any more.
func (v *vm) close() {
	if v.realm.ctx != 0 {
		v.functions.close()
		v.compiler.close()
		v.intrinsics.letGo()
		v.globals.letGo()
		v.sandbox.close()
		v.encoder.close()
		v.guards.close()
		v.emitter.reader.close()
	}
	v.realm.close()
	v.pin.Unpin()
	*v = vm{}
}

// use gives the vm to a use of a set's functions.
func (v *vm) use(s *functionSet, l *lease) {
	v.set, v.lease, v.limits.turn, l.slot.Holder = s, l, &l.turn, v
}

// leave takes the lease of the use away.
func (v *vm) leave() { v.lease, v.limits.turn = nil, nil }

// bytes is the memory that the vm has from the system.
func (v *vm) bytes() int64 {
	return v.realm.bytes() + int64(cap(v.encoder.out)) + int64(cap(v.emitter.reader.texts))
}

// begin starts a call that has to be over by the deadline, and ends with ctx.
func (v *vm) begin(ctx caller, timeout time.Duration) {
	o := &v.set.engine.o
	v.limits.begin(ctx, timeout)
	v.encoder.begin(int(o.Memory))
	v.emitter.onlyCount, v.emitter.reader.limit = false, int(o.Memory)
	v.realm.mayEvaluate(o.Eval())
}

// settle runs what scripts have put off (promises), which otherwise would pile
// up. No call waits for it, so it cannot emit.
func (v *vm) settle() {
	v.emitter.onlyCount = true
	v.realm.runJobs()
	v.emitter.onlyCount = false
}

// endUse has nothing of this use reach the next. It is false when something would.
// The sandbox's script forgets when all that is built in is known to be as it was:
// what a function has put in the place of an iterator would run there.
func (v *vm) endUse() bool {
	v.functions.drop()
	if v.limits.stopped() != nil {
		return true // it is thrown away for that
	}
	return v.globals.restore() && v.intrinsics.untouched() && v.sandbox.forget()
}

// rest ends a call: buffers that one large document has left are given back.
func (v *vm) rest() {
	v.returnAllowance()
	v.limits.done = nil
	v.realm.input.shrink()
	v.encoder.shrink()
	v.emitter.reader.shrink()
	if cap(v.joined) > keepBuffer {
		v.joined = nil
	}
	v.realm.heap.trim()
}

// contain ends the script when a native panics: the frames of the engine below
// it must not be left behind.
func (v *vm) contain(result *value) {
	if r := recover(); r != nil {
		v.set.engine.o.Logger.Error("a native function of scripts panicked", zap.Any("panic", r), zap.Stack("stack"))
		*result = v.realm.abort(fault.New(fault.Internal, "a native function of scripts panicked"))
	}
}

package script

import (
	_ "embed" // the script of the sandbox
	"slices"
	"unicode/utf8"
	"unsafe"

	"go.uber.org/zap"
	"modernc.org/libc"
	lib "modernc.org/libquickjs"

	"divan/storage/fault"
)

//go:embed prelude.js
var prelude string

// maxLogLine is how much of one message of a script is logged, in bytes.
const maxLogLine = 2 << 10

// sandbox is the script that gives a realm what other scripts expect to find there.
type sandbox struct {
	realm      *realm
	exceptions *exceptions
	api        value // what it gives to Go
	touched    bool  // it holds something of this use, which it has to forget
}

// setUp gives a new vm what scripts expect to find there.
func (v *vm) setUp() error {
	v.realm.pollSoon()
	if err := v.guards.install(); err != nil {
		return err
	}
	code, err := v.preludeCode()
	if err != nil {
		return err
	}
	if err := v.sandbox.start(code, v.set.indexArguments > 0); err != nil {
		return err
	}
	if !v.intrinsics.lockdown() {
		return v.exceptions.failed()
	}
	v.globals.note()
	v.encoder.watch()
	return nil
}

// preludeCode is the compiled script of the sandbox. The first VM of the engine
// compiles it: that takes as long as all else of a start together.
func (v *vm) preludeCode() (value, error) {
	r, e := &v.realm, v.set.engine
	if text := e.prelude.Load(); text != nil {
		p, err := r.input.write(*text)
		if err != nil {
			return exceptionValue(), err
		}
		code := lib.XJS_ReadObject(r.tls, r.ctx, p, libc.Tsize_t(len(*text)), lib.MJS_READ_OBJ_BYTECODE)
		if isException(code) {
			return code, v.exceptions.failed()
		}
		return code, nil
	}
	code, err := v.compiler.compileOnly(prelude)
	if err != nil {
		return exceptionValue(), err
	}
	if isException(code) {
		return code, v.exceptions.failed()
	}
	p := lib.XJS_WriteObject(r.tls, r.ctx, r.scratch, code, lib.MJS_WRITE_OBJ_BYTECODE)
	if p == 0 {
		r.free(code)
		return exceptionValue(), v.exceptions.failed()
	}
	defer lib.Xjs_free(r.tls, r.ctx, p)
	text := slices.Clone(unsafe.Slice((*byte)(pointer(p)), *(*uintptr)(pointer(r.scratch))))
	e.prelude.Store(&text)
	return code, nil
}

// start runs the sandbox's script, whose compiled code it takes. index says whether scripts
// have index().
func (s *sandbox) start(code value, index bool) error {
	install := s.realm.run(code)
	if isException(install) {
		return s.exceptions.failed()
	}
	defer s.realm.free(install)
	host := lib.XJS_NewObject(s.realm.tls, s.realm.ctx)
	defer s.realm.free(host)
	for _, f := range []struct {
		name   string
		f      native
		length int32
	}{
		{"emit", nativeEmit, 2},
		{"index", nativeIndex, 2},
		{"emitted", nativeEmitted, 0},
		{"log", nativeLog, 1},
		{"module", nativeModule, 2},
		{"touched", nativeTouched, 0},
		{"start", nativeStart, 1},
		{"send", nativeSend, 1},
		{"row", nativeRow, 0},
	} {
		if f.name == "index" && !index {
			continue
		}
		if !s.define(host, f.name, f.f, f.length) {
			return s.exceptions.failed()
		}
	}
	s.api = s.realm.call(install, undefined(), host)
	if isException(s.api) {
		return s.exceptions.failed()
	}
	return nil
}

// define gives an object a member that is a native. It is false when an exception is
// pending.
func (s *sandbox) define(host value, name string, f native, length int32) bool {
	r := s.realm
	p, err := r.input.write([]byte(name))
	if err != nil {
		return false
	}
	x := lib.XJS_NewCFunction2(r.tls, r.ctx, nativePointer(f), p, length, lib.EJS_CFUNC_generic, 0)
	if isException(x) {
		return false
	}
	if p, err = r.input.write([]byte(name)); err != nil {
		r.free(x)
		return false
	}
	return lib.XJS_SetPropertyStr(r.tls, r.ctx, host, p, x) >= 0 // which takes x
}

// close frees what the script gave to Go.
func (s *sandbox) close() { s.realm.free(s.api) }

// member is a member of what the script gives to Go.
func (s *sandbox) member(name string) value { return s.realm.property(s.api, name) }

// invoke calls a function of the script.
func (s *sandbox) invoke(name string, args ...value) value {
	f := s.member(name)
	if isException(f) {
		return f
	}
	defer s.realm.free(f)
	return s.realm.call(f, undefined(), args...)
}

// load gives the script a design document as JSON text: functions have it as "this", and
// modules come from it.
func (s *sandbox) load(ddoc []byte) error {
	x, err := s.realm.parse(ddoc)
	if err != nil {
		return err
	}
	if isException(x) {
		return s.exceptions.err()
	}
	defer s.realm.free(x)
	return s.apply("load", x)
}

// seal makes x and all that is in it read-only.
func (s *sandbox) seal(x value) error { return s.apply("seal", x) }

// apply calls a function of the script that returns nothing.
func (s *sandbox) apply(name string, x value) error {
	r := s.invoke(name, x)
	if isException(r) {
		return s.exceptions.err()
	}
	s.realm.free(r)
	return nil
}

// forget has the script let go of what it holds of this use. It is false when it cannot.
func (s *sandbox) forget() bool {
	if !s.touched {
		return true
	}
	s.touched = false
	r := s.invoke("forget")
	if isException(r) {
		s.realm.dropException()
		return false
	}
	s.realm.free(r)
	return true
}

// nativeModule makes a function of a module, by its id and its source, which is
// compiled once.
func nativeModule(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	id, ok := v.realm.text(argument(argc, argv, 0))
	if !ok {
		return exceptionValue()
	}
	id = "\x00" + id // no path of a function
	p, known := v.compiler.kept[id]
	var err error
	if !known {
		source, ok := v.realm.text(argument(argc, argv, 1))
		if !ok {
			return exceptionValue()
		}
		if p, err = v.compiler.compile("function (module, exports, require) { " + source + "\n }"); err == nil {
			v.compiler.keep(id, p)
		}
	}
	v.sandbox.touched = true
	if err == nil {
		var f value
		if f, err = v.compiler.function(&p); err == nil {
			return f
		}
	}
	if stopped := v.limits.stopped(); stopped != nil {
		return v.realm.abort(stopped)
	}
	return v.realm.throw(fault.Reason(err))
}

// nativeTouched notes that the sandbox's script holds something of this use.
func nativeTouched(_ *libc.TLS, ctx uintptr, _ value, _ int32, _ uintptr) value {
	vmOf(ctx).sandbox.touched = true
	return undefined()
}

// nativeLog is log(message).
func nativeLog(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	s, ok := v.realm.text(argument(argc, argv, 0))
	if !ok {
		return exceptionValue()
	}
	v.set.engine.o.Logger.Info("message of a script", zap.String("message", bounded(s)))
	return undefined()
}

// bounded cuts a text to what is logged of it.
func bounded(s string) string {
	if len(s) <= maxLogLine {
		return s
	}
	s = s[:maxLogLine]
	for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s + "…"
}

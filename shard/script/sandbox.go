package script

import (
	_ "embed" // the script of the sandbox
	"errors"
	"fmt"
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

// sandbox gives a new context what scripts expect to find there.
func (v *vm) sandbox() error {
	v.pollSoon()
	if err := v.guards(); err != nil {
		return err
	}
	code, err := v.preludeCode()
	if err != nil {
		return err
	}
	make := lib.XJS_EvalFunction(v.tls, v.ctx, code) // which frees the code
	if isException(make) {
		return v.failed()
	}
	defer v.free(make)
	host := lib.XJS_NewObject(v.tls, v.ctx)
	defer v.free(host)
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
		if f.name == "index" && v.set.indexArguments == 0 {
			continue
		}
		if !v.setProperty(host, f.name, v.newFunction(f.name, f.f, f.length)) {
			return v.failed()
		}
	}
	v.api = v.call(make, undefined(), host)
	if isException(v.api) {
		return v.failed()
	}
	if !v.lockdown() {
		return v.failed()
	}
	v.object, v.array = v.prototypeOf(lib.EJS_CLASS_OBJECT), v.prototypeOf(lib.EJS_CLASS_ARRAY)
	return nil
}

// preludeCode is the compiled script of the sandbox. The first VM of the engine
// compiles it: that takes as long as all else of a start together.
func (v *vm) preludeCode() (value, error) {
	e := v.set.engine
	if text := e.prelude.Load(); text != nil {
		p, err := v.input(*text)
		if err != nil {
			return exceptionValue(), err
		}
		code := lib.XJS_ReadObject(v.tls, v.ctx, p, libc.Tsize_t(len(*text)), lib.MJS_READ_OBJ_BYTECODE)
		if isException(code) {
			return code, v.failed()
		}
		return code, nil
	}
	code, err := v.compileOnly(prelude)
	if err != nil {
		return exceptionValue(), err
	}
	if isException(code) {
		return code, v.failed()
	}
	p := lib.XJS_WriteObject(v.tls, v.ctx, v.scratch, code, lib.MJS_WRITE_OBJ_BYTECODE)
	if p == 0 {
		v.free(code)
		return exceptionValue(), v.failed()
	}
	defer lib.Xjs_free(v.tls, v.ctx, p)
	text := slices.Clone(unsafe.Slice((*byte)(pointer(p)), *(*uintptr)(pointer(v.scratch))))
	e.prelude.Store(&text)
	return code, nil
}

// invoke calls a function of the sandbox's script.
func (v *vm) invoke(name string, args ...value) value {
	f := v.property(v.api, name)
	if isException(f) {
		return f
	}
	defer v.free(f)
	return v.call(f, undefined(), args...)
}

// nativeEmit is emit(key, value) of map functions.
func nativeEmit(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	if v.set.indexArguments > 0 {
		return undefined()
	}
	if v.host.onlyCount {
		v.host.emitted = true
		return undefined()
	}
	switch v.host.emit {
	case emitNothing:
		return undefined()
	case emitBusy: // a getter or toJSON of what is being emitted
		return v.throw("emit is called while a row is made")
	case emitRows:
	}
	if v.host.refused != nil {
		return undefined()
	}
	v.host.emit = emitBusy
	defer func() { v.host.emit = emitRows }()
	key := len(v.out)
	if !v.encodeOrNull(argument(argc, argv, 0)) {
		return v.unwind(key)
	}
	val := len(v.out)
	if !v.encodeOrNull(argument(argc, argv, 1)) {
		return v.unwind(key)
	}
	v.host.emits++
	v.host.refused = v.host.rows.Emit(v.host.fn, v.out[key:val], v.out[val:])
	v.out = v.out[:key]
	return undefined()
}

// nativeEmitted reports whether emit was called since it was last asked, for
// filters by a view, which emit no rows.
func nativeEmitted(_ *libc.TLS, ctx uintptr, _ value, _ int32, _ uintptr) value {
	v := vmOf(ctx)
	was := v.host.emitted
	v.host.onlyCount, v.host.emitted = true, false
	return boolean(was)
}

// nativeModule makes a function of a module, by its id and its source, which is
// compiled once.
func nativeModule(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	id, ok := v.text(argument(argc, argv, 0))
	if !ok {
		return exceptionValue()
	}
	id = "\x00" + id // no path of a function
	p, known := v.compiled[id]
	var err error
	if !known {
		source, ok := v.text(argument(argc, argv, 1))
		if !ok {
			return exceptionValue()
		}
		if p, err = v.compile("function (module, exports, require) { " + source + "\n }"); err == nil {
			v.keep(id, p)
		}
	}
	v.host.touched = true
	if err == nil {
		var f value
		if f, err = v.function(&p); err == nil {
			return f
		}
	}
	if v.stopped() != nil {
		return v.abort(v.stopped())
	}
	return v.throw(fault.Reason(err))
}

// keep keeps a compiled source.
func (v *vm) keep(name string, p program) {
	if v.compiled == nil {
		v.compiled = map[string]program{}
	}
	v.compiled[name] = p
}

// nativeTouched notes that the sandbox's script holds something of this use.
func nativeTouched(_ *libc.TLS, ctx uintptr, _ value, _ int32, _ uintptr) value {
	vmOf(ctx).host.touched = true
	return undefined()
}

// unwind drops what was written of a row whose encoding has thrown. That a row is
// too large is not for the script to catch: it would be lost.
func (v *vm) unwind(to int) value {
	v.out = v.out[:to]
	v.path = v.path[:0]
	if v.host.overflow {
		return v.abort(v.errRowTooLarge())
	}
	return exceptionValue()
}

// nativeLog is log(message).
func nativeLog(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	s, ok := v.text(argument(argc, argv, 0))
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

// failed makes an error of a failure of the engine itself, while it is set up.
func (v *vm) failed() error {
	if t := v.thrown(); t != nil {
		return fmt.Errorf("set up the sandbox: %w", t)
	}
	if err := v.stopped(); err != nil {
		return fmt.Errorf("set up the sandbox: %w", err)
	}
	return errors.New("set up the sandbox")
}

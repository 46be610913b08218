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
		{"emitted", nativeEmitted, 0},
		{"log", nativeLog, 1},
		{"compile", nativeCompile, 1},
		{"start", nativeStart, 1},
		{"send", nativeSend, 1},
		{"row", nativeRow, 0},
	} {
		if !v.setProperty(host, f.name, v.newFunction(f.name, f.f, f.length)) {
			return v.failed()
		}
	}
	v.api = v.call(make, undefined(), host)
	if isException(v.api) {
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
	if v.host.onlyCount {
		v.host.emitted = true
		return undefined()
	}
	if v.host.overflow {
		return v.throw("output is too large")
	}
	switch v.host.emit {
	case emitNothing:
		return undefined()
	case emitBusy: // a getter or toJSON of what is being emitted
		return v.throw("emit is called while a row is made")
	case emitRows:
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
	v.host.rows = append(v.host.rows, span{key, val, len(v.out)})
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

// nativeCompile makes a function of its source, for modules.
func nativeCompile(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	source, ok := v.text(argument(argc, argv, 0))
	if !ok {
		return exceptionValue()
	}
	f, err := v.compile(source)
	if err == nil {
		return f
	}
	if v.stopped() != nil {
		return v.abort(v.stopped())
	}
	return v.throw(fault.Reason(err))
}

// unwind drops what was written of a row whose encoding has thrown.
func (v *vm) unwind(to int) value {
	v.out = v.out[:to]
	v.path = v.path[:0]
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

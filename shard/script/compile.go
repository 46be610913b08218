package script

import (
	"strings"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"

	"divan/storage/fault"
)

// maxStatements is how many places in a source are tried as the beginning of
// its function.
const maxStatements = 16

// compile makes a function of its source. CouchDB's sources are expressions
// ("function (doc) {…}", "(doc) => {…}"), often with a semicolon or comments
// behind them, sometimes scripts whose last statement is a function without a
// name, which JavaScript itself does not take.
func (v *vm) compile(source string) (value, error) {
	f, _, err := v.compileForm(source)
	return f, err
}

// compileForm is compile; expression reports that the source is an expression
// with nothing before it, as analyse takes it.
func (v *vm) compileForm(source string) (f value, expression bool, err error) {
	if source == "" {
		return exceptionValue(), false, fault.New(fault.NotFound, "missing function")
	}
	code, err := v.compileOnly("0," + source)
	if err != nil {
		return exceptionValue(), false, err
	}
	expression = true
	if isException(code) {
		expression = false
		if code, err = v.compileScript(source); err != nil {
			return exceptionValue(), false, err
		}
	}
	f = lib.XJS_EvalFunction(v.tls, v.ctx, code)
	if isException(f) {
		return f, false, v.compilationError(source)
	}
	if !isObject(f) || lib.XJS_IsFunction(v.tls, v.ctx, f) == 0 {
		v.free(f)
		return exceptionValue(), false, fault.New(fault.CompilationError, "Expression does not eval to a function. ("+source+")")
	}
	return f, expression, nil
}

// compileScript is compile for what is no expression. The exception of the
// attempt as an expression is pending.
func (v *vm) compileScript(source string) (value, error) {
	first := v.compilationError(source)
	at := len(source)
	for range maxStatements {
		if at = strings.LastIndex(source[:at], "function"); at < 0 {
			break
		}
		code, err := v.compileOnly(source[:at] + ";0," + source[at:])
		if err != nil {
			return exceptionValue(), err
		}
		if !isException(code) {
			return code, nil
		}
		if v.thrown() == nil {
			return exceptionValue(), v.stopped()
		}
	}
	code, err := v.compileOnly(source)
	if err != nil {
		return exceptionValue(), err
	}
	if isException(code) {
		_ = v.thrown() // clears it; the caller says what was wrong
		return exceptionValue(), first
	}
	return code, nil
}

func (v *vm) compileOnly(script string) (value, error) {
	p, err := v.input([]byte(script + "\x00function"))
	if err != nil {
		return exceptionValue(), err
	}
	v.pollSoon()
	n := uintptr(len(script))
	return lib.XJS_Eval(v.tls, v.ctx, p, libc.Tsize_t(n), p+n+1, lib.MJS_EVAL_TYPE_GLOBAL|lib.MJS_EVAL_FLAG_COMPILE_ONLY), nil
}

// compilationError takes the pending exception.
func (v *vm) compilationError(source string) error {
	t := v.thrown()
	if t == nil {
		return v.stopped()
	}
	return fault.New(fault.CompilationError, t.name+": "+t.reason+" ("+source+")")
}

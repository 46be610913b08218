package script

import (
	"strings"

	lib "modernc.org/libquickjs"

	"divan/storage/fault"
)

// maxStatements is how many places in a source are tried as the beginning of
// its function.
const maxStatements = 16

// program is a compiled source. Each use of a VM makes its function anew of it: a
// function may keep things in itself, and in the variables around it.
type program struct {
	code       value
	source     string
	expression bool // with nothing before it, as analyse takes it
}

// compile compiles the source of a function, which is made once to see whether it
// is one. CouchDB's sources are expressions
// ("function (doc) {…}", "(doc) => {…}"), often with a semicolon or comments
// behind them, sometimes scripts whose last statement is a function without a
// name, which JavaScript itself does not take.
func (v *vm) compile(source string) (program, error) {
	if source == "" {
		return program{}, fault.New(fault.NotFound, "missing function")
	}
	code, err := v.compileOnly("0," + source)
	if err != nil {
		return program{}, err
	}
	p := program{code, source, true}
	if isException(code) {
		p.expression = false
		if p.code, err = v.compileScript(source); err != nil {
			return program{}, err
		}
	}
	f, err := v.function(&p)
	if err != nil {
		v.free(p.code)
		return program{}, err
	}
	v.free(f)
	return p, nil
}

// function makes the function of a program.
func (v *vm) function(p *program) (value, error) {
	f := lib.XJS_EvalFunction(v.tls, v.ctx, lib.XDupValue(v.tls, v.ctx, p.code))
	if isException(f) {
		return f, v.compilationError(p.source)
	}
	if !isObject(f) || lib.XJS_IsFunction(v.tls, v.ctx, f) == 0 {
		v.free(f)
		return exceptionValue(), fault.New(fault.CompilationError, "Expression does not eval to a function. ("+p.source+")")
	}
	return f, nil
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
		code, err := v.compileOnly(block(source[:at] + ";0," + source[at:]))
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
	code, err := v.compileOnly(block(source))
	if err != nil {
		return exceptionValue(), err
	}
	if isException(code) {
		_ = v.thrown() // clears it; the caller says what was wrong
		return exceptionValue(), first
	}
	return code, nil
}

// block makes a block of a script: what it declares by let and const belongs to that
// evaluation, and can be declared again by the next one.
func block(script string) string {
	for _, strict := range []string{`'use strict'`, `"use strict"`} {
		if strings.HasPrefix(strings.TrimLeft(script, " \t\r\n"), strict) {
			return strict + ";{" + script + "\n}"
		}
	}
	return "{" + script + "\n}"
}

func (v *vm) compileOnly(script string) (value, error) {
	p, err := v.input([]byte(script + "\x00function"))
	if err != nil {
		return exceptionValue(), err
	}
	n := uintptr(len(script))
	return v.evaluate(p, n, p+n+1, lib.MJS_EVAL_TYPE_GLOBAL|lib.MJS_EVAL_FLAG_COMPILE_ONLY), nil
}

// compilationError takes the pending exception.
func (v *vm) compilationError(source string) error {
	t := v.thrown()
	if t == nil {
		return v.stopped()
	}
	return fault.New(fault.CompilationError, t.name+": "+t.reason+" ("+source+")")
}

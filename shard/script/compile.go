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

// compiler compiles what users wrote, and keeps what is compiled once per VM.
type compiler struct {
	realm      *realm
	exceptions *exceptions
	kept       map[string]program // of a design document, by path, and of modules, by id
}

// close frees what is kept.
func (c *compiler) close() {
	for _, p := range c.kept {
		c.realm.free(p.code)
	}
}

// keep keeps a compiled source under a name.
func (c *compiler) keep(name string, p program) {
	if c.kept == nil {
		c.kept = map[string]program{}
	}
	c.kept[name] = p
}

// compile compiles the source of a function, which is made once to see whether it
// is one. CouchDB's sources are expressions
// ("function (doc) {…}", "(doc) => {…}"), often with a semicolon or comments
// behind them, sometimes scripts whose last statement is a function without a
// name, which JavaScript itself does not take.
func (c *compiler) compile(source string) (program, error) {
	if source == "" {
		return program{}, fault.New(fault.NotFound, "missing function")
	}
	code, err := c.compileOnly("0," + source)
	if err != nil {
		return program{}, err
	}
	p := program{code, source, true}
	if isException(code) {
		p.expression = false
		if p.code, err = c.compileScript(source); err != nil {
			return program{}, err
		}
	}
	f, err := c.function(&p)
	if err != nil {
		c.realm.free(p.code)
		return program{}, err
	}
	c.realm.free(f)
	return p, nil
}

// function makes the function of a program.
func (c *compiler) function(p *program) (value, error) {
	f := c.realm.run(c.realm.dup(p.code))
	if isException(f) {
		return f, c.compilationError(p.source)
	}
	if !c.realm.isFunction(f) {
		c.realm.free(f)
		return exceptionValue(), fault.New(fault.CompilationError, "Expression does not eval to a function. ("+p.source+")")
	}
	return f, nil
}

// compileScript is compile for what is no expression. The exception of the
// attempt as an expression is pending.
func (c *compiler) compileScript(source string) (value, error) {
	first := c.compilationError(source)
	at := len(source)
	for range maxStatements {
		if at = strings.LastIndex(source[:at], "function"); at < 0 {
			break
		}
		code, err := c.compileOnly(block(source[:at] + ";0," + source[at:]))
		if err != nil {
			return exceptionValue(), err
		}
		if !isException(code) {
			return code, nil
		}
		if c.exceptions.take() == nil {
			return exceptionValue(), c.realm.limits.stopped()
		}
	}
	code, err := c.compileOnly(block(source))
	if err != nil {
		return exceptionValue(), err
	}
	if isException(code) {
		_ = c.exceptions.take() // clears it; the caller says what was wrong
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

func (c *compiler) compileOnly(script string) (value, error) {
	return c.realm.evaluate(script, "function", lib.MJS_EVAL_TYPE_GLOBAL|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
}

// compilationError takes the pending exception.
func (c *compiler) compilationError(source string) error {
	t := c.exceptions.take()
	if t == nil {
		return c.realm.limits.stopped()
	}
	return fault.New(fault.CompilationError, t.name+": "+t.reason+" ("+source+")")
}

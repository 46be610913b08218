package script

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"

	"divan/storage/fault"
)

// Calls takes what index functions give to index(), which is theirs in place of emit.
type Calls interface {
	// Call takes one call, which is valid until it returns. A Refusal is thrown in the
	// script, which may catch it; any other error ends the script, which cannot catch
	// it, and Index returns it.
	Call(c *Call) error
	// Drop takes back what a function has given of this document.
	Drop(fn int)
}

// Call is one call of index().
type Call struct {
	Arguments []Argument // as many as Program.IndexArguments
	Options   Argument   // which follows them
	// What Options has, if it is an object.
	Store, Index, Facet, Boost Argument
}

// Argument is a value that a script gives to index(), or a member of its options.
type Argument struct {
	Kind   ArgumentKind
	Text   []byte  // of a text: UTF-8, lone surrogates replaced
	Number float64 // of a number
	True   bool    // of a boolean

	start, end int // of Text, in what the VM has written
}

// ArgumentKind is the kind of an Argument.
type ArgumentKind uint8

// The kinds of arguments.
const (
	Undefined ArgumentKind = iota
	Null
	Text
	Number
	Boolean
	Object
	OtherValue // functions, symbols, big integers
)

// Truthy reports whether a condition takes the argument for true.
func (a *Argument) Truthy() bool {
	switch a.Kind {
	case Undefined, Null:
		return false
	case Text:
		return len(a.Text) > 0
	case Number:
		return a.Number != 0 && !math.IsNaN(a.Number)
	case Boolean:
		return a.True
	default:
		return true
	}
}

// Refusal is an exception, with a name, that index() throws.
type Refusal struct{ Name, Message string }

// Error implements error.
func (r *Refusal) Error() string { return r.Name + ": " + r.Message }

// Index runs the functions of a program over the JSON text of a document, as Map does with
// those that emit.
func (vm *MapVM) Index(ctx caller, doc []byte, calls Calls) error {
	vm.host.calls = calls
	defer func() { vm.host.calls = nil }()
	return vm.run(ctx, doc, calls)
}

// optionNames are the members of options, in the order of Call.option.
func optionNames() [4]string { return [4]string{"store", "index", "facet", "boost"} }

// option returns where option i goes.
func (c *Call) option(i int) *Argument {
	return [...]*Argument{&c.Store, &c.Index, &c.Facet, &c.Boost}[i]
}

// nativeIndex is index(…) of index functions.
func nativeIndex(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	if v.host.onlyCount {
		v.host.emitted = true
		return undefined()
	}
	switch v.host.emit {
	case emitNothing:
		return undefined()
	case emitBusy: // a getter of the options of a call
		return v.throw("index is called while a call of it is made")
	case emitRows:
	}
	v.host.emit = emitBusy
	mark := len(v.out)
	defer func() {
		v.host.emit = emitRows
		v.out = v.out[:mark]
	}()
	c := &v.host.call
	if !v.readCall(c, argc, argv) {
		return exceptionValue()
	}
	if err := v.host.calls.Call(c); err != nil {
		return v.refuse(err)
	}
	return undefined()
}

// readCall reads the arguments of a call. It is false when an exception is pending.
func (v *vm) readCall(c *Call, argc int32, argv uintptr) bool {
	n := v.set.indexArguments
	c.Arguments = c.Arguments[:0]
	for i := range n {
		c.Arguments = append(c.Arguments, Argument{})
		if !v.readArgument(&c.Arguments[i], argument(argc, argv, int32(i))) {
			return false
		}
	}
	options := argument(argc, argv, int32(n))
	c.Store, c.Index, c.Facet, c.Boost = Argument{}, Argument{}, Argument{}, Argument{}
	if !v.readArgument(&c.Options, options) || c.Options.Kind == Object && !v.readOptions(c, options) {
		return false
	}
	for i := range c.Arguments { // now that out moves no more
		c.Arguments[i].Text = v.out[c.Arguments[i].start:c.Arguments[i].end]
	}
	c.Options.Text = v.out[c.Options.start:c.Options.end]
	for i := range v.options {
		a := c.option(i)
		a.Text = v.out[a.start:a.end]
	}
	return true
}

// readOptions reads the members of options: where they lie when they are plain, otherwise
// through the engine, which runs getters.
func (v *vm) readOptions(c *Call, options value) bool {
	object := objectAt(addressOf(options))
	plain := v.ordinary(object)
	for i, p := range propertiesOf(object) {
		if !plain {
			break
		}
		at := v.optionOf(p.Fatom)
		if at < 0 {
			continue
		}
		if plain = flagsOf(p)&lib.MJS_PROP_TMASK == 0; plain && !v.readArgument(c.option(at), propertyAt(object, i)) {
			return false
		}
	}
	if plain {
		return true
	}
	for i, atom := range v.options {
		x := lib.XJS_GetPropertyInternal(v.tls, v.ctx, options, atom, options, 0)
		if isException(x) {
			return false
		}
		ok := v.readArgument(c.option(i), x)
		v.free(x)
		if !ok {
			return false
		}
	}
	return true
}

func (v *vm) optionOf(atom lib.TJSAtom) int {
	for i, option := range v.options {
		if atom == option {
			return i
		}
	}
	return -1
}

// readArgument reads a value. It is false when an exception is pending.
func (v *vm) readArgument(a *Argument, x value) bool {
	*a = Argument{start: len(v.out), end: len(v.out)}
	switch int32(x.Ftag) {
	case lib.EJS_TAG_UNDEFINED:
		a.Kind = Undefined
	case lib.EJS_TAG_NULL:
		a.Kind = Null
	case lib.EJS_TAG_INT:
		a.Kind, a.Number = Number, float64(*(*int32)(unsafe.Pointer(&x)))
	case lib.EJS_TAG_FLOAT64:
		a.Kind, a.Number = Number, *(*float64)(unsafe.Pointer(&x))
	case lib.EJS_TAG_BOOL:
		a.Kind, a.True = Boolean, *(*int32)(unsafe.Pointer(&x)) != 0
	case lib.EJS_TAG_STRING, lib.EJS_TAG_STRING_ROPE:
		a.Kind = Text
		if !v.readText(x) {
			return false
		}
		a.end = len(v.out)
	case lib.EJS_TAG_OBJECT:
		a.Kind = Object
		if lib.XJS_IsFunction(v.tls, v.ctx, x) != 0 {
			a.Kind = OtherValue
		}
	default:
		a.Kind = OtherValue
	}
	return true
}

// readText appends a string to out.
func (v *vm) readText(x value) bool {
	n := textLength(x)
	if len(v.out)+n > v.host.outLimit { // before it is put together, if it is a rope
		v.abort(v.errCallTooLarge())
		return false
	}
	if n > longWork && v.overdue() {
		v.abort(v.halted)
		return false
	}
	if int32(x.Ftag) == lib.EJS_TAG_STRING {
		latin, wide := stringAt(addressOf(x))
		if wide != nil {
			v.out = appendUTF16(v.out, wide)
		} else {
			v.out = appendLatin1(v.out, latin)
		}
		return true
	}
	p := lib.XJS_ToCStringLen2(v.tls, v.ctx, v.scratch, x, 0)
	if p == 0 {
		return false
	}
	size := *(*uintptr)(pointer(v.scratch))
	v.out = appendValid(v.out, unsafe.Slice((*byte)(pointer(p)), size))
	lib.XJS_FreeCString(v.tls, v.ctx, p)
	return true
}

// errCallTooLarge is that of a call whose texts go beyond what a VM may write.
func (v *vm) errCallTooLarge() error {
	return &fault.Error{Kind: fault.BadFunction, Code: "too_large", Reason: "The script gives more than " + strconv.FormatInt(int64(v.host.outLimit)>>20, 10) + " MB to a call of index."}
}

// refuse throws a refusal, or ends the script for another error.
func (v *vm) refuse(err error) value {
	var r *Refusal
	if !errors.As(err, &r) {
		return v.abort(err)
	}
	name := v.newText(r.Name)
	defer v.free(name)
	message := v.newText(r.Message)
	defer v.free(message)
	if isException(name) || isException(message) {
		return exceptionValue()
	}
	x := v.invoke("refuse", name, message)
	if !isException(x) {
		v.free(x)
		return v.throw(r.Message)
	}
	return x
}

// newText makes a string.
func (v *vm) newText(s string) value {
	p, err := v.input([]byte(s))
	if err != nil {
		return v.abort(err)
	}
	return lib.XJS_NewStringLen(v.tls, v.ctx, p, libc.Tsize_t(len(s)))
}

func appendLatin1(dst, s []byte) []byte {
	start := 0
	for i, c := range s {
		if c >= utf8.RuneSelf {
			dst = append(append(dst, s[start:i]...), 0xc0|c>>6, 0x80|c&0x3f)
			start = i + 1
		}
	}
	return append(dst, s[start:]...)
}

func appendUTF16(dst []byte, s []uint16) []byte {
	for i := 0; i < len(s); i++ {
		r := rune(s[i])
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if i+1 < len(s) {
				low = rune(s[i+1])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i++
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// appendValid appends UTF-8 in which a lone surrogate has three bytes: that is replaced.
func appendValid(dst, s []byte) []byte {
	start := 0
	for i := 0; i+2 < len(s); i++ {
		if s[i] == 0xed && s[i+1] >= 0xa0 {
			dst = utf8.AppendRune(append(dst, s[start:i]...), utf8.RuneError)
			i += 2
			start = i + 1
		}
	}
	return append(dst, s[start:]...)
}

// validText is the text of UTF-8 in which a lone surrogate has three bytes: that is
// replaced.
func validText(s []byte) string {
	if bytes.IndexByte(s, 0xed) < 0 {
		return string(s)
	}
	return string(appendValid(nil, s))
}

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

	start, end int // of Text, in callReader.texts
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
func (m *MapVM) Index(ctx caller, doc []byte, calls Calls) error {
	e := &m.vm.emitter
	e.calls = calls
	defer func() { e.calls = nil }()
	return m.run(ctx, doc, calls)
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
	return v.emitter.index(v.set.indexArguments, argc, argv)
}

// index takes a call of index(), which has n arguments before its options.
func (e *emitter) index(n int, argc int32, argv uintptr) value {
	if e.counts() {
		return undefined()
	}
	switch e.state {
	case emitNothing:
		return undefined()
	case emitBusy: // a getter of the options of a call
		return e.realm.throw("index is called while a call of it is made")
	case emitRows:
	}
	e.state = emitBusy
	defer func() { e.state = emitRows }()
	if !e.reader.read(n, argc, argv) {
		return exceptionValue()
	}
	if err := e.calls.Call(&e.reader.call); err != nil {
		return e.refuse(err)
	}
	return undefined()
}

// refuse throws a refusal, or ends the script for another error.
func (e *emitter) refuse(err error) value {
	var r *Refusal
	if !errors.As(err, &r) {
		return e.realm.abort(err)
	}
	name := e.realm.newText(r.Name)
	defer e.realm.free(name)
	message := e.realm.newText(r.Message)
	defer e.realm.free(message)
	if isException(name) || isException(message) {
		return exceptionValue()
	}
	x := e.sandbox.invoke("refuse", name, message)
	if !isException(x) {
		e.realm.free(x)
		return e.realm.throw(r.Message)
	}
	return x
}

// callReader reads the arguments of index().
type callReader struct {
	realm   *realm
	encoder *encoder       // which knows the objects that have nothing hidden
	options [4]lib.TJSAtom // as optionNames has them
	limit   int            // bytes of texts
	texts   []byte         // of the arguments, one after the other
	call    Call           // the last one that was read
}

// open makes what the reader needs of a realm.
func (r *callReader) open() (err error) {
	for i, name := range optionNames() {
		if r.options[i], err = r.realm.newAtom(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *callReader) close() {
	for _, atom := range r.options {
		r.realm.freeAtom(atom)
	}
}

// shrink gives back the memory that one large call has left.
func (r *callReader) shrink() {
	if cap(r.texts) > keepBuffer {
		r.texts, r.call = nil, Call{} // the call refers to texts
	}
}

// read reads a call with n arguments before its options. It is false when an exception
// is pending.
func (r *callReader) read(n int, argc int32, argv uintptr) bool {
	c := &r.call
	c.Arguments, r.texts = c.Arguments[:0], r.texts[:0]
	for i := range n {
		c.Arguments = append(c.Arguments, Argument{})
		if !r.readArgument(&c.Arguments[i], argument(argc, argv, int32(i))) {
			return false
		}
	}
	options := argument(argc, argv, int32(n))
	c.Store, c.Index, c.Facet, c.Boost = Argument{}, Argument{}, Argument{}, Argument{}
	if !r.readArgument(&c.Options, options) || c.Options.Kind == Object && !r.readOptions(options) {
		return false
	}
	for i := range c.Arguments { // now that texts moves no more
		c.Arguments[i].Text = r.texts[c.Arguments[i].start:c.Arguments[i].end]
	}
	c.Options.Text = r.texts[c.Options.start:c.Options.end]
	for i := range r.options {
		a := c.option(i)
		a.Text = r.texts[a.start:a.end]
	}
	return true
}

// readOptions reads the members of options: where they lie when they are plain, otherwise
// through the engine, which runs getters.
func (r *callReader) readOptions(options value) bool {
	c, object := &r.call, objectAt(addressOf(options))
	plain := r.encoder.ordinary(object)
	for i, p := range propertiesOf(object) {
		if !plain {
			break
		}
		at := r.optionOf(p.Fatom)
		if at < 0 {
			continue
		}
		if plain = flagsOf(p)&lib.MJS_PROP_TMASK == 0; plain && !r.readArgument(c.option(at), propertyAt(object, i)) {
			return false
		}
	}
	if plain {
		return true
	}
	for i, atom := range r.options {
		x := r.realm.member(options, atom)
		if isException(x) {
			return false
		}
		ok := r.readArgument(c.option(i), x)
		r.realm.free(x)
		if !ok {
			return false
		}
	}
	return true
}

func (r *callReader) optionOf(atom lib.TJSAtom) int {
	for i, option := range r.options {
		if atom == option {
			return i
		}
	}
	return -1
}

// readArgument reads a value. It is false when an exception is pending.
func (r *callReader) readArgument(a *Argument, x value) bool {
	*a = Argument{start: len(r.texts), end: len(r.texts)}
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
		if !r.readText(x) {
			return false
		}
		a.end = len(r.texts)
	case lib.EJS_TAG_OBJECT:
		a.Kind = Object
		if r.realm.isFunction(x) {
			a.Kind = OtherValue
		}
	default:
		a.Kind = OtherValue
	}
	return true
}

// readText appends a string to texts.
func (r *callReader) readText(x value) bool {
	n := textLength(x)
	if len(r.texts)+n > r.limit { // before it is put together, if it is a rope
		r.realm.abort(r.errTooLarge())
		return false
	}
	if n > longWork && r.realm.limits.overdue() {
		r.realm.abort(r.realm.limits.halted)
		return false
	}
	if int32(x.Ftag) == lib.EJS_TAG_STRING {
		latin, wide := stringAt(addressOf(x))
		if wide != nil {
			r.texts = appendUTF16(r.texts, wide)
		} else {
			r.texts = appendLatin1(r.texts, latin)
		}
		return true
	}
	p := lib.XJS_ToCStringLen2(r.realm.tls, r.realm.ctx, r.realm.scratch, x, 0)
	if p == 0 {
		return false
	}
	size := *(*uintptr)(pointer(r.realm.scratch))
	r.texts = appendValid(r.texts, unsafe.Slice((*byte)(pointer(p)), size))
	lib.XJS_FreeCString(r.realm.tls, r.realm.ctx, p)
	return true
}

// errTooLarge is that of a call whose texts go beyond what a VM may write.
func (r *callReader) errTooLarge() error {
	return &fault.Error{Kind: fault.BadFunction, Code: "too_large", Reason: "The script gives more than " + strconv.FormatInt(int64(r.limit)>>20, 10) + " MB to a call of index."}
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

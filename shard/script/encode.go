package script

import (
	"slices"
	"strconv"
	"unsafe"

	lib "modernc.org/libquickjs"
)

// maxDepth is how deep what a script gives out may be nested.
const maxDepth = 5000

// What is thrown of values that are not written.
const (
	nestedTooDeeply = "nested too deeply"
	arrayTooLarge   = "array is too large"
)

// encoder writes values as JSON. What it has written stays in out until it is cut.
type encoder struct {
	realm         *realm
	out           []byte
	path          []uintptr // the objects around the one that is being encoded
	limit         int       // bytes of out
	overflow      bool      // out went beyond its limit
	encoded       uint      // values
	toJSON        lib.TJSAtom
	object, array prototype
}

// open makes what the encoder needs of a realm.
func (e *encoder) open() (err error) {
	e.toJSON, err = e.realm.newAtom("toJSON")
	return err
}

func (e *encoder) close() { e.realm.freeAtom(e.toJSON) }

// watch remembers the built-in prototypes as they are before scripts run.
func (e *encoder) watch() {
	e.object, e.array = prototypeOf(e.realm, lib.EJS_CLASS_OBJECT), prototypeOf(e.realm, lib.EJS_CLASS_ARRAY)
}

// begin starts a call that may write limit bytes.
func (e *encoder) begin(limit int) { e.overflow, e.limit, e.path = false, limit, e.path[:0] }

// mark returns where the next text begins, for cut and since.
func (e *encoder) mark() int { return len(e.out) }

// since returns what was written since a mark, until more is.
func (e *encoder) since(mark int) []byte { return e.out[mark:] }

// cut forgets what was written since a mark.
func (e *encoder) cut(mark int) { e.out = e.out[:mark] }

// unwind is cut for an exception in the midst of a value.
func (e *encoder) unwind(mark int) { e.out, e.path = e.out[:mark], e.path[:0] }

// shrink gives back the memory that one large text has left.
func (e *encoder) shrink() {
	if cap(e.out) > keepBuffer {
		e.out = nil
	}
}

// json is the text of x, in memory of its own. It is false when an exception is pending.
func (e *encoder) json(x value) (text []byte, ok bool) {
	e.unwind(0)
	if !e.encodeOrNull(x) {
		return nil, false
	}
	return append([]byte(nil), e.out...), true
}

// encode appends x to out as JSON.stringify would print it. written is false
// when JSON has no text for it (undefined, functions, symbols); ok is false
// when an exception is pending.
func (e *encoder) encode(x value) (written, ok bool) {
	if e.encoded++; e.encoded%longWork == 0 && e.realm.limits.overdue() {
		e.realm.abort(e.realm.limits.halted)
		return false, false
	}
	if len(e.out) > e.limit {
		e.overflow = true
		e.realm.throw("output is too large")
		return false, false
	}
	switch int32(x.Ftag) {
	case lib.EJS_TAG_INT:
		e.out = strconv.AppendInt(e.out, int64(*(*int32)(unsafe.Pointer(&x))), 10)
	case lib.EJS_TAG_BOOL:
		e.out = strconv.AppendBool(e.out, *(*int32)(unsafe.Pointer(&x)) != 0)
	case lib.EJS_TAG_NULL:
		e.out = append(e.out, "null"...)
	case lib.EJS_TAG_FLOAT64:
		e.out = appendNumber(e.out, *(*float64)(unsafe.Pointer(&x)))
	case lib.EJS_TAG_STRING, lib.EJS_TAG_STRING_ROPE:
		return e.encodeString(x)
	case lib.EJS_TAG_OBJECT:
		return e.encodeObject(x)
	case lib.EJS_TAG_UNDEFINED, lib.EJS_TAG_SYMBOL:
		return false, true
	default: // a big integer: JSON.stringify says what it thinks of that
		return e.stringify(x)
	}
	return true, true
}

// encodeOrNull is encode for where something has to stand.
func (e *encoder) encodeOrNull(x value) bool {
	written, ok := e.encode(x)
	if ok && !written {
		e.out = append(e.out, "null"...)
	}
	return ok
}

func (e *encoder) encodeString(x value) (written, ok bool) {
	if textLength(x) > longWork && e.realm.limits.overdue() {
		e.realm.abort(e.realm.limits.halted)
		return false, false
	}
	if int32(x.Ftag) == lib.EJS_TAG_STRING {
		e.out = appendCharacters(e.out, addressOf(x))
		return true, true
	}
	p := lib.XJS_ToCStringLen2(e.realm.tls, e.realm.ctx, e.realm.scratch, x, 0)
	if p == 0 {
		return false, false
	}
	n := *(*uintptr)(pointer(e.realm.scratch))
	e.out = appendString(e.out, unsafe.Slice((*byte)(pointer(p)), n))
	lib.XJS_FreeCString(e.realm.tls, e.realm.ctx, p)
	return true, true
}

// encodeObject asks for toJSON first, then walks plain objects and arrays and
// leaves everything else (dates have toJSON; proxies, boxed values, typed
// arrays) to JSON.stringify.
func (e *encoder) encodeObject(x value) (written, ok bool) {
	if e.ordinary(objectAt(addressOf(x))) {
		return e.encodeMembers(x)
	}
	f := e.realm.member(x, e.toJSON)
	if isException(f) {
		return false, false
	}
	defer e.realm.free(f)
	if !e.realm.isFunction(f) {
		return e.encodeMembers(x)
	}
	r := e.realm.call(f, x)
	if isException(r) {
		return false, false
	}
	defer e.realm.free(r)
	if isObject(r) {
		return e.encodeMembers(r)
	}
	return e.encode(r)
}

// ordinary reports that an object has no toJSON, neither itself nor from its
// prototype, as far as that can be seen at a glance.
func (e *encoder) ordinary(o *lib.TJSObject) bool {
	var p *prototype
	switch o.Fclass_id {
	case lib.EJS_CLASS_OBJECT:
		p = &e.object
	case lib.EJS_CLASS_ARRAY:
		p = &e.array
	default:
		return false
	}
	if (*lib.TJSShape)(pointer(o.Fshape)).Fproto != p.address || !e.object.same() || !e.array.same() {
		return false
	}
	for _, property := range propertiesOf(o) {
		if property.Fatom == e.toJSON {
			return false
		}
	}
	return true
}

func (e *encoder) encodeMembers(x value) (written, ok bool) {
	address := addressOf(x)
	object := objectAt(address)
	class := object.Fclass_id
	if class != lib.EJS_CLASS_OBJECT && class != lib.EJS_CLASS_ARRAY {
		return e.stringify(x)
	}
	if len(e.path) >= maxDepth {
		e.realm.throw(nestedTooDeeply)
		return false, false
	}
	if slices.Contains(e.path, address) {
		e.realm.throw("circular reference")
		return false, false
	}
	e.path = append(e.path, address)
	if class == lib.EJS_CLASS_ARRAY {
		ok = e.encodeArray(x)
	} else {
		ok = e.encodePlain(x)
	}
	e.path = e.path[:len(e.path)-1]
	return ok, ok
}

// encodeArray reads elements where they lie, again for each: what is called on
// the way may change the array.
func (e *encoder) encodeArray(x value) bool {
	object := objectAt(addressOf(x))
	e.out = append(e.out, '[')
	for i := 0; ; i++ {
		elements, fast := elementsOf(object)
		if !fast {
			return e.encodeSlowArray(x, i)
		}
		if i >= len(elements) {
			break
		}
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if !e.encodeKept(elements[i]) {
			return false
		}
	}
	e.out = append(e.out, ']')
	return true
}

// encodeKept is encodeOrNull for a value that something else holds, which may
// let go of it meanwhile.
func (e *encoder) encodeKept(x value) bool {
	if !isObject(x) {
		return e.encodeOrNull(x)
	}
	e.realm.dup(x)
	defer e.realm.free(x)
	return e.encodeOrNull(x)
}

// encodeSlowArray goes on at an element, asking the engine.
func (e *encoder) encodeSlowArray(x value, from int) bool {
	l := e.realm.property(x, "length")
	if int32(l.Ftag) != lib.EJS_TAG_INT {
		e.realm.free(l)
		if !isException(l) {
			e.realm.throw(arrayTooLarge)
		}
		return false
	}
	n := *(*uint32)(unsafe.Pointer(&l))
	for i := uint32(from); i < n; i++ {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		el := e.realm.element(x, i)
		if isException(el) || !e.encodeOrNull(el) {
			e.realm.free(el)
			return false
		}
		e.realm.free(el)
	}
	e.out = append(e.out, ']')
	return true
}

// encodePlain reads the members of an object where they lie, when they are all
// plain: no getters, no names that are numbers, which come first.
func (e *encoder) encodePlain(x value) bool {
	object := objectAt(addressOf(x))
	for _, p := range propertiesOf(object) {
		if p.Fatom != 0 && (p.Fatom&taggedAtom != 0 || flagsOf(p)&lib.MJS_PROP_TMASK != 0) {
			return e.encodeSlowObject(x)
		}
	}
	e.out = append(e.out, '{')
	first := true
	for i := 0; ; i++ {
		properties := propertiesOf(object)
		if i >= len(properties) {
			break
		}
		p := properties[i]
		if p.Fatom == 0 || flagsOf(p)&(lib.MJS_PROP_ENUMERABLE|lib.MJS_PROP_TMASK) != lib.MJS_PROP_ENUMERABLE {
			continue
		}
		latin, wide, named := atomName(e.realm, p.Fatom)
		if !named {
			continue
		}
		mark := len(e.out)
		if !first {
			e.out = append(e.out, ',')
		}
		if wide != nil {
			e.out = appendWide(e.out, wide)
		} else {
			e.out = appendLatin(e.out, latin)
		}
		e.out = append(e.out, ':')
		written, ok := e.encodeMember(propertyAt(object, i))
		if !ok {
			return false
		}
		if !written {
			e.out = e.out[:mark]
			continue
		}
		first = false
	}
	e.out = append(e.out, '}')
	return true
}

// encodeMember is encode for a value that something else holds.
func (e *encoder) encodeMember(x value) (written, ok bool) {
	if !isObject(x) {
		return e.encode(x)
	}
	e.realm.dup(x)
	defer e.realm.free(x)
	return e.encode(x)
}

// encodeSlowObject asks the engine for the members of an object.
func (e *encoder) encodeSlowObject(x value) bool {
	at := e.realm.scratch
	if lib.XJS_GetOwnPropertyNames(e.realm.tls, e.realm.ctx, at, at+8, x, lib.MJS_GPN_STRING_MASK|lib.MJS_GPN_ENUM_ONLY) < 0 {
		return false
	}
	table, n := *(*uintptr)(pointer(at)), *(*uint32)(pointer(at + 8))
	defer lib.XJS_FreePropertyEnum(e.realm.tls, e.realm.ctx, table, n)
	e.out = append(e.out, '{')
	first := true
	for i := range uintptr(n) {
		atom := (*lib.TJSPropertyEnum)(pointer(table + i*unsafe.Sizeof(lib.TJSPropertyEnum{}))).Fatom
		m := e.realm.member(x, atom)
		if isException(m) {
			return false
		}
		mark := len(e.out)
		if !first {
			e.out = append(e.out, ',')
		}
		written, ok := e.encodeNamed(atom, m)
		e.realm.free(m)
		if !ok {
			return false
		}
		if !written {
			e.out = e.out[:mark]
			continue
		}
		first = false
	}
	e.out = append(e.out, '}')
	return true
}

func (e *encoder) encodeNamed(name lib.TJSAtom, x value) (written, ok bool) {
	p := lib.XJS_AtomToCStringLen(e.realm.tls, e.realm.ctx, e.realm.scratch, name)
	if p == 0 {
		return false, false
	}
	n := *(*uintptr)(pointer(e.realm.scratch))
	e.out = appendString(e.out, unsafe.Slice((*byte)(pointer(p)), n))
	lib.XJS_FreeCString(e.realm.tls, e.realm.ctx, p)
	e.out = append(e.out, ':')
	return e.encode(x)
}

// stringify leaves x to the engine.
func (e *encoder) stringify(x value) (written, ok bool) {
	s := lib.XJS_JSONStringify(e.realm.tls, e.realm.ctx, x, undefined(), undefined())
	defer e.realm.free(s)
	switch int32(s.Ftag) {
	case lib.EJS_TAG_EXCEPTION:
		return false, false
	case lib.EJS_TAG_UNDEFINED:
		return false, true
	}
	text, ok := e.realm.text(s)
	if !ok {
		return false, false
	}
	e.out = append(e.out, replaceSurrogates([]byte(text))...)
	return true, true
}

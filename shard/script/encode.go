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

// encode appends x to out as JSON.stringify would print it. written is false
// when JSON has no text for it (undefined, functions, symbols); ok is false
// when an exception is pending.
func (v *vm) encode(x value) (written, ok bool) {
	if v.host.encoded++; v.host.encoded%longWork == 0 && v.overdue() {
		v.abort(v.halted)
		return false, false
	}
	if len(v.out) > v.host.outLimit {
		v.host.overflow = true
		v.throw("output is too large")
		return false, false
	}
	switch int32(x.Ftag) {
	case lib.EJS_TAG_INT:
		v.out = strconv.AppendInt(v.out, int64(*(*int32)(unsafe.Pointer(&x))), 10)
	case lib.EJS_TAG_BOOL:
		v.out = strconv.AppendBool(v.out, *(*int32)(unsafe.Pointer(&x)) != 0)
	case lib.EJS_TAG_NULL:
		v.out = append(v.out, "null"...)
	case lib.EJS_TAG_FLOAT64:
		v.out = appendNumber(v.out, *(*float64)(unsafe.Pointer(&x)))
	case lib.EJS_TAG_STRING, lib.EJS_TAG_STRING_ROPE:
		return v.encodeString(x)
	case lib.EJS_TAG_OBJECT:
		return v.encodeObject(x)
	case lib.EJS_TAG_UNDEFINED, lib.EJS_TAG_SYMBOL:
		return false, true
	default: // a big integer: JSON.stringify says what it thinks of that
		return v.stringify(x)
	}
	return true, true
}

// encodeOrNull is encode for where something has to stand.
func (v *vm) encodeOrNull(x value) bool {
	written, ok := v.encode(x)
	if ok && !written {
		v.out = append(v.out, "null"...)
	}
	return ok
}

func (v *vm) encodeString(x value) (written, ok bool) {
	if textLength(x) > longWork && v.overdue() {
		v.abort(v.halted)
		return false, false
	}
	if int32(x.Ftag) == lib.EJS_TAG_STRING {
		v.out = appendCharacters(v.out, addressOf(x))
		return true, true
	}
	p := lib.XJS_ToCStringLen2(v.tls, v.ctx, v.scratch, x, 0)
	if p == 0 {
		return false, false
	}
	n := *(*uintptr)(pointer(v.scratch))
	v.out = appendString(v.out, unsafe.Slice((*byte)(pointer(p)), n))
	lib.XJS_FreeCString(v.tls, v.ctx, p)
	return true, true
}

// encodeObject asks for toJSON first, then walks plain objects and arrays and
// leaves everything else (dates have toJSON; proxies, boxed values, typed
// arrays) to JSON.stringify.
func (v *vm) encodeObject(x value) (written, ok bool) {
	if v.ordinary(objectAt(addressOf(x))) {
		return v.encodeMembers(x)
	}
	f := lib.XJS_GetPropertyInternal(v.tls, v.ctx, x, v.toJSON, x, 0)
	if isException(f) {
		return false, false
	}
	defer v.free(f)
	if !isObject(f) || lib.XJS_IsFunction(v.tls, v.ctx, f) == 0 {
		return v.encodeMembers(x)
	}
	r := v.call(f, x)
	if isException(r) {
		return false, false
	}
	defer v.free(r)
	if isObject(r) {
		return v.encodeMembers(r)
	}
	return v.encode(r)
}

// ordinary reports that an object has no toJSON, neither itself nor from its
// prototype, as far as that can be seen at a glance.
func (v *vm) ordinary(o *lib.TJSObject) bool {
	var p *prototype
	switch o.Fclass_id {
	case lib.EJS_CLASS_OBJECT:
		p = &v.object
	case lib.EJS_CLASS_ARRAY:
		p = &v.array
	default:
		return false
	}
	if (*lib.TJSShape)(pointer(o.Fshape)).Fproto != p.address || !v.object.same() || !v.array.same() {
		return false
	}
	for _, property := range propertiesOf(o) {
		if property.Fatom == v.toJSON {
			return false
		}
	}
	return true
}

func (v *vm) encodeMembers(x value) (written, ok bool) {
	address := addressOf(x)
	object := objectAt(address)
	class := object.Fclass_id
	if class != lib.EJS_CLASS_OBJECT && class != lib.EJS_CLASS_ARRAY {
		return v.stringify(x)
	}
	if len(v.path) >= maxDepth {
		v.throw(nestedTooDeeply)
		return false, false
	}
	if slices.Contains(v.path, address) {
		v.throw("circular reference")
		return false, false
	}
	v.path = append(v.path, address)
	if class == lib.EJS_CLASS_ARRAY {
		ok = v.encodeArray(x)
	} else {
		ok = v.encodePlain(x)
	}
	v.path = v.path[:len(v.path)-1]
	return ok, ok
}

// encodeArray reads elements where they lie, again for each: what is called on
// the way may change the array.
func (v *vm) encodeArray(x value) bool {
	object := objectAt(addressOf(x))
	v.out = append(v.out, '[')
	for i := 0; ; i++ {
		elements, fast := elementsOf(object)
		if !fast {
			return v.encodeSlowArray(x, i)
		}
		if i >= len(elements) {
			break
		}
		if i > 0 {
			v.out = append(v.out, ',')
		}
		if !v.encodeKept(elements[i]) {
			return false
		}
	}
	v.out = append(v.out, ']')
	return true
}

// encodeKept is encodeOrNull for a value that something else holds, which may
// let go of it meanwhile.
func (v *vm) encodeKept(x value) bool {
	if !isObject(x) {
		return v.encodeOrNull(x)
	}
	lib.XDupValue(v.tls, v.ctx, x)
	defer v.free(x)
	return v.encodeOrNull(x)
}

// encodeSlowArray goes on at an element, asking the engine.
func (v *vm) encodeSlowArray(x value, from int) bool {
	l := v.property(x, "length")
	if int32(l.Ftag) != lib.EJS_TAG_INT {
		v.free(l)
		if !isException(l) {
			v.throw(arrayTooLarge)
		}
		return false
	}
	n := *(*uint32)(unsafe.Pointer(&l))
	for i := uint32(from); i < n; i++ {
		if i > 0 {
			v.out = append(v.out, ',')
		}
		e := lib.XJS_GetPropertyUint32(v.tls, v.ctx, x, i)
		if isException(e) || !v.encodeOrNull(e) {
			v.free(e)
			return false
		}
		v.free(e)
	}
	v.out = append(v.out, ']')
	return true
}

// encodePlain reads the members of an object where they lie, when they are all
// plain: no getters, no names that are numbers, which come first.
func (v *vm) encodePlain(x value) bool {
	object := objectAt(addressOf(x))
	for _, p := range propertiesOf(object) {
		if p.Fatom != 0 && (p.Fatom&taggedAtom != 0 || flagsOf(p)&lib.MJS_PROP_TMASK != 0) {
			return v.encodeSlowObject(x)
		}
	}
	v.out = append(v.out, '{')
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
		latin, wide, named := v.atomName(p.Fatom)
		if !named {
			continue
		}
		mark := len(v.out)
		if !first {
			v.out = append(v.out, ',')
		}
		if wide != nil {
			v.out = appendWide(v.out, wide)
		} else {
			v.out = appendLatin(v.out, latin)
		}
		v.out = append(v.out, ':')
		written, ok := v.encodeMember(propertyAt(object, i))
		if !ok {
			return false
		}
		if !written {
			v.out = v.out[:mark]
			continue
		}
		first = false
	}
	v.out = append(v.out, '}')
	return true
}

// encodeMember is encode for a value that something else holds.
func (v *vm) encodeMember(x value) (written, ok bool) {
	if !isObject(x) {
		return v.encode(x)
	}
	lib.XDupValue(v.tls, v.ctx, x)
	defer v.free(x)
	return v.encode(x)
}

// encodeSlowObject asks the engine for the members of an object.
func (v *vm) encodeSlowObject(x value) bool {
	at := v.scratch
	if lib.XJS_GetOwnPropertyNames(v.tls, v.ctx, at, at+8, x, lib.MJS_GPN_STRING_MASK|lib.MJS_GPN_ENUM_ONLY) < 0 {
		return false
	}
	table, n := *(*uintptr)(pointer(at)), *(*uint32)(pointer(at + 8))
	defer lib.XJS_FreePropertyEnum(v.tls, v.ctx, table, n)
	v.out = append(v.out, '{')
	first := true
	for i := range uintptr(n) {
		atom := (*lib.TJSPropertyEnum)(pointer(table + i*unsafe.Sizeof(lib.TJSPropertyEnum{}))).Fatom
		e := lib.XJS_GetPropertyInternal(v.tls, v.ctx, x, atom, x, 0)
		if isException(e) {
			return false
		}
		mark := len(v.out)
		if !first {
			v.out = append(v.out, ',')
		}
		written, ok := v.encodeNamed(atom, e)
		v.free(e)
		if !ok {
			return false
		}
		if !written {
			v.out = v.out[:mark]
			continue
		}
		first = false
	}
	v.out = append(v.out, '}')
	return true
}

func (v *vm) encodeNamed(name lib.TJSAtom, x value) (written, ok bool) {
	p := lib.XJS_AtomToCStringLen(v.tls, v.ctx, v.scratch, name)
	if p == 0 {
		return false, false
	}
	n := *(*uintptr)(pointer(v.scratch))
	v.out = appendString(v.out, unsafe.Slice((*byte)(pointer(p)), n))
	lib.XJS_FreeCString(v.tls, v.ctx, p)
	v.out = append(v.out, ':')
	return v.encode(x)
}

// stringify leaves x to the engine.
func (v *vm) stringify(x value) (written, ok bool) {
	s := lib.XJS_JSONStringify(v.tls, v.ctx, x, undefined(), undefined())
	defer v.free(s)
	switch int32(s.Ftag) {
	case lib.EJS_TAG_EXCEPTION:
		return false, false
	case lib.EJS_TAG_UNDEFINED:
		return false, true
	}
	text, ok := v.text(s)
	if !ok {
		return false, false
	}
	v.out = append(v.out, replaceSurrogates([]byte(text))...)
	return true, true
}

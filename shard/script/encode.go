package script

import (
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"

	lib "modernc.org/libquickjs"
)

// maxDepth is how deep what a script gives out may be nested.
const maxDepth = 5000

// encode appends x to out as JSON.stringify would print it. written is false
// when JSON has no text for it (undefined, functions, symbols); ok is false
// when an exception is pending.
func (v *vm) encode(x value) (written, ok bool) {
	if v.host.outLimit > 0 && len(v.out) > v.host.outLimit {
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
	f := lib.XJS_GetPropertyInternal(v.tls, v.ctx, x, v.toJSON, x, 0)
	switch {
	case isException(f):
		return false, false
	case isObject(f) && lib.XJS_IsFunction(v.tls, v.ctx, f) != 0:
		r := v.call(f, x)
		v.free(f)
		if isException(r) {
			return false, false
		}
		defer v.free(r)
		if isObject(r) {
			return v.encodeMembers(r)
		}
		return v.encode(r)
	}
	v.free(f)
	return v.encodeMembers(x)
}

func (v *vm) encodeMembers(x value) (written, ok bool) {
	address := *(*uintptr)(unsafe.Pointer(&x))
	object := (*lib.TJSObject)(pointer(address))
	if class := object.Fclass_id; class != lib.EJS_CLASS_OBJECT && class != lib.EJS_CLASS_ARRAY {
		return v.stringify(x)
	}
	if len(v.path) >= maxDepth {
		v.throw("nested too deeply")
		return false, false
	}
	for _, outer := range v.path {
		if outer == address {
			v.throw("circular reference")
			return false, false
		}
	}
	v.path = append(v.path, address)
	if object.Fclass_id == lib.EJS_CLASS_ARRAY {
		ok = v.encodeArray(x)
	} else {
		ok = v.encodePlain(x)
	}
	v.path = v.path[:len(v.path)-1]
	return ok, ok
}

func (v *vm) encodeArray(x value) bool {
	l := v.property(x, "length")
	if int32(l.Ftag) != lib.EJS_TAG_INT {
		v.free(l)
		if !isException(l) {
			v.throw("array is too large")
		}
		return false
	}
	n := uint32(*(*int32)(unsafe.Pointer(&l)))
	v.out = append(v.out, '[')
	for i := range n {
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

func (v *vm) encodePlain(x value) bool {
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
		written, ok := v.encodeMember(atom, e)
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

func (v *vm) encodeMember(name lib.TJSAtom, x value) (written, ok bool) {
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
	v.out = append(v.out, text...)
	return true, true
}

// appendNumber prints f as JavaScript does; what is no finite number is null.
func appendNumber(dst []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(dst, "null"...)
	case f == 0:
		return append(dst, '0')
	case abs < 1e-6 || abs >= 1e21:
		at := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		// 1e-07 is 1e-7 in JavaScript.
		if n := len(dst); n-at >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' {
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
		return dst
	default:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
}

// appendString quotes UTF-8 in which a lone surrogate has three bytes: that
// becomes an escape.
func appendString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			if c == 0xed && i+2 < len(s) && s[i+1] >= 0xa0 {
				dst = append(dst, s[start:i]...)
				u := 0xd000 | uint16(s[i+1]&0x3f)<<6 | uint16(s[i+2]&0x3f)
				dst = append(dst, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
				i += 3
				start = i
				continue
			}
			i++
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

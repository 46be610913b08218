package script

import (
	"math/bits"
	"unicode"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// Some built-in functions loop for as long as their arguments say without
// looking at the clock: methods of arrays over a length that needs no memory,
// searches of one long string in another, sorting of long strings. They get a
// guard in front of them that refuses what would take seconds, and looks at
// the clock before what takes long. What a script can do with the memory that
// it has is not touched.

const (
	maxElements = 4 << 20 // elements that a method of arrays may visit; more do not fit a VM's memory
	maxSteps    = 1 << 31 // characters that one search may compare
	longWork    = 1 << 12 // steps from which on the clock is looked at
	maxMarks    = 1 << 10 // combining characters in a row that normalize sorts
	unknownText = 1 << 26 // characters of an object that is used as a string
)

// tooMuchWork is the error that a guard throws.
const tooMuchWork = "too much work for one call"

// guarding says what a guard looks at.
type guarding uint8

const (
	guardArray     guarding = iota // the length of this
	guardFind                      // that, times the length of the string that is looked for
	guardConcat                    // that, and of all arguments
	guardSort                      // that, and comparisons without a function
	guardTyped                     // the length of a typed array
	guardSearch                    // the length of this, times that of the argument, which counts as no longer
	guardNormalize                 // runs of combining characters
)

// guard is a built-in function that is guarded.
type guard struct {
	address uintptr
	magic   int32
	generic bool // the function takes no magic number
	kind    guarding
}

// nativeFunction is the part of a function object that QuickJS calls.
type nativeFunction struct {
	realm   uintptr
	address uintptr
	length  uint8
	kind    uint8
	magic   int16
}

// guards stand in front of the built-in functions of a realm.
type guards struct {
	realm      *realm
	exceptions *exceptions
	length     lib.TJSAtom
	guarded    []guard // by the number that nativeGuard gets
}

// open makes what the guards need of a realm.
func (g *guards) open() (err error) {
	g.length, err = g.realm.newAtom("length")
	return err
}

func (g *guards) close() { g.realm.freeAtom(g.length) }

// install puts guards in front of built-in functions. The object of each stays;
// what it calls is nativeGuard, which finds the function by its number.
func (g *guards) install() error {
	for _, set := range []struct {
		of    string
		kind  guarding
		names []string
	}{
		{"Array.prototype", guardArray, []string{
			"copyWithin", "every", "fill", "filter", "find", "findIndex", "findLast", "findLastIndex", "forEach", "join", "map",
			"reduce", "reduceRight", "reverse", "shift", "slice", "some", "splice", "toLocaleString", "toReversed", "toSpliced", "unshift", "with",
		}},
		{"Array.prototype", guardFind, []string{"includes", "indexOf", "lastIndexOf"}},
		{"Array.prototype", guardConcat, []string{"concat"}},
		{"Array.prototype", guardSort, []string{"sort", "toSorted"}},
		{"Object.getPrototypeOf(Uint8Array.prototype)", guardTyped, []string{"sort", "toSorted"}},
		{"String.prototype", guardSearch, []string{"includes", "indexOf", "lastIndexOf", "replace", "replaceAll", "split"}},
		{"String.prototype", guardNormalize, []string{"normalize"}},
	} {
		of, err := g.realm.eval(set.of, "guards")
		if err != nil {
			return err
		}
		for _, name := range set.names {
			f := g.realm.property(of, name)
			ok := isObject(f) && g.put(objectAt(addressOf(f)), set.kind)
			g.realm.free(f)
			if !ok {
				g.realm.free(of)
				return g.exceptions.failed()
			}
		}
		g.realm.free(of)
	}
	return nil
}

func (g *guards) put(o *lib.TJSObject, kind guarding) bool {
	if o.Fclass_id != lib.EJS_CLASS_C_FUNCTION {
		return false
	}
	f := (*nativeFunction)(unsafe.Pointer(&o.Fu))
	if f.kind != lib.EJS_CFUNC_generic && f.kind != lib.EJS_CFUNC_generic_magic {
		return false
	}
	g.guarded = append(g.guarded, guard{f.address, int32(f.magic), f.kind == lib.EJS_CFUNC_generic, kind})
	f.address, f.kind, f.magic = guardPointer(nativeGuard), lib.EJS_CFUNC_generic_magic, int16(len(g.guarded)-1)
	return true
}

func guardPointer(f func(*libc.TLS, uintptr, value, int32, uintptr, int32) value) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

// call calls the built-in function itself.
func (g *guard) call(tls *libc.TLS, ctx uintptr, this value, argc int32, argv uintptr) value {
	code := &struct{ uintptr }{g.address}
	if g.generic {
		return (*(*native)(unsafe.Pointer(code)))(tls, ctx, this, argc, argv)
	}
	return (*(*func(*libc.TLS, uintptr, value, int32, uintptr, int32) value)(unsafe.Pointer(code)))(tls, ctx, this, argc, argv, g.magic)
}

// nativeGuard stands before the built-in function number magic.
func nativeGuard(tls *libc.TLS, ctx uintptr, this value, argc int32, argv uintptr, magic int32) value {
	v := vmOf(ctx)
	g := &v.guards.guarded[magic]
	steps := v.guards.steps(g.kind, this, argc, argv)
	if steps < 0 || steps > maxSteps {
		return v.realm.throw(tooMuchWork)
	}
	if steps >= longWork && v.limits.overdue() {
		return v.realm.abort(v.limits.halted)
	}
	if g.kind == guardSort && int32(argument(argc, argv, 0).Ftag) == lib.EJS_TAG_UNDEFINED && slowToSort(this) {
		compare := v.sandbox.member("compare")
		defer v.realm.free(compare)
		argv = tls.Alloc(argSize)
		defer tls.Free(argSize)
		*(*value)(pointer(argv)) = compare
		argc = 1
	}
	return g.call(tls, ctx, this, argc, argv)
}

// steps is an upper bound of what a call costs, -1 when that is not known or
// too much.
func (g *guards) steps(kind guarding, this value, argc int32, argv uintptr) int {
	switch kind {
	case guardSearch:
		n := textLength(this)
		return n * max(min(textLength(argument(argc, argv, 0)), n), 1) // what is longer is not in it
	case guardNormalize:
		return g.marks(this)
	case guardConcat:
		n := g.elements(this)
		for i := int32(0); i < argc && n >= 0; i++ {
			more := g.elements(argument(argc, argv, i))
			if n += more; more < 0 || n > maxElements {
				n = -1
			}
		}
		return n
	case guardArray, guardFind, guardSort, guardTyped:
	}
	n := g.elements(this)
	if n < 0 || n > maxElements {
		return -1
	}
	if x := argument(argc, argv, 0); kind == guardFind && isText(x) {
		return n * max(textLength(x), 1)
	}
	return n
}

func isText(x value) bool {
	return int32(x.Ftag) == lib.EJS_TAG_STRING || int32(x.Ftag) == lib.EJS_TAG_STRING_ROPE
}

// textLength is how long x is as a string, in characters.
func textLength(x value) int {
	switch int32(x.Ftag) {
	case lib.EJS_TAG_STRING:
		return int(*(*uint32)(pointer(addressOf(x))) &^ uint32(wideString))
	case lib.EJS_TAG_STRING_ROPE:
		return int((*lib.TJSStringRope)(pointer(addressOf(x))).Flen1)
	case lib.EJS_TAG_OBJECT:
		switch o := objectAt(addressOf(x)); o.Fclass_id {
		case lib.EJS_CLASS_REGEXP: // looks at the clock
			return 1
		default:
			return unknownText
		}
	default:
		return 32
	}
}

// elements is the length of what a method of arrays is called on, -1 when it
// can only be known by asking a script.
func (g *guards) elements(x value) int {
	if !isObject(x) {
		if isText(x) {
			return textLength(x)
		}
		return 0
	}
	o := objectAt(addressOf(x))
	if o.Fclass_id >= lib.EJS_CLASS_UINT8C_ARRAY && o.Fclass_id <= lib.EJS_CLASS_FLOAT64_ARRAY {
		return int((*struct {
			_, _  uintptr
			count uint32
		})(unsafe.Pointer(&o.Fu)).count)
	}
	for range maxDepth {
		if o.Fclass_id == lib.EJS_CLASS_PROXY {
			return -1
		}
		for i, p := range propertiesOf(o) {
			if p.Fatom == g.length {
				if flagsOf(p)&lib.MJS_PROP_TMASK != 0 {
					return -1
				}
				return lengthOf(propertyAt(o, i))
			}
		}
		next := (*lib.TJSShape)(pointer(o.Fshape)).Fproto
		if next == 0 {
			return 0
		}
		o = objectAt(next)
	}
	return -1
}

// lengthOf is a length as an array-like object has it.
func lengthOf(x value) int {
	switch int32(x.Ftag) {
	case lib.EJS_TAG_INT:
		return max(int(*(*int32)(unsafe.Pointer(&x))), 0)
	case lib.EJS_TAG_FLOAT64:
		f := *(*float64)(unsafe.Pointer(&x))
		if f > maxElements {
			return -1
		}
		return max(int(f), 0)
	case lib.EJS_TAG_UNDEFINED, lib.EJS_TAG_NULL, lib.EJS_TAG_BOOL:
		return 1
	default:
		return -1
	}
}

// slowToSort reports that comparing the elements as strings may take long, or
// calls scripts: then a function does it, and the clock is looked at.
func slowToSort(this value) bool {
	if !isObject(this) {
		return false
	}
	elements, fast := elementsOf(objectAt(addressOf(this)))
	if !fast {
		return true
	}
	longest := 1
	for _, x := range elements {
		if isObject(x) && len(elements) > 16 {
			return true
		}
		if isText(x) {
			longest = max(longest, textLength(x))
		}
	}
	return len(elements)*bits.Len(uint(len(elements)))*longest > maxSteps/8
}

// marks is the cost of normalizing a string: -1 when it has too long a run of
// combining characters, which are sorted one by one.
func (g *guards) marks(x value) int {
	if !isText(x) {
		return 0
	}
	n := textLength(x)
	if n < maxMarks {
		return n
	}
	s, ok := g.realm.text(x)
	if !ok {
		g.realm.dropException()
		return -1
	}
	run := 0
	for _, r := range s {
		if r < 0x300 || !unicode.Is(unicode.M, r) {
			run = 0
		} else if run++; run > maxMarks {
			return -1
		}
	}
	return n
}

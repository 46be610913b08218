package script

import (
	"unsafe"

	lib "modernc.org/libquickjs"
)

// How QuickJS lays out strings, objects and their shapes (hidden classes), as
// far as the encoder reads them without asking the engine. The library's
// version is pinned; TestEncodeLikeStringify fails when a layout has changed.

const (
	stringData   = 12 // offset of a string's characters, behind its header
	wideString   = 1 << 31
	atomTypeBits = 30 // of the second word of an atom's string
	atomString   = 1  // the type of atoms that are names; others are symbols
	taggedAtom   = 1 << 31
	flagBits     = 26     // of a shape's property
	fastArray    = 1 << 4 // mark of an object whose elements are stored as an array
)

// stringAt are the characters of a string that is no rope: Latin-1, or UTF-16.
func stringAt(address uintptr) (latin []byte, wide []uint16) {
	head := *(*uint32)(pointer(address))
	data := pointer(address + stringData)
	if head&wideString != 0 {
		return nil, unsafe.Slice((*uint16)(data), head&^uint32(wideString))
	}
	return unsafe.Slice((*byte)(data), head), nil
}

// addressOf is where an object or a string lies.
func addressOf(x value) uintptr { return *(*uintptr)(unsafe.Pointer(&x)) }

func objectAt(address uintptr) *lib.TJSObject { return (*lib.TJSObject)(pointer(address)) }

// propertiesOf are the own properties of an object, in the order in which they
// were made; deleted ones have atom 0.
func propertiesOf(o *lib.TJSObject) []lib.TJSShapeProperty { return shapeProperties(o.Fshape) }

func shapeProperties(address uintptr) []lib.TJSShapeProperty {
	shape := (*lib.TJSShape)(pointer(address))
	at := address + unsafe.Sizeof(lib.TJSShape{}) + uintptr(shape.Fprop_hash_mask+1)*4
	return unsafe.Slice((*lib.TJSShapeProperty)(pointer(at)), shape.Fprop_count)
}

// flagsOf are the flags of a property: MJS_PROP_ENUMERABLE and so on.
func flagsOf(p lib.TJSShapeProperty) uint32 { return p.F__ccgo0 >> flagBits }

// propertyAt is the value of property i, which is a plain one.
func propertyAt(o *lib.TJSObject, i int) value {
	return *(*value)(pointer(o.Fprop + uintptr(i)*argSize))
}

// atomName is the name that an atom stands for: Latin-1, or UTF-16. It is false
// for symbols and array indexes.
func atomName(r *realm, atom lib.TJSAtom) (latin []byte, wide []uint16, ok bool) {
	if atom&taggedAtom != 0 {
		return nil, nil, false
	}
	table := (*lib.TJSRuntime)(pointer(r.rt)).Fatom_array
	address := *(*uintptr)(pointer(table + uintptr(atom)*unsafe.Sizeof(uintptr(0))))
	if *(*uint32)(pointer(address + 4))>>atomTypeBits != atomString {
		return nil, nil, false
	}
	latin, wide = stringAt(address)
	return latin, wide, true
}

// elementsOf are the elements of an array that is stored as such, with nothing
// missing; false for other arrays and other objects.
func elementsOf(o *lib.TJSObject) ([]value, bool) {
	if o.Fclass_id != lib.EJS_CLASS_ARRAY || o.F__ccgo16&fastArray == 0 {
		return nil, false
	}
	a := (*struct {
		size   uintptr
		values uintptr
		count  uint32
	})(unsafe.Pointer(&o.Fu))
	length := propertyAt(o, 0)
	if int32(length.Ftag) != lib.EJS_TAG_INT || *(*uint32)(unsafe.Pointer(&length)) != a.count {
		return nil, false
	}
	if a.count == 0 {
		return nil, true
	}
	return unsafe.Slice((*value)(pointer(a.values)), a.count), true
}

// prototype is the remembered layout of a built-in prototype.
type prototype struct {
	address, shape uintptr
	count          int32
	properties     []uint64 // atom, and whether it has a getter
}

// prototypeOf remembers the prototype of a class of objects.
func prototypeOf(r *realm, class uintptr) prototype {
	table := r.context().Fclass_proto
	p := prototype{address: addressOf(*(*value)(pointer(table + class*argSize)))}
	o := objectAt(p.address)
	p.shape = o.Fshape
	p.count = (*lib.TJSShape)(pointer(p.shape)).Fprop_count
	for _, property := range propertiesOf(o) {
		p.properties = append(p.properties, signature(property))
	}
	return p
}

// signature returns the part of a property that matters to its readers.
func signature(p lib.TJSShapeProperty) uint64 {
	if flagsOf(p)&lib.MJS_PROP_TMASK == lib.MJS_PROP_GETSET {
		return uint64(p.Fatom) | 1<<32
	}
	return uint64(p.Fatom)
}

// same reports whether the prototype has no other members than it had.
func (p *prototype) same() bool {
	shape := objectAt(p.address).Fshape
	return shape == p.shape && (*lib.TJSShape)(pointer(shape)).Fprop_count == p.count
}

// untouched reports that no script has given the prototype members or getters,
// or a prototype of its own.
func (p *prototype) untouched() bool {
	o := objectAt(p.address)
	properties := propertiesOf(o)
	if len(properties) != len(p.properties) || (*lib.TJSShape)(pointer(o.Fshape)).Fproto != 0 {
		return false
	}
	for i, property := range properties {
		if signature(property) != p.properties[i] {
			return false
		}
	}
	return true
}

package script

import (
	"slices"
	"unsafe"

	lib "modernc.org/libquickjs"
)

// globals are the members of the global object before scripts ran.
type globals struct {
	realm  *realm
	names  []lib.TJSShapeProperty
	values []value // held
	proto  uintptr
}

// note takes down how the global object is.
func (g *globals) note() {
	o := g.object()
	g.proto = (*lib.TJSShape)(pointer(o.Fshape)).Fproto
	for i, p := range propertiesOf(o) {
		if p.Fatom == 0 {
			continue
		}
		x := memberAt(o, i, p)
		p = plainly(p)
		g.realm.hold(p, x, 1)
		g.names, g.values = append(g.names, p), append(g.values, x)
	}
}

func (g *globals) letGo() {
	for i, p := range g.names {
		g.realm.hold(p, g.values[i], -1)
	}
}

func (g *globals) object() *lib.TJSObject {
	return objectAt(addressOf(g.realm.context().Fglobal_obj))
}

// plainly is a property without its place in the shape's hash table, and without
// the difference between a value and a reference to one, which the engine makes as
// it likes when functions name a global.
func plainly(p lib.TJSShapeProperty) lib.TJSShapeProperty {
	p.F__ccgo0 = p.F__ccgo0 >> flagBits << flagBits
	if flagsOf(p)&lib.MJS_PROP_TMASK == lib.MJS_PROP_VARREF {
		p.F__ccgo0 &^= lib.MJS_PROP_TMASK << flagBits
	}
	return p
}

// maxForgotten is how many new globals are deleted. Each is looked for among all of
// them, which no clock watches: a script with very many gets a new VM instead.
const maxForgotten = 1000

// restore deletes the globals that scripts have added: a variable that was
// not declared, most likely. It is false when they have changed something else, or
// added too many.
func (g *globals) restore() bool {
	o := g.object()
	if (*lib.TJSShape)(pointer(o.Fshape)).Fproto != g.proto || o.F__ccgo16&objectMarks&^fastArray == 0 {
		return false
	}
	known := 0
	var added []lib.TJSAtom
	for i, p := range propertiesOf(o) {
		switch {
		case p.Fatom == 0:
		case known == len(g.names):
			added = append(added, p.Fatom)
		case plainly(p) != g.names[known] || memberAt(o, i, p) != g.values[known]:
			return false
		default:
			known++
		}
	}
	if known < len(g.names) || len(added) > maxForgotten {
		return false
	}
	for _, atom := range added {
		if !g.delete(atom) {
			return false
		}
	}
	return true
}

// delete deletes a global, even one that says that it cannot be deleted, as
// those that are declared in a script do.
func (g *globals) delete(atom lib.TJSAtom) bool {
	o := g.object()
	properties := propertiesOf(o)
	i := slices.IndexFunc(properties, func(p lib.TJSShapeProperty) bool { return p.Fatom == atom })
	if i < 0 {
		return false
	}
	if flagsOf(properties[i])&lib.MJS_PROP_CONFIGURABLE == 0 {
		if (*lib.TJSShape)(pointer(o.Fshape)).Fis_hashed != 0 { // other objects may have it
			return false
		}
		properties[i].F__ccgo0 |= lib.MJS_PROP_CONFIGURABLE << flagBits
	}
	return lib.XJS_DeleteProperty(g.realm.tls, g.realm.ctx, g.realm.context().Fglobal_obj, atom, 0) > 0
}

// memberAt is the value of property i: where it lies, or where it is referred to.
// That of a getter and a setter is the two.
func memberAt(o *lib.TJSObject, i int, p lib.TJSShapeProperty) value {
	x := propertyAt(o, i)
	if flagsOf(p)&lib.MJS_PROP_TMASK == lib.MJS_PROP_VARREF {
		return *(*value)(pointer((*lib.TJSVarRef)(pointer(*(*uintptr)(unsafe.Pointer(&x)))).Fpvalue))
	}
	return x
}

// membersOf are the members of an object as they are stored.
func membersOf(o *lib.TJSObject, n int) []value {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*value)(pointer(o.Fprop)), n)
}

package script

import (
	"slices"
	"unsafe"

	lib "modernc.org/libquickjs"
)

// What a context has before scripts run in it is the same for all that run there,
// one after the other. Nothing that one of them does to it may reach the next:
//
//   - Built-in functions, and most other built-in objects, are frozen.
//   - Those that libraries extend, or that usual objects inherit from, can be
//     changed: they are compared when a use of the VM ends, and a VM that is not as
//     it was is thrown away. The sandbox's script names them.
//   - New globals are deleted then (globals.go).
//
// Freezing everything would cost nothing when a use ends, but then scripts could
// give no object of their own a member that its prototype has: toString, or the
// constructor that a reduce function counts. Decision 0030 has the figures.

// intrinsics are the built-in objects of a context that scripts can change, as
// they were. The values of their members are held, so that nothing else can come
// to lie where they are.
type intrinsics struct {
	realm   *realm
	sandbox *sandbox
	objects []intrinsic
	names   []lib.TJSShapeProperty // of all objects, one after the other
	members []value                // likewise: values, or getter and setter
	frozen  uintptr                // the shape of built-in functions that are frozen
}

// intrinsic is one of them.
type intrinsic struct {
	address uintptr
	proto   uintptr
	marks   uint8
	first   int // its members
	end     int
}

// objectMarks are the bits of an object that a script can change: extensible, and
// stored as an array.
const objectMarks = 1<<1 | fastArray

// lockdown freezes the built-in objects of a new context that scripts can reach,
// and notes how those are that they may change. It is for after the sandbox's own
// script.
func (k *intrinsics) lockdown() bool {
	changeable := k.changeable()
	like := k.sandbox.member("frozenFunction") // which api holds
	k.realm.free(like)
	if !isObject(like) {
		return false
	}
	k.frozen = objectAt(addressOf(like)).Fshape
	reached := k.roots()
	seen := make(map[uintptr]struct{}, 1024)
	for _, address := range reached {
		seen[address] = struct{}{}
	}
	reach := func(address uintptr) {
		if _, known := seen[address]; address != 0 && !known {
			seen[address] = struct{}{}
			reached = append(reached, address)
		}
	}
	for i := 0; i < len(reached); i++ {
		address := reached[i]
		if !k.instantiate(address) {
			return false
		}
		o := objectAt(address)
		reach((*lib.TJSShape)(pointer(o.Fshape)).Fproto)
		for j, p := range propertiesOf(o) {
			if p.Fatom == 0 {
				continue
			}
			if flagsOf(p)&lib.MJS_PROP_TMASK == lib.MJS_PROP_GETSET {
				pair := (*[2]uintptr)(pointer(o.Fprop + uintptr(j)*argSize))
				reach(pair[0])
				reach(pair[1])
			} else if x := memberAt(o, j, p); isObject(x) {
				reach(addressOf(x))
			}
		}
		if _, ok := changeable[address]; !ok && !k.freeze(o) {
			return false
		}
	}
	for address := range changeable {
		if address != addressOf(k.realm.context().Fglobal_obj) {
			k.note(address)
		}
	}
	return true
}

// changeable are the objects that scripts may change.
func (k *intrinsics) changeable() map[uintptr]struct{} {
	ctx := k.realm.context()
	out := map[uintptr]struct{}{addressOf(ctx.Fglobal_obj): {}, addressOf(ctx.Fglobal_var_obj): {}}
	list := k.sandbox.member("changeable")
	defer k.realm.free(list)
	if isObject(list) {
		objects, _ := elementsOf(objectAt(addressOf(list)))
		for _, x := range objects {
			out[addressOf(x)] = struct{}{}
		}
	}
	return out
}

// roots are the objects that the context itself refers to: some can be reached by
// scripts only through what they make, as an iterator.
func (k *intrinsics) roots() (out []uintptr) {
	ctx, rt := k.realm.context(), (*lib.TJSRuntime)(pointer(k.realm.rt))
	values := []value{
		ctx.Fglobal_obj, ctx.Fglobal_var_obj, ctx.Feval_obj, ctx.Ffunction_proto, ctx.Ffunction_ctor, ctx.Farray_ctor, ctx.Fregexp_ctor,
		ctx.Fpromise_ctor, ctx.Fiterator_ctor, ctx.Fasync_iterator_proto, ctx.Farray_proto_values, ctx.Fthrow_type_error,
	}
	values = append(values, ctx.Fnative_error_proto[:]...)
	values = append(values, unsafe.Slice((*value)(pointer(ctx.Fclass_proto)), rt.Fclass_count)...)
	for _, x := range values {
		if isObject(x) && !slices.Contains(out, addressOf(x)) {
			out = append(out, addressOf(x))
		}
	}
	return out
}

// instantiate makes the members of a built-in object that the engine makes when
// they are first read.
func (k *intrinsics) instantiate(address uintptr) bool {
	o := objectAt(address)
	for i := range propertiesOf(o) {
		p := propertiesOf(o)[i] // the shape may have been replaced
		if p.Fatom == 0 || flagsOf(p)&lib.MJS_PROP_TMASK != lib.MJS_PROP_AUTOINIT {
			continue
		}
		x := k.realm.member(objectValue(address), p.Fatom)
		if isException(x) {
			return false
		}
		k.realm.free(x)
	}
	return true
}

// freeze freezes a built-in object. Of the functions that have nothing but a length
// and a name each gets the shape of one that was made frozen, so that most of five
// hundred need none of their own.
func (k *intrinsics) freeze(o *lib.TJSObject) bool {
	x := objectValue(uintptr(unsafe.Pointer(o)))
	if lib.XJS_PreventExtensions(k.realm.tls, k.realm.ctx, x) < 0 {
		return false
	}
	if k.shareShape(o) {
		return true
	}
	for i := range propertiesOf(o) {
		p := propertiesOf(o)[i] // the shape may have been replaced
		flags := int32(lib.MJS_PROP_HAS_CONFIGURABLE)
		if flagsOf(p)&lib.MJS_PROP_TMASK != lib.MJS_PROP_GETSET {
			flags |= lib.MJS_PROP_HAS_WRITABLE
		}
		if p.Fatom != 0 && lib.XJS_DefineProperty(k.realm.tls, k.realm.ctx, x, p.Fatom, undefined(), undefined(), undefined(), flags) < 0 {
			return false
		}
	}
	return true
}

// shareShape gives a function the shape of frozen ones, if it is that of a function
// but for the flags. Both shapes are among those that the engine shares itself.
func (k *intrinsics) shareShape(o *lib.TJSObject) bool {
	own, frozen := (*lib.TJSShape)(pointer(o.Fshape)), (*lib.TJSShape)(pointer(k.frozen))
	mine, its := propertiesOf(o), shapeProperties(k.frozen)
	if frozen.Fis_hashed == 0 || own.Fis_hashed == 0 || *references(o.Fshape) < 2 || own.Fproto != frozen.Fproto ||
		o.Fclass_id != lib.EJS_CLASS_C_FUNCTION || len(mine) != len(its) || own.Fprop_size < frozen.Fprop_size {
		return false
	}
	for i := range mine {
		if mine[i].Fatom != its[i].Fatom || flagsOf(mine[i])&lib.MJS_PROP_TMASK != 0 || flagsOf(its[i]) != 0 {
			return false
		}
	}
	*references(o.Fshape)--
	*references(k.frozen)++
	o.Fshape = k.frozen
	return true
}

// note takes down how an object is.
func (k *intrinsics) note(address uintptr) {
	o := objectAt(address)
	properties := propertiesOf(o)
	first := len(k.names)
	k.names = append(k.names, properties...)
	k.members = append(k.members, membersOf(o, len(properties))...)
	for i, p := range properties {
		k.realm.hold(p, k.members[first+i], 1)
	}
	k.objects = append(k.objects, intrinsic{
		address, (*lib.TJSShape)(pointer(o.Fshape)).Fproto, o.F__ccgo16 & objectMarks, first, len(k.names),
	})
}

// hold holds what a member refers to, or lets go of it.
func (r *realm) hold(p lib.TJSShapeProperty, x value, by int) {
	refer := func(x value) {
		if by > 0 {
			r.dup(x)
		} else {
			r.free(x)
		}
	}
	switch {
	case p.Fatom == 0:
	case flagsOf(p)&lib.MJS_PROP_TMASK == lib.MJS_PROP_GETSET:
		for _, address := range *(*[2]uintptr)(unsafe.Pointer(&x)) {
			if address != 0 {
				refer(objectValue(address))
			}
		}
	case flagsOf(p)&lib.MJS_PROP_TMASK == 0:
		refer(x)
	}
	if by > 0 {
		lib.XJS_DupAtom(r.tls, r.ctx, p.Fatom)
	} else {
		r.freeAtom(p.Fatom)
	}
}

// untouched reports that all are as they were.
func (k *intrinsics) untouched() bool {
	for i := range k.objects {
		n := &k.objects[i]
		o := objectAt(n.address)
		shape := (*lib.TJSShape)(pointer(o.Fshape))
		if int(shape.Fprop_count) != n.end-n.first || shape.Fproto != n.proto || o.F__ccgo16&objectMarks != n.marks ||
			!bytesEqual(propertiesOf(o), k.names[n.first:n.end]) || !bytesEqual(membersOf(o, n.end-n.first), k.members[n.first:n.end]) {
			return false
		}
	}
	return true
}

// bytesEqual compares what lies in memory, which is many times faster than
// comparing one after the other.
func bytesEqual[T any](a, b []T) bool {
	size := int(unsafe.Sizeof(*new(T)))
	return unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(a))), len(a)*size) == unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(b))), len(b)*size)
}

// letGo ends the holding of what lockdown has noted.
func (k *intrinsics) letGo() {
	for i, p := range k.names {
		k.realm.hold(p, k.members[i], -1)
	}
}

// references counts who refers to something in the engine's memory.
func references(address uintptr) *int32 { return (*int32)(pointer(address - 4)) }

// objectValue is the object at an address.
func objectValue(address uintptr) (x value) {
	x.Ftag = lib.EJS_TAG_OBJECT
	*(*uintptr)(unsafe.Pointer(&x)) = address
	return x
}

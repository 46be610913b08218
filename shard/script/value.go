package script

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// value is a JavaScript value. A value that a function of the engine returns
// is owned by the caller, who frees it; arguments stay the caller's.
type value = lib.TJSValue

const argSize = 16 // bytes of a value

func undefined() value      { return value{Ftag: lib.EJS_TAG_UNDEFINED} }
func null() value           { return value{Ftag: lib.EJS_TAG_NULL} }
func exceptionValue() value { return value{Ftag: lib.EJS_TAG_EXCEPTION} }
func boolean(b bool) value {
	x := value{Ftag: lib.EJS_TAG_BOOL}
	if b {
		*(*int32)(unsafe.Pointer(&x)) = 1
	}
	return x
}

func isException(x value) bool { return int32(x.Ftag) == lib.EJS_TAG_EXCEPTION }
func isObject(x value) bool    { return int32(x.Ftag) == lib.EJS_TAG_OBJECT }

// argument is argument i of a call from a script.
func argument(argc int32, argv uintptr, i int32) value {
	if i >= argc {
		return undefined()
	}
	return *(*value)(pointer(argv + uintptr(i)*argSize))
}

// pointer turns an address in the engine's memory, or one that is pinned, into
// a pointer. The indirection is for the checks of unsafe conversions, which
// know only Go's own memory.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// vmOf is the vm of a context, which newVM pins.
func vmOf(ctx uintptr) *vm { return (*vm)(pointer((*lib.TJSContext)(pointer(ctx)).Fuser_opaque)) }

// native is a function that scripts can call. It must be a function of the
// package: the engine keeps its address, of which the collector knows nothing.
type native func(tls *libc.TLS, ctx uintptr, this value, argc int32, argv uintptr) value

func nativePointer(f native) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

package script

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// The allocator of a VM: that of the C library, with the limit of the VM and
// a note when memory was refused. The engine asks it for large blocks, and for
// arenas that it divides itself: seldom enough to look at the clock. The state is a TJSMallocState whose opaque
// is the vm.

const mallocOverhead = 8 // bytes that the allocator needs for itself

// newRuntime makes a heap that uses it.
func newRuntime(tls *libc.TLS, self uintptr) uintptr {
	size := int(unsafe.Sizeof(lib.TJSMallocFunctions{}))
	at := tls.Alloc(size)
	defer tls.Free(size)
	*(*lib.TJSMallocFunctions)(pointer(at)) = lib.TJSMallocFunctions{
		Fjs_malloc: mallocPointer(jsMalloc), Fjs_free: freePointer(jsFree),
		Fjs_realloc: reallocPointer(jsRealloc), Fjs_malloc_usable_size: usablePointer(jsUsableSize),
	}
	return lib.XJS_NewRuntime2(tls, at, self)
}

func jsMalloc(tls *libc.TLS, state uintptr, size libc.Tsize_t) uintptr {
	s := (*lib.TJSMallocState)(pointer(state))
	v := vmAt(s.Fopaque)
	if s.Fmalloc_size+size > s.Fmalloc_limit {
		v.starved = true
		return 0
	}
	if !v.deadline.IsZero() && v.overdue() { // statement after statement, none of which is a jump or a call
		return 0
	}
	p := libc.Xmalloc(tls, size)
	if p == 0 {
		v.starved = true
		return 0
	}
	s.Fmalloc_count++
	s.Fmalloc_size += libc.Xmalloc_usable_size(tls, p) + mallocOverhead
	return p
}

func jsFree(tls *libc.TLS, state, p uintptr) {
	if p == 0 {
		return
	}
	s := (*lib.TJSMallocState)(pointer(state))
	s.Fmalloc_count--
	s.Fmalloc_size -= libc.Xmalloc_usable_size(tls, p) + mallocOverhead
	libc.Xfree(tls, p)
}

func jsRealloc(tls *libc.TLS, state, p uintptr, size libc.Tsize_t) uintptr {
	switch {
	case p == 0 && size == 0:
		return 0
	case p == 0:
		return jsMalloc(tls, state, size)
	case size == 0:
		jsFree(tls, state, p)
		return 0
	}
	s := (*lib.TJSMallocState)(pointer(state))
	old := libc.Xmalloc_usable_size(tls, p)
	if s.Fmalloc_size+size-min(old, s.Fmalloc_size) > s.Fmalloc_limit {
		vmAt(s.Fopaque).starved = true
		return 0
	}
	q := libc.Xrealloc(tls, p, size)
	if q == 0 {
		vmAt(s.Fopaque).starved = true
		return 0
	}
	s.Fmalloc_size += libc.Xmalloc_usable_size(tls, q) - old
	return q
}

func jsUsableSize(tls *libc.TLS, p uintptr) libc.Tsize_t { return libc.Xmalloc_usable_size(tls, p) }

// The address of a function of the package, as the engine calls it.

func mallocPointer(f func(*libc.TLS, uintptr, libc.Tsize_t) uintptr) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

func freePointer(f func(*libc.TLS, uintptr, uintptr)) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

func reallocPointer(f func(*libc.TLS, uintptr, uintptr, libc.Tsize_t) uintptr) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

func usablePointer(f func(*libc.TLS, uintptr) libc.Tsize_t) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

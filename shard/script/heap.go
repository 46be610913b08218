package script

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
	allocator "modernc.org/memory"
)

// The allocator of a VM: one of its own, with the limit of the VM and a note when memory was
// refused. That of the C library, which all would share, keeps for good what they ever had
// together; this one gives it all back when the VM closes. The engine asks it for large blocks, and
// for arenas that it divides itself: seldom enough to look at the clock. The state is a
// TJSMallocState whose opaque is the heap.

const mallocOverhead = 8 // bytes that the allocator needs for itself

// heap is the memory of a realm.
type heap struct {
	blocks allocator.Allocator
	limits *limits // of the call that runs
	large  bool    // a large block was freed since the last trim
}

// heapAt is the heap at an address that newRuntime gave to the engine; the vm that it
// lies in is pinned.
func heapAt(opaque uintptr) *heap { return (*heap)(pointer(opaque)) }

// newRuntime makes a runtime that uses the heap at an address.
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

func jsMalloc(_ *libc.TLS, state uintptr, size libc.Tsize_t) uintptr {
	s := (*lib.TJSMallocState)(pointer(state))
	h := heapAt(s.Fopaque)
	if s.Fmalloc_size+size > s.Fmalloc_limit {
		h.limits.starved = true
		return 0
	}
	if !h.limits.deadline.IsZero() && h.limits.overdue() { // statement after statement, none of which is a jump or a call
		return 0
	}
	p := h.malloc(int(size))
	if p == 0 {
		h.limits.starved = true
		return 0
	}
	s.Fmalloc_count++
	s.Fmalloc_size += usableSize(p) + mallocOverhead
	return p
}

func jsFree(_ *libc.TLS, state, p uintptr) {
	if p == 0 {
		return
	}
	s := (*lib.TJSMallocState)(pointer(state))
	s.Fmalloc_count--
	s.Fmalloc_size -= usableSize(p) + mallocOverhead
	heapAt(s.Fopaque).free(p)
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
	h, old := heapAt(s.Fopaque), usableSize(p)
	if s.Fmalloc_size+size-min(old, s.Fmalloc_size) > s.Fmalloc_limit {
		h.limits.starved = true
		return 0
	}
	q, err := h.blocks.UintptrRealloc(p, int(size))
	if err != nil || q == 0 {
		h.limits.starved = true
		return 0
	}
	h.large = h.large || old >= largeBlock
	s.Fmalloc_size += usableSize(q) - old
	return q
}

func jsUsableSize(_ *libc.TLS, p uintptr) libc.Tsize_t { return usableSize(p) }

// largeBlock is the size of a block from which on what was freed goes back to
// the machine when the VM has nothing to do. The allocator keeps the rest: a VM
// would only ask for it again.
const largeBlock = 1 << 20

// malloc returns 0 when there is no memory.
func (h *heap) malloc(size int) uintptr {
	p, err := h.blocks.UintptrMalloc(size)
	if err != nil {
		return 0
	}
	return p
}

func (h *heap) free(p uintptr) {
	if p == 0 {
		return
	}
	h.large = h.large || usableSize(p) >= largeBlock
	_ = h.blocks.UintptrFree(p) // a page that the machine does not take back is kept
}

// trim gives back what large blocks have left.
func (h *heap) trim() {
	if h.large {
		h.large = false
		_ = h.blocks.Trim() // as above
	}
}

// close gives all of it back.
func (h *heap) close() { _ = h.blocks.Close() } // memory that the machine does not take back is lost

func usableSize(p uintptr) libc.Tsize_t { return libc.Tsize_t(allocator.UintptrUsableSize(p)) }

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

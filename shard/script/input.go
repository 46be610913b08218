package script

import "unsafe"

// keepBuffer is the size, in bytes, beyond which buffers are given back after the call.
const keepBuffer = 1 << 20

// input is where texts lie for the engine to read: one at a time, until the next one.
type input struct {
	heap *heap
	at   uintptr
	size int
}

// write copies text to where the engine can read it, with a NUL behind it.
func (in *input) write(text []byte) (uintptr, error) {
	if need := len(text) + 1; need > in.size {
		need = max(need+need/4, 4<<10)
		in.heap.free(in.at)
		if in.at = in.heap.malloc(need); in.at == 0 {
			in.size = 0
			return 0, errOutOfMemory
		}
		in.size = need
	}
	copy(unsafe.Slice((*byte)(pointer(in.at)), in.size), text)
	*(*byte)(pointer(in.at + uintptr(len(text)))) = 0
	return in.at, nil
}

// shrink gives back the memory that one large text has left.
func (in *input) shrink() {
	if in.size > keepBuffer {
		in.heap.free(in.at)
		in.at, in.size = 0, 0
	}
}

package wire

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// Buffers are pooled by powers of two between these; larger ones are left to
// the collector.
const (
	smallestBuffer = 8  // 256 bytes
	largestBuffer  = 22 // 4 MB
)

// bufferPools holds a pool for each power of two. gRPC's own pool has nothing
// between 32 KB and 1 MB, and clears what it hands out: a frame of 40 KB would
// cost a megabyte of writing.
var bufferPools = [largestBuffer - smallestBuffer + 1]sync.Pool{}

// buffers implements mem.BufferPool. What Get returns has any content.
type buffers struct{}

var _ mem.BufferPool = buffers{}

// Get implements mem.BufferPool.
func (buffers) Get(length int) *[]byte {
	class := max(bits.Len(uint(max(length, 1)-1)), smallestBuffer)
	if class > largestBuffer {
		b := make([]byte, length)
		return &b
	}
	if b, ok := bufferPools[class-smallestBuffer].Get().(*[]byte); ok {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length, 1<<class)
	return &b
}

// Put implements mem.BufferPool.
func (buffers) Put(b *[]byte) {
	class := bits.Len(uint(cap(*b))) - 1
	if class < smallestBuffer || class > largestBuffer || cap(*b) != 1<<class {
		return
	}
	bufferPools[class-smallestBuffer].Put(b)
}

package wire

import (
	"fmt"
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// codec is how gRPC encodes messages: without reflection.
type codec struct{}

// Name implements encoding.CodecV2.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(Message)
	if !ok {
		return nil, fmt.Errorf("encode: %T is no message", v)
	}
	b, err := marshal(m)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(b, buffers{})}, nil
}

// Unmarshal implements encoding.CodecV2. What is decoded aliases memory of its
// own, except that of a received frame, which holds on to the buffers.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *received:
		return m.take(data)
	case Message:
		return m.UnmarshalVTUnsafe(data.Materialize())
	}
	return fmt.Errorf("decode: %T is no message", v)
}

// marshal encodes into a pooled buffer, which recycle takes back.
func marshal(m Message) (*[]byte, error) {
	b := buffers{}.Get(m.SizeVT())
	if _, err := m.MarshalToSizedBufferVT(*b); err != nil {
		buffers{}.Put(b)
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b, nil
}

func recycle(b *[]byte) {
	if b != nil {
		buffers{}.Put(b)
	}
}

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

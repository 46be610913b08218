package core

import (
	"bytes"
	"sync"
)

// answerPools is what the answers to all requests share.
type answerPools struct {
	buffers bufferPool
	chunks  chunkPool
}

// bufferPool lends buffers for answers. One that has grown beyond largeBuffer
// is left to the collector, so that a single huge answer does not stay.
type bufferPool struct{ pool sync.Pool }

const largeBuffer = 256 << 10 // bytes

// get returns an empty buffer.
func (p *bufferPool) get() *bytes.Buffer {
	if b, ok := p.pool.Get().(*bytes.Buffer); ok {
		b.Reset()
		return b
	}
	return new(bytes.Buffer)
}

// put takes a buffer back; the caller must not touch it, nor its bytes, again.
func (p *bufferPool) put(b *bytes.Buffer) {
	if b.Cap() <= largeBuffer {
		p.pool.Put(b)
	}
}

package wire

import (
	"fmt"
	"unsafe"

	"google.golang.org/grpc/mem"
)

// message is what the generated messages have.
type message interface {
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVTUnsafe(b []byte) error
}

// codec is how gRPC encodes messages: without reflection.
type codec struct{}

// Name implements encoding.CodecV2.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(message)
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
	case message:
		return m.UnmarshalVTUnsafe(data.Materialize())
	}
	return fmt.Errorf("decode: %T is no message", v)
}

// marshal encodes into a pooled buffer, which recycle takes back.
func marshal(m message) (*[]byte, error) {
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

// text is the bytes as a string without a copy; nobody may write to them any
// more.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// raw is the string as bytes without a copy, to be read only.
func raw(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

package wire

import (
	"fmt"

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

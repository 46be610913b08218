package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// message is a generated message M.
type message[M any] interface {
	*M
	wire.Message
}

// unaryTransport carries an operation that is one message there and one back.
type unaryTransport[Q, A any] struct {
	op     wirepb.Op
	class  wire.Class
	call   func(ctx context.Context, p *wire.Peer, to wire.Addressee, q Q) (A, error)
	answer func(ctx context.Context, to wire.Addressee, body []byte, run func(context.Context, wire.Addressee, Q) (A, error)) (wire.Message, error)
}

// ask implements transport.
func (s *unaryTransport[Q, A]) ask(ctx context.Context, p *wire.Peer, to wire.Addressee, q Q) (A, error) {
	return s.call(ctx, p, to, q)
}

// serve implements transport.
func (s *unaryTransport[Q, A]) serve(o *wire.Operations, run func(context.Context, wire.Addressee, Q) (A, error)) {
	o.Calls[s.op] = wire.Call{Class: s.class, Do: func(ctx context.Context, to wire.Addressee, body []byte) (wire.Message, error) {
		return s.answer(ctx, to, body, run)
	}}
}

// unary returns what carries an operation by the messages MQ and MA. What is
// encoded is only read until it has been sent; what is decoded aliases the
// message's memory, which belongs to it.
func unary[Q, A, MQ, MA any, PQ message[MQ], PA message[MA]](
	op wirepb.Op, class wire.Class, request codec[Q, PQ], answer codec[A, PA],
) *unaryTransport[Q, A] {
	return &unaryTransport[Q, A]{
		op: op, class: class,
		call: func(ctx context.Context, p *wire.Peer, to wire.Addressee, q Q) (a A, err error) {
			m := PA(new(MA))
			if err := p.Call(ctx, wire.Request{Op: op, Class: class, To: to, Body: request.encode(&q)}, m); err != nil {
				return a, err
			}
			return answer.decode(m), nil
		},
		answer: func(ctx context.Context, to wire.Addressee, body []byte, run func(context.Context, wire.Addressee, Q) (A, error)) (wire.Message, error) {
			m := PQ(new(MQ))
			if err := wire.Decode(body, m); err != nil {
				return nil, err
			}
			a, err := run(ctx, to, request.decode(m))
			if err != nil {
				return nil, err
			}
			return answer.encode(&a), nil
		},
	}
}

// codec turns a T into its message P and back.
type codec[T, P any] struct {
	encode func(t *T) P
	decode func(m P) T
}

// each refuses an answer that has not one part for each part of the request: a
// faulty node is not believed.
func (s *unaryTransport[Q, A]) each(parts func(q Q) int, answers func(a A) int) *unaryTransport[Q, A] {
	call := s.call
	s.call = func(ctx context.Context, p *wire.Peer, to wire.Addressee, q Q) (A, error) {
		a, err := call(ctx, p, to, q)
		if got, want := answers(a), parts(q); err == nil && got != want {
			var none A
			return none, fault.Newf(fault.Internal, "node %s gave %d answers to %d questions", p.Name(), got, want)
		}
		return a, err
	}
	return s
}

// Done is the answer of an operation that has none.
type Done struct{}

func doneCodec() codec[Done, *wirepb.Nothing] {
	return codec[Done, *wirepb.Nothing]{
		func(*Done) *wirepb.Nothing { return &wirepb.Nothing{} },
		func(*wirepb.Nothing) Done { return Done{} },
	}
}

// copyName is a request that says nothing but which copy.
func copyName(q string) string { return q }

func copyCodec() codec[string, *wirepb.Copy] {
	return codec[string, *wirepb.Copy]{
		func(q *string) *wirepb.Copy { return &wirepb.Copy{Copy: *q} },
		func(m *wirepb.Copy) string { return name(m.Copy) },
	}
}

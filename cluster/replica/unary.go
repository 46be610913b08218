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

// unaryTransport carries an operation by one message MQ there and one MA back.
type unaryTransport[Q, A, MQ, MA any, PQ message[MQ], PA message[MA]] struct {
	op      wirepb.Op
	class   wire.Class
	request codec[Q, PQ]
	answer  codec[A, PA]
	parts   func(q Q, a A) (asked, answered int) // see each; nil: nothing is compared
}

// unary returns what carries an operation. What is encoded is only read until it has
// been sent; what is decoded aliases the message's memory, which belongs to it.
func unary[Q, A, MQ, MA any, PQ message[MQ], PA message[MA]](
	op wirepb.Op, class wire.Class, request codec[Q, PQ], answer codec[A, PA],
) *unaryTransport[Q, A, MQ, MA, PQ, PA] {
	return &unaryTransport[Q, A, MQ, MA, PQ, PA]{op: op, class: class, request: request, answer: answer}
}

// each refuses an answer that has not one part for each part of the request: a
// faulty node is not believed.
func (s *unaryTransport[Q, A, MQ, MA, PQ, PA]) each(parts func(q Q, a A) (asked, answered int)) *unaryTransport[Q, A, MQ, MA, PQ, PA] {
	s.parts = parts
	return s
}

// ask implements transport.
func (s *unaryTransport[Q, A, MQ, MA, PQ, PA]) ask(ctx context.Context, p *wire.Peer, to wire.Addressee, q Q) (none A, err error) {
	m := PA(new(MA))
	if err := p.Call(ctx, wire.Request{Op: s.op, Class: s.class, To: to, Body: s.request.encode(&q)}, m); err != nil {
		return none, err
	}
	a := s.answer.decode(m)
	if s.parts != nil {
		if asked, answered := s.parts(q, a); asked != answered {
			return none, fault.Newf(fault.Internal, "node %s gave %d answers to %d questions", p.Name(), answered, asked)
		}
	}
	return a, nil
}

// serve implements transport.
func (s *unaryTransport[Q, A, MQ, MA, PQ, PA]) serve(o *wire.Operations, run func(context.Context, wire.Addressee, Q) (A, error)) {
	o.Calls[s.op] = wire.Call{Class: s.class, Do: func(ctx context.Context, to wire.Addressee, body []byte) (wire.Message, error) {
		m := PQ(new(MQ))
		if err := wire.Decode(body, m); err != nil {
			return nil, err
		}
		a, err := run(ctx, to, s.request.decode(m))
		if err != nil {
			return nil, err
		}
		return s.answer.encode(&a), nil
	}}
}

// codec turns a T into its message P and back.
type codec[T, P any] struct {
	encode func(t *T) P
	decode func(m P) T
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

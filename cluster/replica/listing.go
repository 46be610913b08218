package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// Listing is an open listing of one copy at one moment: H is the metadata that the copy sends
// before the rows, B a batch of them. It ends early with an error when the context it was opened
// with does, and holds what it reads from until it is closed.
type Listing[H, B any] struct {
	Head H
	Stream[B]
}

// Stream gives the rows of a listing.
type Stream[B any] interface {
	// Next fills the batch with the next rows. more is false when there are none
	// after it; the batch may then still hold rows.
	Next(b *B) (more bool, err error)
	// Close lets go of the moment. It may be called more than once.
	Close()
}

// Pending counts what comes after a sequence in the direction of a feed of
// changes, filters not applied. Another goroutine may call Next meanwhile.
func (l *Listing[H, B]) Pending(after uint64) (uint64, error) {
	if p, ok := l.Stream.(interface{ Pending(uint64) (uint64, error) }); ok {
		return p.Pending(after)
	}
	return 0, fault.New(fault.Internal, "only changes can be pending")
}

// batchMessage is a generated message M that is used again and again.
type batchMessage[M any] interface {
	message[M]
	ResetVT()
}

// batchCodec turns a batch B into its message P, whose memory encode may use again,
// and appends the rows of a message to a batch, whose rows it then counts.
type batchCodec[B, P any] struct {
	encode func(b *B, into P)
	decode func(m P, b *B)
	clear  func(b *B)
	count  func(b *B) int
}

// listingTransport carries an operation that is answered with a Listing, by the
// messages MQ of its request, MH of its head and MB of its batches.
type listingTransport[Q, H, B, MQ, MH, MB any, PQ message[MQ], PH message[MH], PB batchMessage[MB]] struct {
	op      wirepb.Op
	request codec[Q, PQ]
	head    codec[H, PH]
	batch   batchCodec[B, PB]
	limit   func(q Q) int // the hint of how many rows will be read; 0 = unknown
}

// listing returns what carries an operation.
func listing[Q, H, B, MQ, MH, MB any, PQ message[MQ], PH message[MH], PB batchMessage[MB]](
	op wirepb.Op, request codec[Q, PQ], head codec[H, PH], batch batchCodec[B, PB], limit func(q Q) int,
) *listingTransport[Q, H, B, MQ, MH, MB, PQ, PH, PB] {
	return &listingTransport[Q, H, B, MQ, MH, MB, PQ, PH, PB]{op, request, head, batch, limit}
}

// ask implements transport.
func (s *listingTransport[Q, H, B, MQ, MH, MB, PQ, PH, PB]) ask(ctx context.Context, p *wire.Peer, to wire.Addressee, q Q) (Listing[H, B], error) {
	m := PH(new(MH))
	from, err := p.List(ctx, wire.Request{Op: s.op, To: to, Body: s.request.encode(&q)}, m, s.limit(q))
	if err != nil {
		return Listing[H, B]{}, err
	}
	return Listing[H, B]{s.head.decode(m), &remoteRows[B, MB, PB]{Rows: from, batch: s.batch, message: new(MB)}}, nil
}

// serve implements transport.
func (s *listingTransport[Q, H, B, MQ, MH, MB, PQ, PH, PB]) serve(o *wire.Operations, run func(context.Context, wire.Addressee, Q) (Listing[H, B], error)) {
	o.Listings[s.op] = wire.Listing{Open: func(ctx context.Context, to wire.Addressee, body []byte) (*wire.Source, error) {
		m := PQ(new(MQ))
		if err := wire.Decode(body, m); err != nil {
			return nil, err
		}
		l, err := run(ctx, to, s.request.decode(m))
		if err != nil {
			return nil, err
		}
		var b B
		out := PB(new(MB))
		return &wire.Source{
			Head: s.head.encode(&l.Head), Pending: l.Pending, Close: l.Close,
			Next: func() (wire.Message, bool, error) {
				more, err := l.Next(&b)
				s.batch.encode(&b, out)
				return out, more, err
			},
		}, nil
	}}
}

// remoteRows is the rows of a copy on another node.
type remoteRows[B, MB any, PB batchMessage[MB]] struct {
	*wire.Rows
	batch   batchCodec[B, PB]
	message PB
}

// Next implements Stream.
func (r *remoteRows[B, MB, PB]) Next(b *B) (more bool, err error) {
	r.batch.clear(b)
	r.message.ResetVT()
	return r.Rows.Next(r.message, func() int {
		r.batch.decode(r.message, b)
		return r.batch.count(b)
	})
}

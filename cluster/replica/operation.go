package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Copy is one copy as a request means it: at a node, with the id that it has in the map
// of its database. Its name, which says where it lies there, is in the request.
type Copy struct {
	At Copies // of the node that holds it; nil: it cannot be reached
	To wire.Addressee
}

// Of returns a copy that the map has, at its node; nil: that cannot be reached.
func Of(at Copies, r ring.Replica) Copy {
	return Copy{At: at, To: wire.Addressee{Copy: r.ID, Generation: r.Generation}}
}

// Away reports whether the node cannot be reached.
func (c Copy) Away() bool { return c.At == nil }

// Copies is the copies that one node holds: *Local or Remote, or what a test puts in
// front of them to see and refuse calls.
type Copies interface {
	// Do does a call on one of the copies. An error that is no *fault.Error, or one
	// of the kinds that quorum.Usable excludes, says that the copy could not answer;
	// fault.NoCopy that the node does not hold it.
	Do(ctx context.Context, c Call) error
}

// Call is an operation with its request, and later its answer: an *Asked.
type Call interface {
	On(ctx context.Context, at Copies) error
}

// Operation is one thing that can be asked of a copy: Q is the request, A the
// answer. Requests are handed on by value, so that asking a copy of this node
// allocates nothing.
type Operation[Q, A any] struct {
	// Copy returns the name of the copy, as in the shard map.
	Copy func(q Q) string
	// Needs is the state that the copy has to be in.
	Needs State
	// Counted is for what a coordinator counts the answers of: it is refused unless it was
	// made by the very map of the database that this node has.
	Counted bool
	// Writes is for changes that a coordinator counts; see writefence.Fence.
	Writes bool
	// Unheld is set where no copy is opened: any of that name is taken away, or none is read.
	Unheld bool
	// Run does it on a copy of this node.
	Run func(h Admitted, ctx context.Context, q Q) (A, error)
	// Over carries it to another node.
	Over transport[Q, A]
}

// Admitted is a call that was let in: the copies of this node, and the one that it is for.
type Admitted struct {
	*Held
	Open shard.OpenCopy // none of an operation that is Unheld
}

// transport carries one operation between nodes.
type transport[Q, A any] interface {
	// ask has another node do it.
	ask(ctx context.Context, p *wire.Peer, to wire.Addressee, q Q) (A, error)
	// serve adds it to what this node does for others.
	serve(o *wire.Operations, run func(ctx context.Context, to wire.Addressee, q Q) (A, error))
}

// On does the operation on a copy of a node that can be reached.
func (o *Operation[Q, A]) On(ctx context.Context, c Copy, q Q) (A, error) {
	switch at := c.At.(type) { // without an allocation
	case *Local:
		return o.here(ctx, at, c.To, q)
	case Remote:
		return o.Over.ask(ctx, at.peer, c.To, q)
	}
	call := &Asked[Q, A]{Operation: o, To: c.To, Request: q}
	err := c.At.Do(ctx, call)
	return call.Answer, err
}

// here does the operation on a copy of this node.
func (o *Operation[Q, A]) here(ctx context.Context, l *Local, to wire.Addressee, q Q) (A, error) {
	if o.Writes {
		fence := &l.held.Shards.Writes
		epoch := fence.Begin()
		defer fence.End(epoch)
	}
	open, err := l.admit(ctx, o.Copy(q), to, demand{needs: o.Needs, counted: o.Counted, unheld: o.Unheld})
	if err != nil {
		var none A
		return none, err
	}
	defer open.Close()
	return o.Run(Admitted{&l.held, open}, ctx, q)
}

// serve implements served.
func (o *Operation[Q, A]) serve(t *wire.Operations, l *Local) {
	o.Over.serve(t, func(ctx context.Context, to wire.Addressee, q Q) (A, error) { return o.here(ctx, l, to, q) })
}

// Asked is a Call of one operation.
type Asked[Q, A any] struct {
	Operation *Operation[Q, A]
	To        wire.Addressee
	Request   Q
	Answer    A
}

// On implements Call.
func (c *Asked[Q, A]) On(ctx context.Context, at Copies) (err error) {
	c.Answer, err = c.Operation.On(ctx, Copy{at, c.To}, c.Request)
	return err
}

// shards is a Run that needs nothing but the copies.
func shards[Q, A any](do func(l *shard.Local, ctx context.Context, q Q) (A, error)) func(h Admitted, ctx context.Context, q Q) (A, error) {
	return func(h Admitted, ctx context.Context, q Q) (A, error) { return do(h.Shards, ctx, q) }
}

// declare makes a package variable of an operation, which is never assigned to again.
func declare[Q, A any](o Operation[Q, A]) *Operation[Q, A] { return &o }

// served is an operation of any kind.
type served interface {
	serve(t *wire.Operations, l *Local)
}

// all lists the operations that other nodes can ask for.
func all() []served {
	return []served{
		Decide, Follow, Purge, PutAttachment, DropAttachments,
		Open, OpenRevs, OpenRevsMany, Missing, DocsByID, LocalGet, ReadAttachment,
		AllDocs, LocalDocs, Changes, Find, Purges, Position, Watch,
		Drop, Info, Partition, Compact,
		ViewQuery, ViewInfo, ViewCompact,
		Search, SearchInfo, IndexCleanup,
	}
}

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

// Remote is the copies of another node. A node that cannot be reached, or stops
// answering while a call is under way, makes it fail with fault.NodeDown.
type Remote struct{ peer *wire.Peer }

// On returns the copies of a node.
func On(p *wire.Peer) Remote { return Remote{p} }

// Do implements Copies.
func (r Remote) Do(ctx context.Context, c Call) error { return c.On(ctx, r) }

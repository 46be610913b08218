package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/shard"
)

// Copy is one copy as a request means it: at a node, with the id that it has in the map
// of its database. Its name, which says where it lies there, is in the request.
type Copy struct {
	At Copies // of the node that holds it; nil: it cannot be reached
	To wire.Addressee
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
	// Writes is for changes that a coordinator counts; see shard.WriteFence.
	Writes bool
	// Unheld is for what makes a copy, takes any of that name away, or reads nothing of it.
	Unheld bool
	// NeedsOf is Needs where that depends on the request; nil: it does not.
	NeedsOf func(q Q) State
	// Run does it on a copy of this node.
	Run func(h *Held, ctx context.Context, q Q) (A, error)
	// Over carries it to another node.
	Over transport[Q, A]
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
	needs := o.Needs
	if o.NeedsOf != nil {
		needs = o.NeedsOf(q)
	}
	if o.Writes {
		fence := &l.held.Shards.Writes
		epoch := fence.Begin()
		defer fence.End(epoch)
	}
	hold, err := l.admit(ctx, o.Copy(q), to, demand{needs: needs, counted: o.Counted, unheld: o.Unheld})
	if err != nil {
		var none A
		return none, err
	}
	defer hold.End()
	return o.Run(&l.held, ctx, q)
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
func shards[Q, A any](do func(l *shard.Local, ctx context.Context, q Q) (A, error)) func(h *Held, ctx context.Context, q Q) (A, error) {
	return func(h *Held, ctx context.Context, q Q) (A, error) { return do(h.Shards, ctx, q) }
}

// declare makes a package variable of an operation: nobody assigns to it again.
func declare[Q, A any](o Operation[Q, A]) *Operation[Q, A] { return &o }

// served is an operation of any kind.
type served interface {
	serve(t *wire.Operations, l *Local)
}

// all lists the operations that other nodes can ask for.
func all() []served {
	return []served{
		Update, Purge, PutAttachment, DropAttachments,
		Open, OpenRevs, OpenRevsMany, Missing, DocsByID, LocalGet, ReadAttachment,
		AllDocs, LocalDocs, Changes, Find, Purges, Position, Watch,
		Create, Drop, Info, Partition, Compact,
		ViewQuery, ViewInfo, IndexCleanup, ViewCompact,
	}
}

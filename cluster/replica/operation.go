package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/shard"
)

// Copies is the copies that one node holds: *Local or Remote.
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
	ask(ctx context.Context, p *wire.Peer, q Q) (A, error)
	// serve adds it to what this node does for others.
	serve(o *wire.Operations, run func(ctx context.Context, q Q) (A, error))
}

// On does the operation on one of the copies of a node.
func (o *Operation[Q, A]) On(ctx context.Context, at Copies, q Q) (A, error) {
	switch at := at.(type) { // without an allocation
	case *Local:
		return o.here(ctx, at, q)
	case Remote:
		return o.Over.ask(ctx, at.peer, q)
	}
	c := &Asked[Q, A]{Operation: o, Request: q}
	err := at.Do(ctx, c)
	return c.Answer, err
}

// here does the operation on a copy of this node.
func (o *Operation[Q, A]) here(ctx context.Context, l *Local, q Q) (A, error) {
	needs := o.Needs
	if o.NeedsOf != nil {
		needs = o.NeedsOf(q)
	}
	if err := l.check(ctx, o.Copy(q), needs); err != nil {
		var none A
		return none, err
	}
	return o.Run(&l.held, ctx, q)
}

// serve implements served.
func (o *Operation[Q, A]) serve(t *wire.Operations, l *Local) {
	o.Over.serve(t, func(ctx context.Context, q Q) (A, error) { return o.here(ctx, l, q) })
}

// Asked is a Call of one operation.
type Asked[Q, A any] struct {
	Operation *Operation[Q, A]
	Request   Q
	Answer    A
}

// On implements Call.
func (c *Asked[Q, A]) On(ctx context.Context, at Copies) (err error) {
	c.Answer, err = c.Operation.On(ctx, at, c.Request)
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
		ViewQuery, ViewInfo, ViewCleanup, ViewCompact,
	}
}

package wire

import (
	"context"

	"divan/cluster/wire/wirepb"
)

// class orders calls by what they may wait for: one of a class waits only for
// calls of lower ones. Each class has room of its own, there and on the way,
// so that calls never wait in a circle for each other's room.
type class int

// The classes.
const (
	classRead  class = iota // waits for nobody
	classWrite              // its validation may read elsewhere
	classAsk                // anything
	classes
)

func classOf(op wirepb.Op) class {
	switch op {
	case wirepb.Op_ASK:
		return classAsk
	case wirepb.Op_UPDATE, wirepb.Op_PURGE, wirepb.Op_CREATE, wirepb.Op_DROP, wirepb.Op_COMPACT, wirepb.Op_DROP_ATTACHMENTS:
		return classWrite
	default:
		return classRead
	}
}

type repairKey struct{}

// ForRepair marks the calls made with the context as made by repair. Other
// nodes see that mark with IsRepair.
func ForRepair(ctx context.Context) context.Context {
	return context.WithValue(ctx, repairKey{}, true)
}

// IsRepair reports whether a call is made by repair, on this node or another.
func IsRepair(ctx context.Context) bool { return ctx.Value(repairKey{}) != nil }

package wire

import (
	"context"
	"io"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// Message holds the methods that all generated messages have.
type Message interface {
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVTUnsafe(b []byte) error
}

// Request is one message to another node.
type Request struct {
	Op    wirepb.Op
	Class Class // of a call
	To    Addressee
	Body  Message
}

// Operations holds the functions by which a node serves other nodes with its copies. A call of
// another operation is refused with fault.Unavailable.
type Operations struct {
	Calls          map[wirepb.Op]Call
	Listings       map[wirepb.Op]Listing
	ReadAttachment func(ctx context.Context, m *wirepb.AttachmentRange) (io.ReadCloser, error)
	PutAttachment  func(ctx context.Context, m *wirepb.AttachmentPart) (AttachmentWriter, error)
	Watch          func(ctx context.Context, to Addressee, copyName string, c chan struct{}) (io.Closer, error)
}

// Addressee says which copy a request is meant for, beside the name of the copy in it.
type Addressee struct {
	Copy       uint64 // its id in the map of its database; 0: the node that asks knows none
	Generation uint64 // of that map, as the node that asks knows it
}

// NewOperations returns operations that are still to be added.
func NewOperations() Operations {
	return Operations{Calls: map[wirepb.Op]Call{}, Listings: map[wirepb.Op]Listing{}}
}

// Call is an operation that one message asks for and one message answers. Do
// decodes the request, whose memory is its own, and returns the answer.
type Call struct {
	Class Class
	Do    func(ctx context.Context, to Addressee, request []byte) (Message, error)
}

// Listing is an operation that is answered with rows: Open decodes the request
// and returns what gives them.
type Listing struct {
	Open func(ctx context.Context, to Addressee, request []byte) (*Source, error)
}

// Source is an open listing of a copy of this node. What Head and Next return
// is encoded before Next is called again.
type Source struct {
	Head    Message
	Next    func() (rows Message, more bool, err error)
	Pending func(after uint64) (uint64, error) // how many changes come after a sequence
	Close   func()
}

// AttachmentWriter takes the content of an attachment. Close makes it durable;
// Abort drops it, and does nothing after Close.
type AttachmentWriter interface {
	io.WriteCloser
	Abort()
}

// Class orders calls by what they may wait for: one of a class waits only for
// calls of lower ones. Each class has space of its own, there and on the way,
// so that calls never wait in a circle for each other's space.
type Class int

// The classes.
const (
	ClassRead  Class = iota // waits for no other call
	ClassWrite              // its validation may read elsewhere
	ClassAsk                // anything
	classes
)

// Decode reads a message that another node has sent into m.
func Decode(body []byte, m Message) error {
	if err := m.UnmarshalVTUnsafe(body); err != nil {
		return fault.Wrap(fault.Internal, "a message of another node cannot be read", err)
	}
	return nil
}

type repairKey struct{}

// ForRepair marks the calls made with the context as made by repair. Other
// nodes see that mark with IsRepair.
func ForRepair(ctx context.Context) context.Context {
	return context.WithValue(ctx, repairKey{}, true)
}

// IsRepair reports whether a call is made by repair, on this node or another.
func IsRepair(ctx context.Context) bool { return ctx.Value(repairKey{}) != nil }

// marked is ctx, marked when another node says that it is for repair.
func marked(ctx context.Context, repair bool) context.Context {
	if repair {
		return ForRepair(ctx)
	}
	return ctx
}

func errNoCopies() error { return fault.New(fault.Unavailable, "This node serves no copies.") }

// errUnknown says that this node is too old, or serves no copies.
func errUnknown(op wirepb.Op) error {
	return fault.Newf(fault.Unavailable, "This node does not serve %s.", op)
}

package wire

import (
	"context"

	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/storage/fault"
)

// source is an open listing of a copy of this node.
type source struct {
	head    *wirepb.ListHead
	next    func(*wirepb.ListPart) (more bool, err error) // fills in the rows
	pending func(after uint64) (uint64, error)            // nil: no such question
	close   func()
}

// List implements wirepb.NodeServer. Nothing is read before it is asked for.
func (s *Server) List(stream grpc.BidiStreamingServer[wirepb.ListCommand, wirepb.ListPart]) error {
	open, err := stream.Recv()
	if err != nil {
		return err
	}
	ctx := stream.Context()
	if open.Repair {
		ctx = ForRepair(ctx)
	}
	var from *source
	err = s.guarded(method("List"), func() (err error) {
		from, err = s.source(ctx, open)
		return err
	})
	if err != nil {
		return stream.Send(&wirepb.ListPart{Fault: encodeFault(err)})
	}
	defer from.close()
	head, more, command := from.head, true, &wirepb.ListCommand{}
	for {
		part := &wirepb.ListPart{Head: head, More: more}
		head = nil
		err := s.guarded(method("List"), func() error { return from.answer(command, part) })
		if err != nil {
			return stream.Send(&wirepb.ListPart{Fault: encodeFault(err)})
		}
		if !part.Pending {
			more = part.More
		}
		if err := stream.Send(part); err != nil {
			return err
		}
		if command, err = stream.Recv(); err != nil {
			return nil // the other side has what it wanted
		}
	}
}

// answer fills in what a command asks for; part.More says whether there are
// rows.
func (f *source) answer(command *wirepb.ListCommand, part *wirepb.ListPart) (err error) {
	switch {
	case command.Pending && f.pending == nil:
		return fault.New(fault.Internal, "only changes can be pending")
	case command.Pending:
		part.Pending = true
		part.Count, err = f.pending(command.After)
		return err
	case part.More:
		part.More, err = f.next(part)
		return err
	default:
		return nil
	}
}

// source opens the listing that a command asks for.
func (s *Server) source(ctx context.Context, open *wirepb.ListCommand) (*source, error) {
	var e rowEncoder
	switch {
	case s.copies == nil:
		return nil, fault.New(fault.Unavailable, "This node serves no copies.")
	case open.Docs != nil:
		l, err := s.copies.AllDocs(ctx, decodeDocsRequest(open.Docs))
		if err != nil {
			return nil, err
		}
		var b shard.RowBatch
		return &source{
			head: &wirepb.ListHead{Total: l.Total, Before: l.Before, Seq: l.Seq, Uuid: l.UUID[:]},
			next: func(part *wirepb.ListPart) (bool, error) {
				more, err := l.Next(&b)
				part.Docs = e.docs(&b)
				return more, err
			},
			close: l.Close,
		}, nil
	case open.Locals != nil:
		l, err := s.copies.LocalDocs(ctx, decodeLocalDocsRequest(open.Locals))
		if err != nil {
			return nil, err
		}
		var b shard.LocalBatch
		return &source{
			head: &wirepb.ListHead{},
			next: func(part *wirepb.ListPart) (bool, error) {
				more, err := l.Next(&b)
				part.Locals = e.locals(&b)
				return more, err
			},
			close: l.Close,
		}, nil
	case open.Changes != nil:
		return s.changes(ctx, open.Changes)
	default:
		return nil, fault.New(fault.Unavailable, "This node does not know that listing yet.")
	}
}

func (s *Server) changes(ctx context.Context, m *wirepb.ChangesRequest) (*source, error) {
	l, err := s.copies.Changes(ctx, decodeChangesRequest(m))
	if err != nil {
		return nil, err
	}
	var b shard.ChangeBatch
	var e rowEncoder
	return &source{
		head: &wirepb.ListHead{Seq: l.Seq, Uuid: l.UUID[:]},
		next: func(part *wirepb.ListPart) (bool, error) {
			more, err := l.Next(&b)
			part.Changes = e.changes(&b)
			return more, err
		},
		pending: l.Pending,
		close:   l.Close,
	}, nil
}

package wire

import (
	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
)

// List implements wirepb.NodeServer. Nothing is read before it is asked for.
func (s *Server) List(stream grpc.BidiStreamingServer[wirepb.ListCommand, wirepb.ListPart]) error {
	open, err := stream.Recv()
	if err != nil {
		return err
	}
	list, known := s.operations.Listings[open.Op]
	if !known {
		return stream.Send(&wirepb.ListPart{Fault: EncodeFault(errUnknown(open.Op))})
	}
	var from *Source
	err = s.guarded(method("List"), func() (err error) {
		from, err = list.Open(marked(stream.Context(), open.Repair), Addressee{open.Copy, open.Generation}, open.Request)
		return err
	})
	if err != nil {
		return stream.Send(&wirepb.ListPart{Fault: EncodeFault(err)})
	}
	defer from.Close()
	head, err := marshal(from.Head)
	if err != nil {
		return err
	}
	defer recycle(head)
	part, command := &wirepb.ListPart{Head: *head, More: true}, &wirepb.ListCommand{}
	for {
		var rows *[]byte
		err := s.guarded(method("List"), func() (err error) {
			rows, err = answer(from, command, part)
			return err
		})
		if err != nil {
			return stream.Send(&wirepb.ListPart{Fault: EncodeFault(err)})
		}
		err = stream.Send(part)
		recycle(rows)
		if err != nil {
			return err
		}
		if command, err = stream.Recv(); err != nil {
			return nil // the other side has what it wanted
		}
		part = &wirepb.ListPart{More: part.More}
	}
}

// answer fills in what a command asks for; part.More says whether there are
// rows. The rows are in the buffer that it returns, to be recycled.
func answer(from *Source, command *wirepb.ListCommand, part *wirepb.ListPart) (*[]byte, error) {
	switch {
	case command.Pending:
		n, err := from.Pending(command.After)
		part.Pending, part.Count = true, n
		return nil, err
	case part.More:
		rows, more, err := from.Next()
		if err != nil {
			return nil, err
		}
		b, err := marshal(rows)
		if err != nil {
			return nil, err
		}
		part.Rows, part.More = *b, more
		return b, nil
	default:
		return nil, nil
	}
}

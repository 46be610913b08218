package wire

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/storage/fault"
)

// ReadAttachment implements wirepb.NodeServer.
func (s *Server) ReadAttachment(m *wirepb.AttachmentRange, stream grpc.ServerStreamingServer[wirepb.Chunk]) error {
	ctx := stream.Context()
	if m.Repair {
		ctx = ForRepair(ctx)
	}
	var sent error // that a part could not be sent
	err := s.guarded(method("ReadAttachment"), func() error {
		if s.copies == nil {
			return fault.New(fault.Unavailable, "This node serves no copies.")
		}
		r, err := s.copies.ReadAttachment(ctx, shard.AttachmentRange{
			Copy: name(m.Copy), ID: name(m.Id), Key: decode16(m.Key), Offset: m.Offset, Length: m.Length,
		})
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		if sent = stream.Send(&wirepb.Chunk{}); sent != nil {
			return nil
		}
		err, sent = pump(r, stream.Send)
		return err
	})
	if err != nil && sent == nil {
		sent = stream.Send(&wirepb.Chunk{Fault: encodeFault(err)})
	}
	return sent
}

// pump sends what r has. read is why reading has failed, sent why sending has.
func pump(r io.Reader, send func(*wirepb.Chunk) error) (read, sent error) {
	b := buffers{}.Get(chunkSize)
	defer recycle(b)
	for {
		n, err := 0, error(nil)
		for n < len(*b) && err == nil { // few large parts, also of a reader that gives little at once
			var k int
			k, err = r.Read((*b)[n:])
			n += k
		}
		if n > 0 {
			if sent := send(&wirepb.Chunk{Data: (*b)[:n]}); sent != nil {
				return nil, sent
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return err, nil
		}
	}
}

// PutAttachment implements wirepb.NodeServer. An upload that ends without its
// last part is dropped.
func (s *Server) PutAttachment(stream grpc.BidiStreamingServer[wirepb.AttachmentPart, wirepb.Chunk]) error {
	var sent error
	err := s.guarded(method("PutAttachment"), func() (err error) {
		first, err := stream.Recv()
		if err != nil {
			return err
		}
		ctx := stream.Context()
		if first.Repair {
			ctx = ForRepair(ctx)
		}
		to, err := s.sink(ctx, first)
		if err != nil {
			return err
		}
		defer to.Abort() // does nothing after Close
		if sent = stream.Send(&wirepb.Chunk{}); sent != nil {
			return nil
		}
		if err := fill(to, stream.Recv); err != nil {
			return err
		}
		return to.Close()
	})
	if sent != nil {
		return sent
	}
	return stream.Send(&wirepb.Chunk{Fault: encodeFault(err)})
}

func (s *Server) sink(ctx context.Context, first *wirepb.AttachmentPart) (shard.AttachmentSink, error) {
	if s.copies == nil {
		return nil, fault.New(fault.Unavailable, "This node serves no copies.")
	}
	return s.copies.PutAttachment(ctx, name(first.Copy), name(first.Id), decode16(first.Key))
}

// fill writes what comes until the last part.
func fill(to io.Writer, next func() (*wirepb.AttachmentPart, error)) error {
	for {
		part, err := next()
		if err != nil {
			return err
		}
		if len(part.Data) > 0 {
			if _, err := to.Write(part.Data); err != nil {
				return err
			}
		}
		if part.Done {
			return nil
		}
	}
}

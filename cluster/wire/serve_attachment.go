package wire

import (
	"errors"
	"io"

	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
)

// ReadAttachment implements wirepb.NodeServer.
func (s *Server) ReadAttachment(m *wirepb.AttachmentRange, stream grpc.ServerStreamingServer[wirepb.Chunk]) error {
	ctx := marked(stream.Context(), m.Repair)
	var sent error // that a part could not be sent
	err := s.guarded(method("ReadAttachment"), func() error {
		if s.operations.ReadAttachment == nil {
			return errNoCopies()
		}
		r, err := s.operations.ReadAttachment(ctx, m)
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
		sent = stream.Send(&wirepb.Chunk{Fault: EncodeFault(err)})
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
		if s.operations.PutAttachment == nil {
			return errNoCopies()
		}
		to, err := s.operations.PutAttachment(marked(stream.Context(), first.Repair), first)
		if err != nil {
			return err
		}
		defer to.Abort() // does nothing after Close
		if sent = stream.Send(&wirepb.Chunk{}); sent != nil {
			return nil
		}
		if err := copyParts(to, stream.Recv); err != nil {
			return err
		}
		return to.Close()
	})
	if sent != nil {
		return sent
	}
	return stream.Send(&wirepb.Chunk{Fault: EncodeFault(err)})
}

// copyParts writes what comes until the last part.
func copyParts(to io.Writer, next func() (*wirepb.AttachmentPart, error)) error {
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

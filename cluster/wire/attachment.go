package wire

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// chunkSize is how many bytes of an attachment travel in one message.
const chunkSize = 64 << 10

// errAborted is the error of an upload that is given up, as the other side sees it.
var errAborted = errors.New("the upload was given up")

// ReadAttachment reads stored bytes of a copy on the node. Only what is read is
// sent ahead, up to the window of a stream.
func (p *Peer) ReadAttachment(ctx context.Context, m *wirepb.AttachmentRange) (io.ReadCloser, error) {
	a := &attachmentReader{}
	inner, err := p.open(ctx, &a.opened)
	if err != nil {
		return nil, err
	}
	m.Repair = IsRepair(ctx)
	a.stream, err = a.conn.client.ReadAttachment(inner, m)
	if err == nil {
		err = a.receive() // the first part: it is there, or the fault
	} else {
		err = a.lost(err)
	}
	if err != nil {
		a.end()
		return nil, err
	}
	return a, nil
}

// attachmentReader reads from another node. It is used by one goroutine.
type attachmentReader struct {
	opened
	stream grpc.ServerStreamingClient[wirepb.Chunk]
	rest   []byte // received and not read
	err    error
}

// Read implements io.Reader.
func (a *attachmentReader) Read(b []byte) (int, error) {
	for len(a.rest) == 0 && a.err == nil && len(b) > 0 {
		a.err = a.receive()
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	if n > 0 || len(b) == 0 {
		return n, nil
	}
	return 0, a.err
}

// receive takes the next part.
func (a *attachmentReader) receive() error {
	var c wirepb.Chunk
	err := a.stream.RecvMsg(&c)
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil:
		return a.lost(err)
	case c.Fault != nil:
		return DecodeFault(c.Fault)
	}
	a.rest = c.Data
	return nil
}

// Close implements io.Closer. It may be called more than once.
func (a *attachmentReader) Close() error {
	a.end()
	return nil
}

// PutAttachment stores bytes on a copy of the node; first names them. Write waits
// while the window of the stream is full.
func (p *Peer) PutAttachment(ctx context.Context, first *wirepb.AttachmentPart) (AttachmentWriter, error) {
	s := &attachmentWriter{}
	inner, err := p.open(ctx, &s.opened)
	if err != nil {
		return nil, err
	}
	if s.stream, err = s.conn.client.PutAttachment(inner); err != nil {
		s.end()
		return nil, s.lost(err)
	}
	first.Repair = IsRepair(ctx)
	err = s.send(first)
	if err == nil {
		err = s.hear()
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// attachmentWriter writes to another node. It is used by one goroutine.
type attachmentWriter struct {
	opened
	stream grpc.BidiStreamingClient[wirepb.AttachmentPart, wirepb.Chunk]
	part   wirepb.AttachmentPart
	err    error // why writing has failed
}

// Write implements io.Writer.
func (s *attachmentWriter) Write(b []byte) (n int, err error) {
	for n < len(b) && s.err == nil {
		end := min(n+chunkSize, len(b))
		s.part.Data = b[n:end]
		if s.err = s.send(&s.part); s.err == nil {
			n = end
		}
		s.part.Data = nil
	}
	return n, s.err
}

// send sends a part, or finds out why the other side takes no more.
func (s *attachmentWriter) send(part *wirepb.AttachmentPart) error {
	err := s.stream.Send(part)
	if errors.Is(err, io.EOF) {
		if err = s.hear(); err == nil {
			err = fault.New(fault.Internal, "node "+s.conn.node+" ended an upload early")
		}
		return err
	}
	if err != nil {
		return s.lost(err)
	}
	return nil
}

// hear waits for a word of the other side.
func (s *attachmentWriter) hear() error {
	c, err := s.stream.Recv()
	if err != nil {
		return s.lost(err)
	}
	return DecodeFault(c.Fault)
}

// Close implements AttachmentWriter.
func (s *attachmentWriter) Close() error {
	if s.err == nil {
		s.err = s.send(&wirepb.AttachmentPart{Done: true})
	}
	if s.err == nil {
		s.err = s.hear()
	}
	err := s.err
	s.end()
	if err == nil {
		s.err = errAborted // of any later call
	}
	return err
}

// Abort implements AttachmentWriter.
func (s *attachmentWriter) Abort() { s.end() }

// end lets go of the stream; what has not been made durable is dropped there.
func (s *attachmentWriter) end() {
	s.opened.end()
	if s.err == nil {
		s.err = errAborted
	}
}

package wire

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
)

// Rows is a listing of a copy on another node. Each part of rows answers a command, so that the
// other node reads no further than the caller wants; from the second part on one is asked for
// ahead, from the third on two. One goroutine may call Next while another calls Pending.
type Rows struct {
	opened
	turn   chan struct{} // held by the one that receives: two would take each other's parts
	stream grpc.BidiStreamingClient[wirepb.ListCommand, wirepb.ListPart]

	part  *wirepb.ListPart   // the last one received; it is used again
	ahead []*wirepb.ListPart // parts with rows that came before an answer to Pending
	first bool               // part holds the first rows, not yet given out
	turns int                // parts given out
	asked int                // parts asked for and not received
	limit int                // rows that will be read, as far as known; 0: unknown
	rows  int                // given out
	ended bool               // no rows follow
}

// List opens a listing and decodes its head into head, which aliases memory of
// its own. limit is how many rows will be read; 0 = unknown.
func (p *Peer) List(ctx context.Context, r Request, head Message, limit int) (*Rows, error) {
	body, err := marshal(r.Body)
	if err != nil {
		return nil, err
	}
	defer recycle(body)
	s := &Rows{limit: limit, first: true, asked: 1, part: &wirepb.ListPart{}, turn: make(chan struct{}, 1)}
	inner, err := p.open(ctx, &s.opened)
	if err != nil {
		return nil, err
	}
	if s.stream, err = s.conn.client.List(inner); err == nil {
		if err = s.stream.Send(&wirepb.ListCommand{
			Op: r.Op, Request: *body, Repair: IsRepair(ctx), Copy: r.To.Copy, Generation: r.To.Generation,
		}); err == nil || errors.Is(err, io.EOF) {
			err = s.receive(s.part)
		}
	}
	if err != nil {
		err = s.explain(err)
	} else {
		err = Decode(s.part.Head, head)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// explain turns an error of the stream into one for the caller; a fault that
// the other node has sent stays.
func (s *Rows) explain(err error) error {
	var sent remote
	if errors.As(err, &sent) {
		return sent.error
	}
	return s.lost(err)
}

// remote marks an error that the other node has sent.
type remote struct{ error }

// receive reads one part.
func (s *Rows) receive(part *wirepb.ListPart) error {
	part.ResetVT()
	if err := s.stream.RecvMsg(part); err != nil {
		return err
	}
	if err := DecodeFault(part.Fault); err != nil {
		return remote{err}
	}
	if !part.Pending {
		s.asked--
	}
	return nil
}

// ask asks for parts until n are under way.
func (s *Rows) ask(n int) error {
	for s.asked < n {
		if err := s.stream.Send(&wirepb.ListCommand{}); err != nil {
			return err
		}
		s.asked++
	}
	return nil
}

// Next decodes the next rows into m. more is false when there are none after
// them; m may be left as it was then. count tells how many rows m has. It fails
// when the request's context ends.
func (s *Rows) Next(m Message, count func() int) (more bool, err error) {
	if err := s.take(); err != nil {
		return false, err
	}
	defer s.release()
	part, err := s.next()
	if err != nil || part == nil {
		return false, err
	}
	if err := Decode(part.Rows, m); err != nil {
		return false, err
	}
	return part.More, s.given(count())
}

// Pending asks how many changes of the moment of the listing come after a
// sequence in its direction, filters not applied.
func (s *Rows) Pending(after uint64) (uint64, error) {
	if err := s.take(); err != nil {
		return 0, err
	}
	defer s.release()
	return s.pending(after)
}

// take waits until no other goroutine receives, or the request ends.
func (s *Rows) take() error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *Rows) release() { <-s.turn }

// next returns the next part with rows, nil when there is none. It is valid
// until the next call.
func (s *Rows) next() (*wirepb.ListPart, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	switch {
	case s.first:
		s.first = false
	case len(s.ahead) > 0:
		s.part, s.ahead = s.ahead[0], s.ahead[1:]
	case s.ended:
		return nil, nil
	default:
		err := s.ask(1)
		if err == nil || errors.Is(err, io.EOF) {
			err = s.receive(s.part)
		}
		if err != nil {
			return nil, s.explain(err)
		}
	}
	s.turns++
	s.ended = !s.part.More
	return s.part, nil
}

// given notes how many rows a part had, and asks for what will be wanted.
func (s *Rows) given(rows int) error {
	s.rows += rows
	if s.ended || s.limit > 0 && s.rows >= s.limit {
		return nil
	}
	if err := s.ask(min(s.turns, 2)); err != nil && !errors.Is(err, io.EOF) {
		return s.explain(err)
	}
	return nil
}

// pending asks how many changes come after a sequence.
func (s *Rows) pending(after uint64) (uint64, error) {
	if err := s.stream.Send(&wirepb.ListCommand{Pending: true, After: after}); err != nil && !errors.Is(err, io.EOF) {
		return 0, s.explain(err)
	}
	for {
		part := &wirepb.ListPart{}
		if err := s.receive(part); err != nil {
			return 0, s.explain(err)
		}
		if part.Pending {
			return part.Count, nil
		}
		s.ahead = append(s.ahead, part)
	}
}

// Close lets go of what the other node holds for the listing. It may be called
// more than once.
func (s *Rows) Close() { s.end() }

package wire

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// listing is the client's side of a List. Each part of rows answers a command,
// so that the other node reads no further than somebody wants; from the second
// part on one is asked for ahead, from the third on two.
type listing struct {
	ctx    context.Context // of the request
	link   *link
	cancel context.CancelFunc
	stream grpc.BidiStreamingClient[wirepb.ListCommand, wirepb.ListPart]
	closed atomic.Bool

	part  *wirepb.ListPart   // the last one received; it is used again
	ahead []*wirepb.ListPart // parts with rows that came before an answer to Pending
	first bool               // part holds the first rows, not yet given out
	turns int                // parts given out
	asked int                // parts asked for and not received
	limit int                // rows that will be read, as far as known; 0: unknown
	rows  int                // given out
	ended bool               // no rows follow
}

// list opens a listing and receives its first part.
func (p *Peer) list(ctx context.Context, open *wirepb.ListCommand, limit int) (*listing, *wirepb.ListHead, error) {
	l, err := p.reach(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.use()
	s := &listing{ctx: ctx, link: l, limit: limit, first: true, asked: 1, part: &wirepb.ListPart{}}
	inner, cancel := context.WithCancel(ctx)
	s.cancel = cancel
	l.streams.Add(1)
	open.Repair = IsRepair(ctx)
	if s.stream, err = l.client.List(inner); err == nil {
		if err = s.stream.Send(open); err == nil || errors.Is(err, io.EOF) {
			err = s.receive(s.part)
		}
	}
	if err == nil && s.part.Head == nil {
		err = fault.New(fault.Internal, "a listing of node "+l.node+" begins without a head")
	}
	if err != nil {
		s.Close()
		return nil, nil, s.explain(err)
	}
	return s, s.part.Head, nil
}

// explain turns an error of the stream into one for the caller; a fault that
// the other node has sent stays.
func (s *listing) explain(err error) error {
	var sent remote
	if errors.As(err, &sent) {
		return sent.error
	}
	return s.link.lost(s.ctx, err)
}

// remote marks an error that the other node has sent.
type remote struct{ error }

// receive reads one part.
func (s *listing) receive(part *wirepb.ListPart) error {
	part.ResetVT()
	if err := s.stream.RecvMsg(part); err != nil {
		return err
	}
	if err := decodeFault(part.Fault); err != nil {
		return remote{err}
	}
	if !part.Pending {
		s.asked--
	}
	return nil
}

// ask asks for parts until n are under way.
func (s *listing) ask(n int) error {
	for s.asked < n {
		if err := s.stream.Send(&wirepb.ListCommand{}); err != nil {
			return err
		}
		s.asked++
	}
	return nil
}

// next returns the next part with rows, nil when there is none. It is valid
// until the next call.
func (s *listing) next() (*wirepb.ListPart, error) {
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
func (s *listing) given(rows int) error {
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
func (s *listing) pending(after uint64) (uint64, error) {
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
func (s *listing) Close() {
	if !s.closed.Swap(true) {
		s.cancel()
		s.link.streams.Add(-1)
	}
}

// DocStream is shard.DocStream for a copy on another node.
type DocStream struct {
	Total  uint64   // live documents in the copy
	Before uint64   // live documents before the range, in the direction of the listing
	Seq    uint64   // the moment
	UUID   [16]byte // of the copy
	list   *listing
}

// AllDocs is shard.Local's, of a copy on the node.
func (p *Peer) AllDocs(ctx context.Context, req shard.DocsRequest) (*DocStream, error) {
	s, head, err := p.list(ctx, &wirepb.ListCommand{Docs: encodeDocsRequest(&req)}, req.Limit)
	if err != nil {
		return nil, err
	}
	return &DocStream{Total: head.Total, Before: head.Before, Seq: head.Seq, UUID: decode16(head.Uuid), list: s}, nil
}

// Next fills the batch with the next rows. more is false when there are none
// after it; the batch may then still hold rows. It fails when the request's
// context ends.
func (s *DocStream) Next(b *shard.RowBatch) (more bool, err error) {
	b.Rows = b.Rows[:0]
	part, err := s.list.next()
	if err != nil || part == nil {
		return false, err
	}
	more = part.More
	if part.Docs != nil {
		b.Rows = appendRows(b.Rows, part.Docs.Rows)
	}
	return more, s.list.given(len(b.Rows))
}

// Close lets go of the moment. It may be called more than once.
func (s *DocStream) Close() { s.list.Close() }

// appendRows appends rows and documents of a part to dst.
func appendRows(dst []shard.Row, rows []*wirepb.Row) []shard.Row {
	docs := 0
	for _, r := range rows {
		if r.Doc != nil {
			docs++
		}
	}
	arena := make([]shard.Doc, docs)
	for _, r := range rows {
		var d *shard.Doc
		if r.Doc != nil {
			d, arena = &arena[0], arena[1:]
		}
		dst = append(dst, decodeRow(r, d))
	}
	return dst
}

// LocalStream is shard.LocalStream for a copy on another node.
type LocalStream struct{ list *listing }

// LocalDocs is shard.Local's, of a copy on the node.
func (p *Peer) LocalDocs(ctx context.Context, req shard.LocalDocsRequest) (*LocalStream, error) {
	s, _, err := p.list(ctx, &wirepb.ListCommand{Locals: encodeLocalDocsRequest(&req)}, 0)
	if err != nil {
		return nil, err
	}
	return &LocalStream{list: s}, nil
}

// Next fills the batch with the next rows. more is false when there are none
// after it.
func (s *LocalStream) Next(b *shard.LocalBatch) (more bool, err error) {
	b.Rows = b.Rows[:0]
	part, err := s.list.next()
	if err != nil || part == nil {
		return false, err
	}
	more = part.More
	if part.Locals != nil {
		for _, r := range part.Locals.Rows {
			b.Rows = append(b.Rows, decodeLocalDoc(r))
		}
	}
	return more, s.list.given(len(b.Rows))
}

// Close lets go of the moment. It may be called more than once.
func (s *LocalStream) Close() { s.list.Close() }

// ChangeStream is shard.ChangeStream for a copy on another node. One goroutine
// may call Next while another calls Pending.
type ChangeStream struct {
	Seq  uint64   // the moment: the last sequence there is
	UUID [16]byte // of the copy
	list *listing
	turn chan struct{} // held by the one that receives: two would take each other's parts
}

// Changes is shard.Local's, of a copy on the node.
func (p *Peer) Changes(ctx context.Context, req shard.ChangesRequest) (*ChangeStream, error) {
	s, head, err := p.list(ctx, &wirepb.ListCommand{Changes: encodeChangesRequest(&req)}, req.Limit)
	if err != nil {
		return nil, err
	}
	return &ChangeStream{Seq: head.Seq, UUID: decode16(head.Uuid), list: s, turn: make(chan struct{}, 1)}, nil
}

// Next fills the batch with the next rows that pass the filter. more is false
// when there are none after it. A batch may be empty although there is more.
// It fails when the request's context ends.
func (s *ChangeStream) Next(b *shard.ChangeBatch) (more bool, err error) {
	b.Rows = b.Rows[:0]
	if err := s.take(); err != nil {
		return false, err
	}
	defer s.release()
	part, err := s.list.next()
	if err != nil || part == nil {
		return false, err
	}
	more = part.More
	if c := part.Changes; c != nil {
		b.Upto = c.Upto
		b.Rows = appendChanges(b.Rows, c.Rows)
	}
	return more, s.list.given(len(b.Rows))
}

// Pending counts the changes of this moment that come after a sequence in the
// direction of the feed, filters not applied.
func (s *ChangeStream) Pending(after uint64) (uint64, error) {
	if err := s.take(); err != nil {
		return 0, err
	}
	defer s.release()
	return s.list.pending(after)
}

// take waits until nobody else receives, or the request ends.
func (s *ChangeStream) take() error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-s.list.ctx.Done():
		return s.list.ctx.Err()
	}
}

func (s *ChangeStream) release() { <-s.turn }

// Close lets go of the moment. It may be called more than once.
func (s *ChangeStream) Close() { s.list.Close() }

// appendChanges appends rows of a part to dst.
func appendChanges(dst []shard.Change, rows []*wirepb.Change) []shard.Change {
	leaves, docs := 0, 0
	for _, r := range rows {
		if r.Leaves != nil {
			leaves += len(r.Leaves.Pos)
		}
		if r.Doc != nil {
			docs++
		}
	}
	revs, arena := make([]doc.Rev, 0, leaves), make([]shard.Doc, docs)
	for _, r := range rows {
		at := len(revs)
		revs = appendRevs(revs, r.Leaves)
		c := shard.Change{Seq: r.Seq, ID: r.Id, Leaves: revs[at:len(revs):len(revs)], Deleted: r.Deleted}
		if r.Doc != nil {
			c.Doc, arena = decodeDoc(r.Doc, &arena[0]), arena[1:]
		}
		dst = append(dst, c)
	}
	return dst
}

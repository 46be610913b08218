package cluster

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/storage/fault"
)

// failoverStream reads the rows of one range from one of its copies, and from
// another one when that breaks off or falls silent: it goes on behind the last
// row that was given out. The copies may differ in what was written a moment
// ago, as two readings may.
//
// P is a position between rows, H what a copy tells before its rows, B a batch of
// rows. A kind of rows (documents by id, changes; rows of a view or of a search
// likewise) gives the methods of rowKind, and says in which order the copies are
// tried and how long they may take. What is done with the rows, and the merging
// of several ranges, is the kind's own.
//
// It belongs to one goroutine.
type failoverStream[P, H, B any] struct {
	db     *DB
	ctx    context.Context // of the request; the streams of other nodes live in it
	kind   rowKind[P, H, B]
	copies []target // those that have not failed; the one that is read, or to be tried, first

	// For copies of other nodes: how long opening may take, when the next copy is
	// asked as well, and how long a batch may take. 0: as long as it likes; the
	// usual patience; as long as it likes.
	limit, patience, stall time.Duration

	head   H
	stream replica.Stream[B] // nil: nothing is read
	ahead  prefetch[B]
	stop   context.CancelFunc // ends the context of stream; nil: it lives in the request's
}

// rowKind is what a kind of rows gives to be read by a failoverStream.
type rowKind[P, H, B any] interface {
	// position returns where to go on: behind the last row that was given out,
	// or where the reading begins. ok is false when another copy cannot be told.
	position() (from P, ok bool)
	// open opens the rows of a copy behind a position; nil stands for no rows.
	// The rules of what the position means on another copy than that it was read
	// from are here. It may run for several copies at once, and after another one
	// has been chosen, so that it uses nothing that changes.
	open(ctx context.Context, rep replica.Copies, t target, from P) (opened[H, B], error)
	// moved is told that a copy has been opened, before its rows are read. An
	// error is taken for one of that copy.
	moved(head H) error
}

// opened is what opening a copy gives.
type opened[H, B any] struct {
	head   H
	stream replica.Stream[B]
}

// start opens the rows, on the first copy that lets it. What was read before is
// let go of.
func (s *failoverStream[P, H, B]) start() error {
	s.close()
	if err := s.openAny(); err != nil {
		return err
	}
	if err := s.kind.moved(s.head); err != nil {
		return s.failOver(err)
	}
	return nil
}

// next returns the next batch, nil at the end. It belongs to the caller until the
// following next.
func (s *failoverStream[P, H, B]) next() (*B, error) {
	for s.stream != nil {
		b, err := s.ahead.next()
		if err == nil {
			return b, nil
		}
		if err = s.failOver(err); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// failOver goes on with another copy. The error is given back when it holds for
// every copy, or there is no other.
func (s *failoverStream[P, H, B]) failOver(err error) error {
	err = s.db.ended(err)
	_, known := s.kind.position()
	if s.ctx.Err() != nil || quorum.Usable(err) || !known || len(s.copies) < 2 {
		return err
	}
	s.db.c.log.Debug("reading goes on from another copy",
		zap.String("copy", s.copies[0].name), zap.String("node", s.copies[0].node), zap.Error(err))
	s.copies = s.copies[1:]
	if next := s.start(); next != nil {
		return quorum.Telling(err, next)
	}
	return nil
}

// openAny opens the rows on one of the copies, and puts that first.
func (s *failoverStream[P, H, B]) openAny() error {
	from, _ := s.kind.position()
	var failure error
	if len(s.copies) > 0 && s.copies[0].node == s.db.c.node {
		o, err := s.kind.open(s.ctx, s.db.c.local, s.copies[0], from)
		if err == nil {
			s.read(o, 0)
			return nil
		}
		if failure = s.db.ended(err); len(s.copies) == 1 || quorum.Usable(failure) {
			return failure
		}
		s.copies = s.copies[1:]
	}
	one, err := anyCopy[opened[H, B]]{
		db: s.db, copies: s.copies, limit: s.limit, patience: s.patience,
		ask: func(ctx context.Context, rep replica.Copies, t target) (opened[H, B], error) {
			o, err := s.kind.open(ctx, rep, t, from)
			return o, s.db.ended(err)
		},
		drop: func(o opened[H, B]) {
			if o.stream != nil {
				o.stream.Close()
			}
		},
	}.first(s.ctx)
	if err != nil {
		return quorum.Telling(failure, err)
	}
	if i := slices.Index(s.copies, one.from); i > 0 {
		s.copies = append(append([]target{one.from}, s.copies[:i]...), s.copies[i+1:]...)
	}
	s.stop = one.stop
	if one.from.node == s.db.c.node {
		s.read(one.got, 0)
	} else {
		s.read(one.got, s.stall)
	}
	return nil
}

// read makes the rows of a copy those that are read; a batch has to come within
// limit, unless that is 0.
func (s *failoverStream[P, H, B]) read(o opened[H, B], limit time.Duration) {
	s.head, s.stream = o.head, o.stream
	if o.stream != nil {
		s.ahead = prefetch[B]{read: o.stream.Next, limit: limit}
	}
}

// close lets go of what is read from. start begins again.
func (s *failoverStream[P, H, B]) close() {
	if s.stop != nil {
		s.stop() // first, because the reader ahead may wait for another node
	}
	if s.stream != nil {
		s.ahead.close()
		s.stream.Close()
	}
	s.stop, s.stream, s.ahead = nil, nil, prefetch[B]{}
}

// ended makes of a copy that is not there what it stands for when this node knows
// that the database is gone: then no other copy is to be read.
func (d *DB) ended(err error) error {
	if fault.Is(err, fault.NoCopy) && d.c.gone(d.meta) {
		return d.phrase(err)
	}
	return err
}

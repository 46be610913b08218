package fanout

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard/ring"
)

// FailoverStream reads the rows of one range from one of its copies, and from
// another one when that breaks off or falls silent: it goes on behind the last
// row that was given out. The copies may differ in what was written a moment
// ago, as two readings may.
//
// P is a position between rows, H what a copy tells before its rows, B a batch of
// rows. A kind of rows (documents by id, changes; rows of a view or of a search
// likewise) gives the methods of RowKind, and says in which order the copies are
// tried and how long they may take. What is done with the rows, and the merging
// of several ranges, is the kind's own.
//
// It belongs to one goroutine.
type FailoverStream[P, H, B any] struct {
	Database Database
	Ctx      context.Context // of the request; the streams of other nodes live in it
	Log      *zap.Logger
	Kind     RowKind[P, H, B]
	Copies   []ring.Replica // those that have not failed; the one that is read, or to be tried, first

	// For copies of other nodes: how long opening may take, when the next copy is
	// asked as well, and how long a batch may take. 0: as long as it likes; the
	// usual patience; as long as it likes.
	Limit, Patience, Stall time.Duration

	// Beat, when not nil, is called by Next before it waits for a batch, and again after the
	// time that it has returned for as long as the batch does not come.
	Beat func() time.Duration

	Head   H
	stream replica.Stream[B] // nil: nothing is read
	ahead  prefetch[B]
	stop   context.CancelFunc // ends the context of stream; nil: it lives in the request's
}

// RowKind is a kind of rows that a FailoverStream can read.
type RowKind[P, H, B any] interface {
	// Position returns where to go on: behind the last row that was given out,
	// or where the reading begins. ok is false when another copy cannot be told.
	Position() (from P, ok bool)
	// Open opens the rows of a copy behind a position; nil stands for no rows.
	// The rules of what the position means on another copy than that it was read
	// from are here. It may run for several copies at once, and after another one
	// has been chosen, so that it uses nothing that changes.
	Open(ctx context.Context, rep replica.Copy, t ring.Replica, from P) (Opened[H, B], error)
	// Moved is told that a copy has been opened, before its rows are read. An
	// error is taken for one of that copy.
	Moved(head H) error
}

// Opened is the result of opening a copy.
type Opened[H, B any] struct {
	Head   H
	Stream replica.Stream[B]
}

// Start opens the rows, on the first copy that lets it. What was read before is
// let go of.
func (s *FailoverStream[P, H, B]) Start() error {
	s.Close()
	if err := s.openAny(); err != nil {
		return err
	}
	if err := s.Kind.Moved(s.Head); err != nil {
		return s.FailOver(err)
	}
	return nil
}

// Next returns the next batch, nil at the end. It belongs to the caller until the
// following next.
func (s *FailoverStream[P, H, B]) Next() (*B, error) {
	for s.stream != nil {
		b, err := s.ahead.next()
		if err == nil {
			return b, nil
		}
		if err = s.FailOver(err); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// FailOver goes on with another copy. The error is given back when it holds for
// every copy, or there is no other.
func (s *FailoverStream[P, H, B]) FailOver(err error) error {
	err = s.Database.Ended(err)
	s.Database.NoteRefusal(err)
	_, known := s.Kind.Position()
	if s.Ctx.Err() == nil && known && !quorum.Usable(err) && len(s.Copies) > 0 {
		if db, copies, ok := s.Database.Renewed(s.Ctx, s.Copies[0]); ok {
			s.Database, s.Copies = db, copies
			return s.Start()
		}
	}
	if s.Ctx.Err() != nil || quorum.Usable(err) || !known || len(s.Copies) < 2 {
		return err
	}
	s.Log.Debug("reading goes on from another copy",
		zap.String("copy", s.Copies[0].Name), zap.String("node", s.Copies[0].Node), zap.Error(err))
	s.Copies = s.Copies[1:]
	if next := s.Start(); next != nil {
		return quorum.Telling(err, next)
	}
	return nil
}

// openAny opens the rows on one of the copies, and puts that first.
func (s *FailoverStream[P, H, B]) openAny() error {
	from, _ := s.Kind.Position()
	var failure error
	if len(s.Copies) > 0 && s.Copies[0].Node == s.Database.Node() {
		o, err := s.Kind.Open(s.Ctx, s.Database.Replica(s.Copies[0]), s.Copies[0], from)
		if err == nil {
			s.read(o, 0)
			return nil
		}
		s.Database.NoteRefusal(err)
		if failure = s.Database.Ended(err); quorum.Usable(failure) {
			return failure
		}
		if db, copies, ok := s.Database.Renewed(s.Ctx, s.Copies[0]); ok {
			s.Database, s.Copies = db, copies
			return s.openAny()
		}
		if len(s.Copies) == 1 {
			return failure
		}
		s.Copies = s.Copies[1:]
	}
	db := s.Database // copies that are slow may still use it when another one is chosen
	one, err := AnyCopy[Opened[H, B]]{
		Database: db, Copies: s.Copies, Limit: s.Limit, Patience: s.Patience,
		Ask: func(ctx context.Context, rep replica.Copy, t ring.Replica) (Opened[H, B], error) {
			o, err := s.Kind.Open(ctx, rep, t, from)
			return o, db.Ended(err)
		},
		Drop: func(o Opened[H, B]) {
			if o.Stream != nil {
				o.Stream.Close()
			}
		},
	}.First(s.Ctx)
	if err != nil {
		return quorum.Telling(failure, err)
	}
	s.Database, s.Copies = one.Database, one.Copies
	if i := slices.Index(s.Copies, one.From); i > 0 {
		s.Copies = append(append([]ring.Replica{one.From}, s.Copies[:i]...), s.Copies[i+1:]...)
	}
	s.stop = one.Stop
	if one.From.Node == s.Database.Node() {
		s.read(one.Got, 0)
	} else {
		s.read(one.Got, s.Stall)
	}
	return nil
}

// read makes the rows of a copy those that are read; a batch has to come within
// limit, unless that is 0.
func (s *FailoverStream[P, H, B]) read(o Opened[H, B], limit time.Duration) {
	s.Head, s.stream = o.Head, o.Stream
	if o.Stream != nil {
		s.ahead = prefetch[B]{read: o.Stream.Next, limit: limit, beat: s.Beat}
	}
}

// Reading reports whether there are rows of a copy to be read.
func (s *FailoverStream[P, H, B]) Reading() bool { return s.stream != nil }

// Close lets go of what is read from. start begins again.
func (s *FailoverStream[P, H, B]) Close() {
	if s.stop != nil {
		s.stop() // first, because the reader ahead may wait for another node
	}
	if s.stream != nil {
		s.ahead.close()
		s.stream.Close()
	}
	s.stop, s.stream, s.ahead = nil, nil, prefetch[B]{}
}

// Package fanouttest holds what tests of streams need that go on from another copy
// when one breaks off.
package fanouttest

import (
	"context"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/shard/ring"
)

// Never as the number of batches: the copies do not break off.
const Never = -1

// Frail is the copies of a node that goes away after some batches.
type Frail struct {
	*replica.Local
	Node  string
	After int // batches; Never
	// Cut replaces the stream of an answer, if it is one of the kind that is tested.
	Cut func(c replica.Call, f *Frail)
}

// Do implements replica.Copies.
func (f *Frail) Do(ctx context.Context, c replica.Call) error {
	if f.After == 0 {
		return fanout.NodeDown(f.Node)
	}
	err := c.On(ctx, f.Local)
	if err == nil {
		f.Cut(c, f)
	}
	return err
}

// Rows is a stream in small batches, which breaks off with its node.
type Rows[R, B any] struct {
	replica.Stream[B]
	Frail *Frail
	Empty int // each so many batches one has no rows; 0: never
	// Take returns a copy of the rows of a batch, Give makes a batch of some rows.
	Take func(b *B) []R
	Give func(b *B, rows []R)

	batch B
	left  []R
	ended bool
	turns int
}

// batchRows is how many rows a batch has at most.
const batchRows = 3

// Next implements replica.Stream.
func (r *Rows[R, B]) Next(b *B) (more bool, err error) {
	if r.Frail.After == 0 {
		return false, fanout.NodeDown(r.Frail.Node)
	}
	r.Frail.After--
	for len(r.left) == 0 && !r.ended {
		more, err := r.Stream.Next(&r.batch)
		if err != nil {
			return false, err
		}
		r.ended = !more
		r.left = append(r.left, r.Take(&r.batch)...)
	}
	if r.turns++; r.Empty > 0 && r.turns%r.Empty == 0 {
		r.Give(b, nil)
		return true, nil
	}
	n := min(batchRows, len(r.left))
	r.Give(b, r.left[:n:n])
	r.left = r.left[n:]
	return len(r.left) > 0 || !r.ended, nil
}

// Database is one with a copy on each of some nodes, for a caller that has none.
type Database struct {
	Copies  map[string]*Frail
	latency fanout.Latency
}

// Node implements fanout.Database.
func (d *Database) Node() string { return "caller" }

// Replica implements fanout.Database.
func (d *Database) Replica(t ring.Replica) replica.Copy {
	if f := d.Copies[t.Node]; f != nil {
		return replica.Copy{At: f}
	}
	return replica.Copy{}
}

// Reads implements fanout.Database.
func (d *Database) Reads() *fanout.Latency { return &d.latency }

// NoteRefusal implements fanout.Database.
func (d *Database) NoteRefusal(error) {}

// Renewed implements fanout.Database. The map never changes.
func (d *Database) Renewed(context.Context, ring.Replica) (fanout.Database, []ring.Replica, bool) {
	return nil, nil, false
}

// Ended implements fanout.Database.
func (d *Database) Ended(err error) error { return err }

// Spawn implements fanout.Database.
func (d *Database) Spawn(f func()) bool {
	go f()
	return true
}

// Detach implements fanout.Database.
func (d *Database) Detach(ctx context.Context, f func(context.Context)) bool {
	return d.Spawn(func() { f(context.WithoutCancel(ctx)) })
}

// Deadline implements fanout.Database.
func (d *Database) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

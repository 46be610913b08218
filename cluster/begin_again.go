package cluster

import (
	"context"
	"errors"

	"divan/storage/fault"
)

// ErrSuccessor is the cause of an error that says that a database does not exist
// when another one has its name by now: a request that was not for the very
// one that is gone may begin again with the other. Compare with errors.Is.
var ErrSuccessor = errors.New("another database has the name by now")

// maxSuccessors is how often a request begins at most because the database that
// it began with was gone and another one had its name.
const maxSuccessors = 4

// Attempts counts how often a request has begun. The zero value is for its first
// time.
type Attempts struct{ unborn, successors int }

// Again reports whether a request that has ended with err and has done nothing
// begins again: with the database that has the name by then after ErrSuccessor,
// a few times; after ErrUnborn, a moment later, as long as it is worth to wait
// for the copies of d, which it found. d is nil when it found none.
func (a *Attempts) Again(ctx context.Context, d *DB, err error) bool {
	switch {
	case errors.Is(err, ErrUnborn):
		a.unborn++
		return d != nil && d.await(ctx, a.unborn-1)
	case errors.Is(err, ErrSuccessor):
		a.successors++
		return a.successors < maxSuccessors
	default:
		return false
	}
}

// Do calls f with the database of that name, and again as Attempts says. The
// error is that of DB, or f's.
func (c *Coordinator) Do(ctx context.Context, name string, f func(d *DB) error) error {
	var attempts Attempts
	for {
		d, err := c.DB(ctx, name)
		if err == nil {
			err = f(d)
		}
		if !attempts.Again(ctx, d, err) {
			return err
		}
	}
}

// whenBorn does the part of a request that belongs to one segment, and again
// while no copy of that is there yet; other parts may be done, so that the whole
// request cannot begin again.
func (d *DB) whenBorn(ctx context.Context, part func() error) error {
	for try := 0; ; try++ {
		err := part()
		unborn := errors.Is(err, ErrUnborn) || fault.Is(err, fault.NoCopy)
		if !unborn || !d.await(ctx, try) {
			return err
		}
	}
}

package cluster

import (
	"context"
	"errors"
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
type Attempts struct{ successors int }

// Again reports whether a request that has ended with err and has done nothing
// begins again, with the database that has the name by then: after ErrSuccessor, a few
// times.
func (a *Attempts) Again(err error) bool {
	if !errors.Is(err, ErrSuccessor) {
		return false
	}
	a.successors++
	return a.successors < maxSuccessors
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
		if !attempts.Again(err) {
			return err
		}
	}
}

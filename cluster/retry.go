package cluster

import (
	"context"
	"errors"
)

// ErrSuccessor is the cause of an error that says that a database does not exist
// when another one has its name by now: a request that was not for the very
// one that is gone may begin again with the other. Compare with errors.Is.
var ErrSuccessor = errors.New("another database has the name by now")

// maxAttempts is how often a request begins at most.
const maxAttempts = 4

// Attempts counts how often a request has begun. The zero value is for its first
// time.
type Attempts struct{ begun int }

// Again reports whether a request that has ended with err and has done nothing
// begins again, with the database that has the name by then, or its newest map: after
// ErrSuccessor, and when its ranges were cut otherwise meanwhile, a few times.
func (a *Attempts) Again(err error) bool {
	if !errors.Is(err, ErrSuccessor) && !errors.Is(err, errNewRanges) {
		return false
	}
	a.begun++
	return a.begun < maxAttempts
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

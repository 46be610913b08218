package cluster

import (
	"context"
	"errors"

	"divan/storage/fault"
)

// noteLack remembers that a node says that it does not hold its copy.
func (d *DB) noteLack(err error) {
	if fault.Is(err, fault.NoCopy) {
		d.lacks.Add(1)
	}
}

// sure is asked before a request is answered: has a copy been missing since
// before, and is it because the database is gone? This node would be the last
// one to hear of that. Its own copy, which is as old as what it knows, must not
// acknowledge what is lost as soon as it hears, nor refuse or miss what the
// database that has the name now takes and has. The group is asked for no longer
// than a slow copy is waited for: without a leader, the copies that are there
// can be used.
//
// Requests on one handle take each other's word for a lack: whoever has no
// reason to ask asks once too often.
func (d *DB) sure(ctx context.Context, before uint64) error {
	if d.lacks.Load() == before {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, mostPatience)
	defer cancel()
	d.catchUp(soon, errDropped())
	if !d.c.gone(d.meta) {
		return nil
	}
	return d.phrase(errDropped())
}

// doTries is how often Do begins at most: each time but the last, the database
// that it began with was gone and another one had its name.
const doTries = 4

// Do calls f with the database of that name, and again with the one that has
// the name by then when it ends with ErrSuccessor, or a moment later when it
// ends with ErrUnborn. The error is that of DB, or f's.
func (c *Coordinator) Do(ctx context.Context, name string, f func(d *DB) error) error {
	for left, waits := doTries, 0; ; {
		d, err := c.DB(ctx, name)
		if err == nil {
			err = f(d)
		}
		switch {
		case errors.Is(err, ErrUnborn) && d != nil && d.Await(ctx, waits):
			waits++
		case left > 1 && errors.Is(err, ErrSuccessor):
			left--
		default:
			return err
		}
	}
}

// errDropped is what a copy that is not there says.
func errDropped() error { return fault.New(fault.NoCopy, "no_db_file") }

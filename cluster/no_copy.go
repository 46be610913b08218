package cluster

import (
	"context"

	"divan/cluster/fanout"
	"divan/storage/fault"
)

// noteRefusal remembers that a node says that it does not hold its copy, or that it knows
// a newer map.
func (d *DB) noteRefusal(err error) {
	switch {
	case err == nil:
	case fault.Is(err, fault.NoCopy):
		d.noCopies.Add(1)
	case fault.Is(err, fault.StaleMap):
		d.stale.Add(1)
		for newer := fault.NewerMap(err); ; {
			known := d.newer.Load()
			if newer <= known || d.newer.CompareAndSwap(known, newer) {
				return
			}
		}
	}
}

// stillThere is asked before a request is answered: has a copy been missing since
// before, and is it because the database is gone? This node would be the last
// one to hear of that. Its own copy, which is as old as what it knows, must not
// acknowledge what is lost as soon as it hears, nor refuse or miss what the
// database that has the name now takes and has. The group is asked for no longer
// than a slow copy is waited for: without a leader, the copies that are there
// can be used.
//
// The count belongs to the handle, not to the request: a request that missed
// nothing may ask because another one did, which is once too often.
func (d *DB) stillThere(ctx context.Context, before uint64) error {
	if d.noCopies.Load() == before {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, fanout.MostPatience)
	defer cancel()
	d.catchUp(soon, errDropped())
	if !d.c.gone(d.meta) {
		return nil
	}
	return d.phrase(errDropped())
}

// errDropped is what a copy that is not there says.
func errDropped() error { return fault.New(fault.NoCopy, "no_db_file") }

package cluster

import (
	"context"
	"errors"

	"divan/cluster/fanout"
	"divan/storage/fault"
)

// noteRefusal remembers that a node says that it does not hold its copy, or that it knows
// a newer map.
func (d *replicaSet) noteRefusal(err error) {
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
func (d *replicaSet) stillThere(ctx context.Context, before uint64) error {
	if d.noCopies.Load() == before {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, fanout.MostPatience)
	defer cancel()
	d.catchUp(soon, errDropped())
	if !d.gone() {
		return nil
	}
	return d.phrase(errDropped())
}

// errDropped is the error of a copy that is not there.
func errDropped() error { return fault.New(fault.NoCopy, "no_db_file") }

// gone reports whether the database is there no more; another one may have its name.
func (d *replicaSet) gone() bool { return isGone(d.metaGroup, d.meta) }

// noDatabase is the text that PouchDB and the replicator test for.
const noDatabase = "Database does not exist."

func errNoDatabase() error { return fault.New(fault.NoDatabase, noDatabase) }

// explain turns what the copies said, of which those that answered are sure,
// into what the client is told. When they say that they are not there, this node
// may not have heard yet that the database was deleted: it asks the group, so
// that the answer is 404 and not 503.
func (d *replicaSet) explain(ctx context.Context, err error) error {
	d.catchUp(ctx, err)
	return d.phrase(err)
}

// catchUp does the asking of explain. That the database is gone may be known
// already, and phrased, and that another one has its name not yet.
func (d *replicaSet) catchUp(ctx context.Context, err error) {
	if !fault.Is(err, fault.NoCopy) && !errors.Is(err, errUnasked) {
		return
	}
	if now, ok := d.metaGroup.Database(d.meta.Name); ok && now.ID != d.meta.ID {
		return
	}
	soon, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
	defer cancel()
	_ = d.metaGroup.CatchUp(soon) // without a leader it stays as it is
}

// errUnasked is the cause of an error that says that there is no database as far as this
// node has heard: the group may know of one that has its name since.
var errUnasked = errors.New("the group was not asked")

// ended is phrase for a range that a copy says not to hold because the database was
// deleted. explain asks the group whether another one has its name.
func (d *replicaSet) ended(err error) error {
	if err = d.phrase(err); !errors.Is(err, ErrSuccessor) {
		return fault.Wrap(fault.NoDatabase, noDatabase, errUnasked)
	}
	return err
}

// phrase is explain with what this node knows: of a copy that is gone because
// the database was deleted meanwhile, and of a deadline that passed. What was
// phrased once stays as it is: a node that cannot be reached may have a deadline of
// dialing for its cause, which is none of the request's.
func (d *replicaSet) phrase(err error) error {
	switch {
	case err == nil:
		return nil
	case fault.Is(err, fault.Unavailable):
		return d.unavailable(err)
	case fault.Is(err, fault.NoCopy), errors.Is(err, errUnasked):
		switch m, ok := d.metaGroup.Database(d.meta.Name); {
		case !ok:
			return errNoDatabase()
		case m.ID != d.meta.ID:
			return fault.Wrap(fault.NoDatabase, noDatabase, ErrSuccessor)
		}
		return d.unavailable(err)
	case fault.Is(err, fault.NodeDown), fault.Is(err, fault.StaleMap):
		return d.unavailable(err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.Timeout, fanout.TimeoutText, err)
	default:
		return err
	}
}

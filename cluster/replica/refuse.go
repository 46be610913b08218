package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// State is the state that a copy needs to have to answer.
type State int

// The states. A copy that is Complete is also Present, and so on.
const (
	// Complete: the map has it as a full copy. Repair is answered by other copies as well.
	Complete State = iota
	// Present: it may still lack what the other copies have. Nothing is read or
	// decided.
	Present
	// Dropped: its database may be known to be deleted.
	Dropped
)

// demand holds the requirements of a call on its copy.
type demand struct {
	needs   State
	counted bool // a coordinator counts the answer: it holds for one map only
	unheld  bool
}

// admit refuses a call for a copy that must not answer it, and otherwise opens the copy until the
// call is over, which also keeps another copy from taking its place.
func (l *Local) admit(ctx context.Context, name string, to wire.Addressee, d demand) (shard.OpenCopy, error) {
	if err := l.check(ctx, name, to, d); err != nil || d.unheld {
		return shard.OpenCopy{}, err
	}
	open, err := l.held.Shards.Copies.Open(ctx, name)
	if l.held.Make != nil && fault.Is(err, fault.NoCopy) {
		if err = l.held.Make(ctx, name); err == nil {
			open, err = l.held.Shards.Copies.Open(ctx, name)
		}
	}
	if err != nil {
		return shard.OpenCopy{}, err
	}
	if open.ID() != to.Copy {
		open.Close()
		return shard.OpenCopy{}, errNoCopy()
	}
	return open, nil
}

// check refuses a call for what the node or the copy is.
func (l *Local) check(ctx context.Context, name string, to wire.Addressee, d demand) error {
	repair := wire.IsRepair(ctx)
	switch {
	case l.closed != nil && l.closed() && !repair:
		return errMaintenance()
	case d.needs != Dropped && l.deleted != nil && l.deleted(name):
		return errNoCopy()
	case l.held.Place == nil || d.needs == Dropped:
		return nil
	}
	p := l.held.Place(name)
	if p.Generation < to.Generation && l.held.Heard != nil && !d.unheld { // watches wait for each other
		if err := l.held.Heard(ctx, to.Generation); err != nil {
			return err
		}
		p = l.held.Place(name)
	}
	if repair {
		return nil // goes by the ids of directories
	}
	return judge(&p, to, d)
}

// judge compares a call with the map, which has p here. Answers that a coordinator counts are of one
// map: those of different ones do not make a quorum. Any other call is refused only if the
// copy is another one by now, or has another state.
func judge(p *ring.Replica, to wire.Addressee, d demand) error {
	same := p.ID == to.Copy && p.ID != 0
	unfit := d.needs == Complete && p.State != ring.StateFull
	switch {
	case p.Generation > to.Generation && (d.counted || !same || unfit):
		return fault.NewStaleMap(p.Generation)
	case !same:
		return errNoCopy()
	case unfit:
		return errIncomplete()
	}
	return nil
}

func errNoCopy() error { return fault.New(fault.NoCopy, "no_db_file") }

// errMaintenance is the error for the client when no copy is left to ask (api.md section 2).
func errMaintenance() error {
	return fault.New(fault.Unavailable, "Nodes are unable to service this request due to overloading or maintenance mode.")
}

func errIncomplete() error {
	return fault.New(fault.Unavailable, "The copy is being filled from other copies.")
}

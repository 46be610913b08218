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

// Place is the entry for a copy under a name here in this node's map of a database.
type Place struct {
	ID         uint64 // 0: the map has none here
	State      ring.State
	Generation uint64 // of the map; 0: there is none
}

// demand holds the requirements of a call on its copy.
type demand struct {
	needs   State
	counted bool // a coordinator counts the answer: it holds for one map only
	unheld  bool
}

// admit refuses a call for a copy that must not answer it, and otherwise keeps another
// copy from taking its place until the call is over.
func (l *Local) admit(ctx context.Context, name string, to wire.Addressee, d demand) (shard.Hold, error) {
	if err := l.check(ctx, name, to, d); err != nil || d.unheld {
		return shard.Hold{}, err
	}
	hold, err := l.held.Shards.Copies.Hold(ctx, name)
	if l.held.Make != nil && fault.Is(err, fault.NoCopy) {
		if err = l.held.Make(ctx, name); err == nil {
			hold, err = l.held.Shards.Copies.Hold(ctx, name)
		}
	}
	if err != nil {
		return shard.Hold{}, err
	}
	if hold.ID() != to.Copy {
		hold.End()
		return shard.Hold{}, errNoCopy()
	}
	return hold, nil
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
	return p.judge(to, d)
}

// judge compares a call with the map. Answers that a coordinator counts are of one
// map: those of different ones do not make a quorum. Any other call is refused only if the
// copy is another one by now, or has another state.
func (p Place) judge(to wire.Addressee, d demand) error {
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

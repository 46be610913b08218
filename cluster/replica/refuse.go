package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/shard"
	"divan/storage/fault"
)

// State is what a copy has to be to answer.
type State int

// The states. A copy that is Complete is also Present, and so on.
const (
	// Complete: it has what was written to its range, as far as any copy does.
	// Repair is answered by other copies as well.
	Complete State = iota
	// Present: it may still lack what the other copies have. Nothing is read or
	// decided.
	Present
	// Dropped: its database may be known to be deleted.
	Dropped
)

// admit refuses a call for a copy that must not answer it, and otherwise keeps another
// copy from taking its place until the call is over.
func (l *Local) admit(ctx context.Context, name string, to wire.Addressee, needs State, unheld bool) (shard.Hold, error) {
	if err := l.check(ctx, name, needs); err != nil || to.Copy == 0 || unheld {
		return shard.Hold{}, err
	}
	hold, err := l.held.Shards.Hold(ctx, name)
	if l.held.Make != nil && fault.Is(err, fault.NoCopy) {
		if err = l.held.Make(ctx, name, to); err == nil {
			err = l.check(ctx, name, needs) // it may have to be filled first
		}
		if err == nil {
			hold, err = l.held.Shards.Hold(ctx, name)
		}
	}
	if err != nil {
		return shard.Hold{}, err
	}
	if id := hold.ID(); id != to.Copy && (id != 0 || l.held.Unnamed == nil || !l.held.Unnamed(name, to.Copy)) {
		hold.End()
		return shard.Hold{}, fault.New(fault.NoCopy, "no_db_file")
	}
	return hold, nil
}

// check refuses a call for what the node or the copy is.
func (l *Local) check(ctx context.Context, name string, needs State) error {
	switch {
	case l.closed != nil && l.closed() && !wire.IsRepair(ctx):
		return errMaintenance()
	case needs != Dropped && l.deleted != nil && l.deleted(name):
		return fault.New(fault.NoCopy, "no_db_file")
	case needs == Complete && l.held.Shards.Rebuilding(name) && !wire.IsRepair(ctx):
		return errIncomplete()
	}
	return nil
}

// errMaintenance is what the client is told when no copy is left to ask
// (api.md section 2).
func errMaintenance() error {
	return fault.New(fault.Unavailable, "Nodes are unable to service this request due to overloading or maintenance mode.")
}

func errIncomplete() error {
	return fault.New(fault.Unavailable, "The copy is being rebuilt from other copies.")
}

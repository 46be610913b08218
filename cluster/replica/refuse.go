package replica

import (
	"context"

	"divan/cluster/wire"
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

// check refuses a call for a copy that must not answer it.
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

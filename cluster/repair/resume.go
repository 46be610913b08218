package repair

import (
	"context"

	"divan/cluster/replica"
	"divan/storage/fault"
)

// SharedUpTo returns where a client may go on in a copy, the source of the
// history, after it has seen the changes of the history's target up to a
// sequence: what the source held up to the sequence returned was in the target
// at or before the one that the client has seen, as it was or newer. 0 when
// nothing is known (semantics.md section 7.2).
func SharedUpTo(history []Entry, seen uint64) uint64 {
	for _, e := range history {
		if e.Target <= seen {
			return e.Source
		}
	}
	return 0
}

// ResumePoint returns where a feed goes on in a copy that from holds under a
// name, at the position at: the client has seen another copy of the same
// range, of which it knows the prefix of the uuid, up to a sequence. It asks
// only for the checkpoint of pushes to that other copy, which need not be
// there any more. 0 when the two are not known to share anything.
func ResumePoint(ctx context.Context, from replica.Copy, at Copy, other Prefix, seen uint64) (uint64, error) {
	c, err := readCheckpoint(ctx, from, at.Name, CheckpointID(PrefixOf(at.UUID), other))
	if err != nil {
		return 0, err
	}
	if c.Source != at.UUID || PrefixOf(c.Target) != other {
		return 0, nil
	}
	if upto := SharedUpTo(c.History, seen); upto <= at.Seq {
		return upto, nil
	}
	return 0, nil
}

// Copy is a copy of a range and where it is.
type Copy struct {
	Name string
	UUID [16]byte
	Seq  uint64 // its last durable sequence
}

// readCheckpoint reads a checkpoint; one that is missing or cannot be read is
// empty, and the two copies start from nothing.
func readCheckpoint(ctx context.Context, from replica.Copy, name, id string) (Checkpoint, error) {
	d, err := replica.LocalGet.On(ctx, from, replica.LocalGetRequest{Copy: name, ID: id})
	if fault.Is(err, fault.NotFound) {
		return Checkpoint{}, nil
	}
	if err != nil {
		return Checkpoint{}, err
	}
	c, err := DecodeCheckpoint(d.Body)
	if err != nil {
		return Checkpoint{}, nil //nolint:nilerr // what it said is known again after one full comparison
	}
	return c, nil
}

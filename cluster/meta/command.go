package meta

import (
	"errors"
	"fmt"
	"slices"

	"divan/cluster/meta/metapb"
	"divan/shard/ring"
	"divan/storage/fault"
)

const (
	// maxCommand bounds an entry of the log, in bytes.
	maxCommand = 4 << 20

	// maxSecurity bounds a security object, in bytes: every node has it in
	// memory, in its log and in each of its snapshots.
	maxSecurity = 1 << 20

	// maxSetting bounds section, key and value of a configured key together, in
	// bytes.
	maxSetting = 64 << 10
)

func errTooLarge() error {
	return fault.New(fault.RequestTooLarge, "the request entity is too large")
}

var errMalformed = errors.New("malformed metadata")

// errNewer says that metadata were written by a newer program.
func errNewer(written, known uint64) error {
	return fmt.Errorf("the metadata are of version %d of the cluster, this program knows up to %d: start a newer one", written, known)
}

// command is one entry of the Raft log, read and checked.
type command struct {
	*metapb.Command
	database *Database // the one to create
}

// encode returns the bytes of a message of metapb.
func encode(m interface{ MarshalVT() ([]byte, error) }) []byte {
	b, _ := m.MarshalVT() // never fails
	return b
}

// decodeCommand reads an entry of the log. An operation that this version does
// not know is an error, since to skip it would let the copies of the state
// drift apart.
func decodeCommand(b []byte) (*command, error) {
	c := &command{Command: &metapb.Command{}}
	err := c.UnmarshalVT(b)
	if err != nil {
		return nil, fmt.Errorf("%w: log entry: %w", errMalformed, err)
	}
	ok := true
	switch op := c.Op.(type) {
	case *metapb.Command_Init:
	case *metapb.Command_CreateDatabase:
		c.database, err = wishFrom(op.CreateDatabase)
	case *metapb.Command_AlterDatabase:
		ok = isIDOrNone(op.AlterDatabase.Id)
		if !knownSettings(op.AlterDatabase.Settings) {
			err = fmt.Errorf("%w: log entry with a setting that this version does not know; a newer version wrote it", errMalformed)
		}
	case *metapb.Command_DeleteDatabase:
		ok = isIDOrNone(op.DeleteDatabase.Id)
	case *metapb.Command_ChangeConfig:
		err = checkConfigChange(op.ChangeConfig)
	case *metapb.Command_PutNode:
		ok = op.PutNode.Name != ""
	case *metapb.Command_AssignSlots:
		ok = !slices.ContainsFunc(op.AssignSlots.Slots, func(s *metapb.Slot) bool { return !isSlot(s) })
	case *metapb.Command_ChangeCopies:
		ok = len(op.ChangeCopies.Changes) < ring.MaxNewCopies && !slices.ContainsFunc(op.ChangeCopies.Changes, func(c *metapb.CopyChange) bool {
			return len(c.Id) != len(Database{}.ID) || c.Copy == 0 || c.State > uint32(ring.StateGone)
		})
	case *metapb.Command_AddCopies:
		ok = len(op.AddCopies.Id) == len(Database{}.ID) && len(op.AddCopies.Copies) < ring.MaxNewCopies
	case *metapb.Command_PutRecord:
		ok = op.PutRecord.Key != ""
	case *metapb.Command_AlterNode, *metapb.Command_RemoveNode, *metapb.Command_ReplaceNode: // find nothing
	default:
		err = fmt.Errorf("%w: log entry with an operation that this version does not know; a newer version wrote it", errMalformed)
	}
	if !ok {
		err = fmt.Errorf("%w: log entry without what it is about", errMalformed)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func isIDOrNone(id []byte) bool { return len(id) == 0 || len(id) == len(Database{}.ID) }

func checkConfigChange(c *metapb.ConfigChange) error {
	if c.Op < metapb.ConfigChange_SET || c.Op > metapb.ConfigChange_UNSET {
		return fmt.Errorf("%w: operation %d on the configuration", errMalformed, c.Op)
	}
	return nil
}

package repair

import (
	"context"
	"encoding/json"
	"slices"

	"divan/storage/fault"
)

// maxStates bounds the copies that one message asks about. It is large, because
// what costs is to list the copies on the disk, once for each message.
const maxStates = 200_000

// Holder is the copies on the disk of a node; *shard.Local is one.
type Holder interface {
	Names() ([]string, error) // sorted
	Rebuilding(name string) bool
}

// statesOf tells what copies of this node are. None of them is opened. A copy
// is marked as incomplete before it is there, so its mark is looked for
// afterwards.
func statesOf(h Holder, copies []string) (map[string]state, error) {
	names, err := h.Names()
	if err != nil {
		return nil, err
	}
	states := make(map[string]state, len(copies))
	for _, name := range copies {
		_, there := slices.BinarySearch(names, name)
		switch {
		case !there:
			states[name] = stateAbsent
		case h.Rebuilding(name):
			states[name] = stateIncomplete
		default:
			states[name] = stateComplete
		}
	}
	return states, nil
}

// Complete returns which of some copies are there and hold what they should.
func Complete(h Holder, copies []string) ([]string, error) {
	states, err := statesOf(h, copies)
	return complete(copies, states), err
}

func complete(copies []string, states map[string]state) []string {
	var out []string
	for _, name := range copies {
		if states[name] == stateComplete {
			out = append(out, name)
		}
	}
	return out
}

// Complete asks another node which of its copies are there and hold what they
// should, however many there are. With an error it is not known of those that
// are not among the result.
func (r *Repair) Complete(ctx context.Context, node string, copies []string) ([]string, error) {
	var out []string
	for part := range slices.Chunk(copies, maxStates) {
		text, _ := json.Marshal(message{Op: opStates, Copies: part}) // strings: it cannot fail
		answer, err := r.o.Ask(ctx, node, Service, text)
		if err != nil {
			return out, err
		}
		var a reply
		if err := json.Unmarshal(answer, &a); err != nil {
			return out, fault.Wrap(fault.Internal, "malformed answer of repair", err)
		}
		out = append(out, complete(part, a.States)...)
	}
	return out, nil
}

package meta

import (
	"context"

	"divan/cluster/meta/metapb"
)

// SlotCount is the number of slots that the work of a cluster is divided into.
// It is part of what the group agreed on and cannot change.
const SlotCount = 64

// Slots says which nodes own the slots of work. What SlotTable hands out is not to
// be changed.
type Slots [SlotCount]Slot

// Slot is one part of work that only one node at a time may do.
type Slot struct {
	// Node owns the slot; empty: it has no owner.
	Node string

	// Term is the index of the command that made it so; 0 when there was none. The terms of a slot
	// only grow: of two owners the one with the higher term came later.
	Term uint64
}

// SlotMove gives a slot to a node, or takes it from its owner when Node is empty. It happens only
// if Term is that of the slot still, and the node is a member.
type SlotMove struct {
	Slot int
	Node string
	Term uint64
}

func (s Slot) proto(number int) *metapb.Slot {
	return &metapb.Slot{Number: uint32(number), Node: s.Node, Term: s.Term}
}

func isSlot(s *metapb.Slot) bool { return s.GetNumber() < SlotCount }

func (s *state) assignSlots(c *metapb.AssignSlots, e *effects) {
	next := *s.slots
	for _, to := range c.Slots {
		slot := &next[to.Number]
		if _, member := s.nodes[to.Node]; slot.Term == to.Term && (member || to.Node == "") {
			*slot = Slot{to.Node, s.index}
			e.slots = true
		}
	}
	s.slots = &next
}

// SlotTable is the slots of work: who owns them, and how they change hands.
type SlotTable struct {
	fsm      *stateMachine
	proposer *proposer
}

// Owners returns who owns the slots, as this node knows it now.
func (t *SlotTable) Owners() *Slots { return t.fsm.load().slots }

// Changed returns a channel that is closed when a slot changes hands after
// the call.
func (t *SlotTable) Changed() <-chan struct{} { return t.fsm.slotsChanged.Next() }

// Move has slots change hands. A move that was decided on by something that
// is no longer true is passed over, which is no error: Owners tells what came of
// them.
func (t *SlotTable) Move(ctx context.Context, moves []SlotMove) error {
	_, err := t.proposer.propose(ctx, assignCommand(moves))
	return err
}

func assignCommand(moves []SlotMove) *metapb.Command {
	c := &metapb.AssignSlots{}
	for _, to := range moves {
		c.Slots = append(c.Slots, Slot{to.Node, to.Term}.proto(to.Slot))
	}
	return &metapb.Command{Op: &metapb.Command_AssignSlots{AssignSlots: c}}
}

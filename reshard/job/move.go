package job

import "divan/shard/ring"

// nextOfMove is Next for a move: a copy is added on the other node, is filled as any that joins, becomes
// full, and the one that it comes instead of leaves by itself (package repair).
func (j *Job) nextOfMove(s *Seen) Todo {
	to := s.Targets[0]
	ours := to.Instead == j.Node
	switch {
	case j.Step.place() >= WaitSourceClose.place() && !ours: // what is there now came later
		return Todo{Do: Finish, Step: StepCompleted}
	case s.Source.State == ring.StateGone && !to.State.Used():
		return j.fail("The shard is not there any more.")
	case s.Source.State == ring.StateGone && (to.State == ring.StateFull || !ours): // else it never was full
		return Todo{Do: Finish, Step: StepCompleted}
	case s.Source.State == ring.StateCopying:
		return j.fail("The shard is being made from another one.")
	case s.Source.State == ring.StateLeaving && !ours, to.State != ring.StateGone && !ours:
		return j.fail("The target has a copy of the shard already.")
	case to.State == ring.StateFull:
		return Todo{Do: Wait, Step: WaitSourceClose}
	case to.State == ring.StateGone && s.Source.State == ring.StateFull:
		return Todo{Do: Add, Step: InitialCopy, Ranges: []ring.Range{j.Range}}
	default:
		return Todo{Do: Wait, Step: InitialCopy}
	}
}

// undoOfMove gives up a copy that has not taken the place of the source yet.
func (j *Job) undoOfMove(s *Seen) []ring.Change {
	if to := s.Targets[0]; to.State == ring.StateJoining && to.Instead == j.Node && s.Source.State.Used() {
		return toState(ring.StateGone, to)
	}
	return nil
}

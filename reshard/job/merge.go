package job

import "divan/shard/ring"

// nextOfMerge is Next for a merge: a copy of the whole range is added on the node of its parts. Their
// sequences cannot be those of one copy, so it is not cloned: it joins and is filled by them. Then it
// is full and they leave, in one entry (package repair).
func (j *Job) nextOfMerge(s *Seen) Todo {
	switch to := s.Targets[0]; {
	case j.Step.place() >= WaitSourceClose.place() && s.Source.State != ring.StateLeaving && s.Source.State != ring.StateJoining:
		return Todo{Do: Finish, Step: StepCompleted} // what is there now came later
	case to.State == ring.StateFull && s.Source.State == ring.StateGone:
		return Todo{Do: Finish, Step: StepCompleted}
	case to.State == ring.StateFull && s.Source.State == ring.StateJoining: // it lost its files
		return Todo{Do: Propose, Step: UpdateShardmap, Changes: toState(ring.StateGone, s.Source)}
	case to.State == ring.StateFull:
		return Todo{Do: Wait, Step: WaitSourceClose}
	case to.State == ring.StateCopying:
		return Todo{Do: Propose, Step: InitialCopy, Changes: toState(ring.StateJoining, to)}
	case s.Source.State == ring.StateFull && to.State == ring.StateGone:
		return Todo{Do: Add, Step: InitialCopy, Ranges: []ring.Range{j.Range}}
	case s.Source.State == ring.StateFull, s.Source.State == ring.StateJoining:
		return Todo{Do: Wait, Step: InitialCopy}
	case s.Source.State == ring.StateLeaving, s.Source.State == ring.StateGone && to.State == ring.StateJoining:
		// It was full, or the parts would not have left, and lost its files since.
		return Todo{Do: Wait, Step: WaitSourceClose}
	default:
		return j.fail("The shards are not there any more.")
	}
}

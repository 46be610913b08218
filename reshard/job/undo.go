package job

import (
	"slices"

	"divan/shard/ring"
)

// Undo returns the changes that take back the work of a job that is not to go on: targets
// that are not full are given up. Once the source has left, only copies that are not needed
// go.
func (j *Job) Undo(s *Seen) []ring.Change {
	if !s.Database {
		return nil
	}
	if j.Type == Move {
		return j.undoOfMove(s)
	}
	_, copying := j.in(s, ring.StateCopying)
	if !s.Source.State.Used() {
		return toState(ring.StateGone, copying...)
	}
	switch full, _ := j.in(s, ring.StateFull); {
	case len(full) < len(j.targets()):
		_, joining := j.in(s, ring.StateJoining)
		return slices.Concat(toState(ring.StateGone, copying...), toState(ring.StateGone, joining...))
	case s.Source.State == ring.StateJoining:
		return toState(ring.StateGone, s.Source)
	default:
		return nil
	}
}

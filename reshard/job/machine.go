package job

import (
	"slices"

	"divan/shard/ring"
)

// Action is what is to be done.
type Action uint8

// The actions.
const (
	Wait    Action = iota + 1 // until the map is another one
	Add                       // copies of Ranges to the map, copying
	Clone                     // what changed in the source, to the copies of Ranges
	Index                     // the copies of Ranges
	Locals                    // local documents, to the copies of Ranges
	Propose                   // Changes of the map
	Finish                    // nothing is left to do
	Fail                      // for Reason: trying again is of no use
)

// Todo is what is to be done next.
type Todo struct {
	Do      Action
	Step    Step // the step that it belongs to
	Ranges  []ring.Range
	Changes []ring.Change
	Reason  string
}

// Next returns the step to go on with when what was to be done is done.
func (t *Todo) Next() Step {
	switch t.Do {
	case Clone, Index, Locals:
		return t.Step.after()
	default:
		return t.Step
	}
}

// Seen is what the map of a database says of the copies of a job.
type Seen struct {
	Database bool      // it is there
	Source   ring.Copy // of that state
	Targets  [2]ring.Copy
	Covered  bool // its node has copies of the whole range without the source, full or joining
}

// gone is a copy that the map does not have.
func gone() ring.Copy { return ring.Copy{State: ring.StateGone} }

// See looks for the copies of a job in the shards of its database.
func (j *Job) See(shards []ring.Shard) *Seen {
	find := func(r ring.Range) ring.Copy {
		for i := range shards {
			if shards[i].Range != r {
				continue
			}
			if c, ok := shards[i].CopyOn(j.Node); ok {
				return c
			}
		}
		return gone()
	}
	s := &Seen{Database: true, Source: find(j.Range)}
	for i, r := range Halves(j.Range) {
		s.Targets[i] = find(r)
	}
	s.Covered = ring.Everywhere(shards, j.Range, func(copies []ring.Copy) bool {
		return slices.ContainsFunc(copies, func(c ring.Copy) bool {
			return c.Node == j.Node && c.ID != s.Source.ID && (c.State == ring.StateFull || c.State == ring.StateJoining)
		})
	})
	return s
}

// in returns the ranges of the targets that are in a state.
func (j *Job) in(s *Seen, state ring.State) (ranges []ring.Range, copies []ring.Copy) {
	for i, r := range Halves(j.Range) {
		if s.Targets[i].State == state {
			ranges, copies = append(ranges, r), append(copies, s.Targets[i])
		}
	}
	return ranges, copies
}

// to are the changes that give copies a state.
func to(state ring.State, copies ...ring.Copy) []ring.Change {
	out := make([]ring.Change, len(copies))
	for i, c := range copies {
		out[i] = ring.Change{Copy: c.ID, To: state}
	}
	return out
}

// Next says what is to be done. at is the step that the job has come to.
func (j *Job) Next(s *Seen, at Step) Todo {
	switch {
	case !s.Database:
		return Todo{Do: Fail, Step: j.Step, Reason: "The database is not there any more."}
	case s.Source.State == ring.StateGone:
		return j.withoutSource(s)
	case s.Source.State == ring.StateLeaving:
		return Todo{Do: Wait, Step: WaitSourceClose}
	case s.Source.State == ring.StateCopying:
		return Todo{Do: Fail, Step: j.Step, Reason: "The shard is being made from another one."}
	}
	missing, _ := j.in(s, ring.StateGone)
	copying, copies := j.in(s, ring.StateCopying)
	switch {
	case len(copying) > 0 && j.Copy != s.Source.ID:
		// The source lost its files meanwhile: what it had is not what it has.
		return Todo{Do: Propose, Step: InitialCopy, Changes: to(ring.StateGone, copies...)}
	case s.Source.State == ring.StateJoining && len(missing) > 0:
		return Todo{Do: Wait, Step: InitialCopy}
	case len(missing) > 0:
		return Todo{Do: Add, Step: InitialCopy, Ranges: missing}
	case len(copying) > 0:
		return copyTo(copying, copies, at)
	}
	return j.handOver(s)
}

// copyTo is what is to be done for targets that are made.
func copyTo(ranges []ring.Range, copies []ring.Copy, at Step) Todo {
	t := Todo{Do: Clone, Step: at, Ranges: ranges}
	switch at {
	case Topoff1, Topoff2:
	case BuildIndices:
		t.Do = Index
	case CopyLocalDocs:
		t.Do = Locals
	case UpdateShardmap:
		return Todo{Do: Propose, Step: at, Changes: to(ring.StateJoining, copies...)}
	default:
		t.Step = InitialCopy
	}
	return t
}

// handOver is what is to be done when the targets take writes: they become full when they are
// filled, and the source leaves (package repair). One that lost its files has no role that
// others would have to take.
func (j *Job) handOver(s *Seen) Todo {
	if full, _ := j.in(s, ring.StateFull); len(full) == len(s.Targets) && s.Source.State == ring.StateJoining {
		return Todo{Do: Propose, Step: UpdateShardmap, Changes: to(ring.StateGone, s.Source)}
	}
	return Todo{Do: Wait, Step: UpdateShardmap}
}

// withoutSource is what is to be done when the map does not have the source. It has left,
// unless targets were never handed the range. What took it may have lost its files since, or
// was split again.
func (j *Job) withoutSource(s *Seen) Todo {
	if at := j.Step.place(); at >= WaitSourceClose.place() || at == UpdateShardmap.place() && s.Covered {
		return Todo{Do: Finish, Step: StepCompleted}
	}
	return Todo{Do: Fail, Step: j.Step, Reason: "The shard is not there any more."}
}

// Undo returns the changes that take back what a job has done that is not to go on: targets
// that are not full are given up. Once the source has left, only what nobody needs goes.
func (j *Job) Undo(s *Seen) []ring.Change {
	if !s.Database {
		return nil
	}
	_, copying := j.in(s, ring.StateCopying)
	if s.Source.State != ring.StateFull && s.Source.State != ring.StateJoining {
		return to(ring.StateGone, copying...)
	}
	_, full := j.in(s, ring.StateFull)
	switch {
	case len(full) == len(s.Targets):
		return to(ring.StateGone, s.Source)
	default:
		_, joining := j.in(s, ring.StateJoining)
		return slices.Concat(to(ring.StateGone, copying...), to(ring.StateGone, joining...))
	}
}

package job

import (
	"slices"

	"divan/shard/ring"
)

// Action is the kind of a Todo.
type Action uint8

// The actions.
const (
	Wait    Action = iota + 1 // until the map is another one
	Add                       // copies of Ranges to the map
	Clone                     // what changed in the source, to the copies of Ranges
	Index                     // the copies of Ranges
	Locals                    // local documents, to the copies of Ranges
	Propose                   // Changes of the map
	Finish                    // nothing is left to do
	Fail                      // for Reason: trying again is of no use
)

// Todo is the next action of a job.
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

// Seen is the part of a database's map that is about the copies of a job.
type Seen struct {
	Database bool      // it is there
	Source   ring.Copy // of that state; of a merge it is the first part that is neither full nor gone, else one that is gone, if any
	Targets  [2]ring.Copy
	Covered  bool // its node has copies of the whole range without the source, full or joining
}

// gone is a copy that the map does not have.
func gone() ring.Copy { return ring.Copy{State: ring.StateGone} }

// See looks for the copies of a job in the shards of its database.
func (j *Job) See(shards []ring.Shard) *Seen {
	find := func(r ring.Range, node string) ring.Copy {
		for i := range shards {
			if shards[i].Range != r {
				continue
			}
			if c, ok := shards[i].CopyOn(node); ok {
				return c
			}
		}
		return gone()
	}
	s := &Seen{Database: true, Targets: [2]ring.Copy{gone(), gone()}}
	if j.Type == Merge {
		for i, r := range j.Parts {
			part := find(r, j.Node)
			if i == 0 || s.Source.State == ring.StateFull || s.Source.State == ring.StateGone && part.State != ring.StateFull {
				s.Source = part
			}
		}
	} else {
		s.Source = find(j.Range, j.Node)
	}
	for i, r := range j.targets() {
		s.Targets[i] = find(r, j.Runner())
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
	for i, r := range j.targets() {
		if s.Targets[i].State == state {
			ranges, copies = append(ranges, r), append(copies, s.Targets[i])
		}
	}
	return ranges, copies
}

// toState are the changes that give copies a state.
func toState(state ring.State, copies ...ring.Copy) []ring.Change {
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
		return j.fail("The database is not there any more.")
	case j.Type == Move:
		return j.nextOfMove(s)
	case j.Type == Merge:
		return j.nextOfMerge(s)
	default:
		return j.nextOfSplit(s, at)
	}
}

func (j *Job) fail(reason string) Todo { return Todo{Do: Fail, Step: j.Step, Reason: reason} }

func (j *Job) nextOfSplit(s *Seen, at Step) Todo {
	switch s.Source.State {
	case ring.StateGone:
		return j.withoutSource(s)
	case ring.StateLeaving:
		return Todo{Do: Wait, Step: WaitSourceClose}
	case ring.StateCopying:
		return j.fail("The shard is being made from another one.")
	default:
	}
	missing, _ := j.in(s, ring.StateGone)
	copying, copies := j.in(s, ring.StateCopying)
	switch {
	case len(copying) > 0 && j.Copy != s.Source.ID:
		// The source lost its files meanwhile: what it had is not what it has.
		return Todo{Do: Propose, Step: InitialCopy, Changes: toState(ring.StateGone, copies...)}
	case s.Source.State == ring.StateJoining && len(missing) > 0:
		return Todo{Do: Wait, Step: InitialCopy}
	case len(missing) > 0:
		return Todo{Do: Add, Step: InitialCopy, Ranges: missing}
	case len(copying) > 0:
		return copyTo(copying, copies, at)
	}
	return j.handOver(s)
}

// copyTo returns the next action for targets that are made.
func copyTo(ranges []ring.Range, copies []ring.Copy, at Step) Todo {
	t := Todo{Do: Clone, Step: at, Ranges: ranges}
	switch at {
	case Topoff1, Topoff2:
	case BuildIndices:
		t.Do = Index
	case CopyLocalDocs:
		t.Do = Locals
	case UpdateShardmap:
		return Todo{Do: Propose, Step: at, Changes: toState(ring.StateJoining, copies...)}
	default:
		t.Step = InitialCopy
	}
	return t
}

// handOver returns the next action when the targets take writes: they become full when they
// are filled, and the source leaves (package repair). A source that lost its files has no
// role that others would have to take.
func (j *Job) handOver(s *Seen) Todo {
	if full, _ := j.in(s, ring.StateFull); len(full) == len(j.targets()) && s.Source.State == ring.StateJoining {
		return Todo{Do: Propose, Step: UpdateShardmap, Changes: toState(ring.StateGone, s.Source)}
	}
	return Todo{Do: Wait, Step: UpdateShardmap}
}

// withoutSource returns the next action when the map does not have the source. The source
// has left, unless the range was never handed to targets. The targets may have lost their
// files since, or were split again.
func (j *Job) withoutSource(s *Seen) Todo {
	if at := j.Step.place(); at >= WaitSourceClose.place() || at == UpdateShardmap.place() && s.Covered {
		return Todo{Do: Finish, Step: StepCompleted}
	}
	return j.fail("The shard is not there any more.")
}

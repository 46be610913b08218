package job_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/reshard/reshardtest"
	"divan/shard/ring"
	"divan/storage/fault"
)

const (
	here    = "a@host"
	history = 20
	retries = 2
)

// tester is a test, or a run of a property.
type tester interface {
	Context() context.Context
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is a job, and the map that it is about.
type world struct {
	t     tester
	group *reshardtest.Group
	db    string
	job   *job.Job
	kept  []byte // the job as it was written down
	at    job.Step
	now   int64
}

func (w *world) seen() *job.Seen {
	db, ok := w.group.Database(w.db)
	if !ok {
		return &job.Seen{}
	}
	return w.job.See(db.Shards)
}

func (w *world) keep() {
	text, err := w.job.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.kept = text
}

// crash forgets what was not written down.
func (w *world) crash() {
	j, err := job.Decode(w.kept)
	if err != nil {
		w.t.Fatal(err)
	}
	w.job, w.at = j, j.Step
}

// step does what is next, and returns it; fails says that it does not work.
func (w *world) step(fails bool) (todo job.Todo) {
	w.now++
	j := w.job
	if j.State != job.New && j.State != job.Running {
		return todo
	}
	seen := w.seen()
	todo = j.Next(seen, w.at)
	switch todo.Do {
	case job.Finish:
		j.Finish(w.now, history)
		w.keep()
		return todo
	case job.Fail:
		j.Fail(todo.Reason, w.now, history)
		w.keep()
		return todo
	default:
	}
	if j.Begin(&todo, seen, w.now, history) {
		w.keep()
	}
	if fails && todo.Do != job.Wait {
		j.Tried("no luck", retries, w.now, history)
		w.keep()
		return todo
	}
	w.do(&todo)
	if j.Did() {
		w.keep()
	}
	w.at = todo.Next()
	return todo
}

func (w *world) do(todo *job.Todo) {
	ctx := w.t.Context()
	var err error
	switch todo.Do {
	case job.Add:
		var out []ring.Addition
		for _, r := range todo.Ranges {
			a := ring.Addition{Range: r, Node: w.job.Runner()}
			if w.job.Type == job.Move {
				a.Instead = w.job.Node
			}
			out = append(out, a)
		}
		if err = w.group.AddCopies(ctx, w.db, w.job.DatabaseID, out); fault.Is(err, fault.Conflict) {
			err = nil // which is seen next
		}
	case job.Propose:
		err = w.propose(todo.Changes)
	case job.Clone, job.Index, job.Locals:
		if len(todo.Ranges) == 0 {
			w.t.Fatalf("%+v is done to nothing", todo)
		}
	default:
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) propose(changes []ring.Change) error {
	var out []meta.CopyChange
	for _, ch := range changes {
		out = append(out, meta.CopyChange{Name: w.db, ID: w.job.DatabaseID, Change: ch})
	}
	return w.group.ChangeCopies(w.t.Context(), out)
}

// lose has the copies of the job lose their files, as far as others are full.
func (w *world) lose() {
	s := w.seen()
	var lost []ring.Change
	for _, c := range append(s.Targets[:], s.Source) {
		if s.Database && c.State == ring.StateFull {
			lost = append(lost, ring.Change{Copy: c.ID, To: ring.StateJoining})
		}
	}
	if err := w.propose(lost); err != nil {
		w.t.Fatal(err)
	}
}

// covered reports whether full copies cover the ring.
func (w *world) covered() bool {
	db, ok := w.group.Database(w.db)
	if !ok {
		return true
	}
	point := uint64(0)
	for point < 1<<32 {
		i := slices.IndexFunc(db.Shards, func(s ring.Shard) bool { return s.Contains(uint32(point)) && len(s.Full()) > 0 })
		if i < 0 {
			return false
		}
		point = uint64(db.Shards[i].End) + 1
	}
	return true
}

// newWorld has a database on so many nodes. That is to be done with the second half, or both halves are to
// be merged.
func newWorld(t tester, what job.Type, nodes int) *world {
	names := []string{here, "b@host", "c@host"}[:nodes]
	w := &world{t: t, group: reshardtest.NewGroup(names...), db: "pond"}
	db := w.group.Create(w.db, ring.Split(2)...)
	one, _ := db.Shards[1].CopyOn(here)
	source := &job.Source{Type: what, Node: here, Database: w.db, DatabaseID: db.ID, Suffix: db.Suffix, Range: db.Shards[1].Range, Copy: one.ID}
	switch what {
	case job.Merge:
		source.Range, source.Parts = ring.Full(), ring.Split(2)
	case job.Move:
		source.To = "z@host"
	default:
	}
	w.job = job.NewJob(source, 0)
	w.at = w.job.Step
	w.keep()
	return w
}

// TestMachine: after any events, a job comes to an end when nothing more happens: it is
// complete, with the source gone and its halves full, or it says why not. And at no time
// the ring is not covered.
func TestMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.SampledFrom([]job.Type{job.Split, job.Merge, job.Move}).Draw(t, "type"), rapid.IntRange(1, 3).Draw(t, "nodes"))
		t.Repeat(map[string]func(*rapid.T){
			"step":   func(*rapid.T) { w.step(false) },
			"again":  func(*rapid.T) { w.step(false) },
			"fail":   func(*rapid.T) { w.step(true) },
			"crash":  func(*rapid.T) { w.crash() },
			"settle": func(*rapid.T) { w.group.Settle(w.db) },
			"lose":   func(*rapid.T) { w.lose() },
			"stop":   func(*rapid.T) { w.job.Stop("enough", w.now, history); w.keep(); w.at = w.job.Step },
			"resume": func(*rapid.T) { w.job.Resume(w.now, history); w.keep(); w.at = w.job.Step },
			"stop all": func(*rapid.T) {
				w.job.Disable(w.now, history)
				w.keep()
			},
			"start all": func(*rapid.T) { w.job.Enable(w.now, history); w.keep(); w.at = w.job.Step },
			"delete": func(t *rapid.T) {
				if rapid.IntRange(0, 20).Draw(t, "really") == 0 {
					w.group.Delete(w.db)
				}
			},
			"": func(*rapid.T) {
				if !w.covered() {
					t.Fatal("the ring is not covered")
				}
				if len(w.job.History) > history {
					t.Fatalf("%d entries of history", len(w.job.History))
				}
			},
		})
		w.rest(t)
	})
}

// rest lets the job come to its end.
func (w *world) rest(t *rapid.T) {
	w.job.Resume(w.now, history)
	w.at = w.job.Step
	for range 100 {
		w.step(false)
		w.group.Settle(w.db)
	}
	_, there := w.group.Database(w.db)
	seen := w.seen()
	switch {
	case w.job.State == job.Failed && w.job.Reason != "" && !there:
	case w.job.State == job.Completed && w.job.Step == job.StepCompleted && (!there || w.done(seen)):
	default:
		t.Fatalf("it ends as %+v with %+v", w.job, seen)
	}
}

// done reports whether the targets are full and the source is gone.
func (w *world) done(s *job.Seen) bool {
	for i := range w.job.Targets() {
		if s.Targets[i].State != ring.StateFull {
			return false
		}
	}
	return s.Source.State == ring.StateGone
}

// TestUndo: the copies that a removed job has made go, at any point of the job, and
// the range stays covered.
func TestUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.SampledFrom([]job.Type{job.Split, job.Merge, job.Move}).Draw(t, "type"), rapid.IntRange(1, 3).Draw(t, "nodes"))
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			w.step(false)
			if rapid.Bool().Draw(t, "settle") {
				w.group.Settle(w.db)
			}
		}
		for range 20 {
			if err := w.propose(w.job.Undo(w.seen())); err != nil {
				t.Fatal(err)
			}
			w.group.Settle(w.db)
			if !w.covered() {
				t.Fatal("the ring is not covered")
			}
		}
		s := w.seen()
		before := s.Source.State == ring.StateFull && s.Targets[0].State == ring.StateGone && s.Targets[1].State == ring.StateGone
		if !before && !w.done(s) {
			t.Fatalf("%+v is left", s)
		}
	})
}

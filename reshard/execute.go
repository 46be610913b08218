package reshard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/fault"
	"divan/storage/pause"
)

const (
	// lookFirst and lookEvery are the pauses between looks at the map while others have to
	// do something: the first one, and the longest.
	lookFirst = 20 * time.Millisecond
	lookEvery = time.Second

	// madeWithin is how long this node may take to make copies that the map has.
	madeWithin = time.Minute
)

// errSuperseded says that a job is no longer what the work was begun for.
var errSuperseded = errors.New("the job was changed")

// persist repeats f until it says something final: what the metadata of the cluster is
// asked for is not the job's failure while no leader answers.
func (w *work) persist(ctx context.Context, f func(ctx context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil || !unanswered(err) {
			return err
		}
		w.log.Debug("resharding waits for the metadata", zap.Error(err))
		if err := pause.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// unanswered reports whether an error says that no decision could be reached.
func unanswered(err error) bool {
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) || fault.Is(err, fault.Busy)
}

// begin returns the job as it is now; false when the work is for another one.
func (w *work) begin(ctx context.Context) (*entry, bool) {
	t := w.r.table
	if w.persist(ctx, t.dbs.CatchUp) != nil { // what this node knew after a restart may be old
		return nil, false
	}
	e, ok := t.entry(w.id)
	return &e, ok && t.kindOf(e.job, t.State().Stopped) == w.kind
}

// settle brings the job in line with the state of the cluster.
func (w *work) settle(ctx context.Context) {
	err := w.persist(ctx, func(ctx context.Context) error { return w.r.table.settle(ctx, w.id) })
	if err != nil && !fault.Is(err, fault.NotFound) {
		w.unwritten(ctx, err)
	}
}

// unwritten says that a job could not be changed, and waits until it is looked at again.
func (w *work) unwritten(ctx context.Context, err error) {
	if ctx.Err() == nil {
		w.log.Error("a job of resharding cannot be written down", zap.Error(err))
	}
	_ = pause.For(ctx, lookEvery) // who waits looks at ctx
}

// undo gives up what a removed job has made.
func (w *work) undo(ctx context.Context) {
	for rest := newPatience(); ; {
		e, ok := w.begin(ctx)
		if !ok {
			return
		}
		if err := w.r.table.undo(ctx, e); err != nil && ctx.Err() == nil {
			w.log.Warn("what a removed job of resharding has made stays for now", zap.Error(err))
		}
		if rest.wait(ctx) != nil {
			return
		}
	}
}

// execute does what the job is for.
func (w *work) execute(ctx context.Context) {
	e, ok := w.begin(ctx)
	if !ok {
		return
	}
	if err := w.steps(ctx, e); err != nil && !errors.Is(err, errSuperseded) {
		w.unwritten(ctx, err)
	}
}

// steps does one step after the other, until the job has ended.
func (w *work) steps(ctx context.Context, e *entry) error {
	t, j := w.r.table, e.job
	unsaved := false
	rest := newPatience()
	for at, last := j.Step, (job.Todo{}); ; {
		seen := t.dbs.see(j)
		todo := j.Next(seen, at)
		if todo.Do == job.Finish || todo.Do == job.Fail {
			return w.end(ctx, e, &todo)
		}
		if j.Begin(&todo, seen, time.Now().Unix(), t.history()) || unsaved {
			if err := w.save(ctx, e); err != nil {
				return err
			}
			unsaved = false
		}
		if todo.Do != last.Do || todo.Step != last.Step {
			rest = newPatience()
		} else if err := rest.wait(ctx); err != nil {
			return err
		}
		w.task.show(todo.Step)
		err := w.do(ctx, j, &todo)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			again, err := w.failed(ctx, e, &todo, err)
			if err != nil || !again {
				return err
			}
			last = job.Todo{}
			continue
		}
		unsaved = j.Did()
		at, last = todo.Next(), todo
	}
}

// end notes that the job has ended.
func (w *work) end(ctx context.Context, e *entry, todo *job.Todo) error {
	now := time.Now().Unix()
	if todo.Do == job.Fail {
		w.log.Warn("a job of resharding has failed", zap.String("step", string(e.job.Step)), zap.String("reason", todo.Reason))
		e.job.Fail(todo.Reason, now, w.r.table.history())
	} else {
		if e.job.Type == job.Split {
			w.removeSource(ctx, e.job)
		}
		w.log.Info("a job of resharding is complete", zap.String("type", string(e.job.Type)))
		e.job.Finish(now, w.r.table.history())
	}
	return w.save(ctx, e)
}

// removeSource removes the directory of the source, which has gone from the map, where this node
// has ended before it had.
func (w *work) removeSource(ctx context.Context, j *job.Job) {
	name := j.Name()
	if id, err := w.r.o.Copies.ID(name); err != nil || id != j.Copy || !w.r.o.Copies.Has(name) {
		return
	}
	if err := w.r.o.Copies.Drop(ctx, name); err != nil && !fault.Is(err, fault.NoCopy) {
		w.log.Warn("source of a split stays on the disk for now", zap.Error(err))
	}
}

// failed notes that something has failed, and waits until it is tried again; false: it is
// not.
func (w *work) failed(ctx context.Context, e *entry, todo *job.Todo, cause error) (again bool, err error) {
	if _, ok := w.r.table.dbs.database(e.job); !ok {
		return true, nil // which is seen next
	}
	if unanswered(cause) {
		if e.job.Await(cause.Error(), time.Now().Unix()) {
			if err := w.save(ctx, e); err != nil {
				return false, err
			}
		}
		return true, pause.For(ctx, lookEvery)
	}
	s := w.r.o.Config.Load().Reshard
	again = e.job.Tried(cause.Error(), s.MaxRetries, time.Now().Unix(), s.MaxHistory)
	w.log.Warn("a step of a job of resharding has failed", zap.String("step", string(todo.Step)), zap.Bool("again", again), zap.Error(cause))
	if err := w.save(ctx, e); err != nil || !again {
		return false, err
	}
	return true, pause.For(ctx, s.RetryInterval)
}

// save writes the job down. errSuperseded: another goroutine or node has
// changed it.
func (w *work) save(ctx context.Context, e *entry) error {
	return w.persist(ctx, func(ctx context.Context) error {
		err := w.r.table.put(ctx, e)
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		now, ok := w.r.table.entry(w.id)
		if !ok || !same(now.job, e.job) { // else an attempt that seemed to fail has done it
			return errSuperseded
		}
		e.version = now.version
		return nil
	})
}

func same(a, b *job.Job) bool {
	x, errX := a.Encode()
	y, errY := b.Encode()
	return errX == nil && errY == nil && string(x) == string(y)
}

// do does what is to be done.
func (w *work) do(ctx context.Context, j *job.Job, todo *job.Todo) error {
	switch todo.Do {
	case job.Add:
		out := make([]ring.Addition, len(todo.Ranges))
		for i, r := range todo.Ranges {
			out[i] = ring.Addition{Range: r, Node: j.Runner()}
			if j.Type == job.Move {
				out[i].Instead = j.Node
			}
		}
		return w.r.o.Map.AddCopies(ctx, j.Database, j.DatabaseID, out)
	case job.Propose:
		return w.r.table.dbs.propose(ctx, j, todo.Changes)
	case job.Clone:
		db, ok := w.r.table.dbs.database(j)
		if !ok {
			return nil // which is seen next
		}
		return w.cloneAll(ctx, db, j, todo.Ranges)
	case job.Index, job.Locals:
		db, ok := w.r.table.dbs.database(j)
		if !ok {
			return nil // which is seen next
		}
		for _, r := range todo.Ranges {
			if err := w.doTo(ctx, db, j, todo.Do, r); err != nil {
				return err
			}
		}
	default: // waiting is looking again
	}
	return nil
}

// doTo does something to one target.
//
// When the map has changed so that there is nothing to do it does nothing: that is seen next.
func (w *work) doTo(ctx context.Context, db *meta.Database, j *job.Job, what job.Action, r ring.Range) error {
	o := w.cloneOptions(db, j, r)
	if there, err := w.made(ctx, j, o.Target); err != nil || !there {
		return err
	}
	if what == job.Index {
		return w.r.o.Index(ctx, db.Name, o.Target)
	}
	return w.r.o.Clones.LocalDocs(ctx, o)
}

// made waits until this node has the copy that the map has, and not an older one of that name.
// there: the map has one.
func (w *work) made(ctx context.Context, j *job.Job, name string) (there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, madeWithin)
	defer cancel()
	for rest := newPatience(); ; {
		c, ok := w.r.table.dbs.target(j, name)
		if !ok {
			return false, nil
		}
		if w.r.o.Copies.Has(name) {
			if id, err := w.r.o.Copies.ID(name); err == nil && id == c.ID {
				return true, nil
			}
		}
		if rest.wait(ctx) != nil {
			return false, fmt.Errorf("%s was not made within %v", name, madeWithin)
		}
	}
}

// patience is the pauses between looks at what others have to do.
type patience struct{ next time.Duration }

func newPatience() *patience { return &patience{lookFirst} }

func (p *patience) wait(ctx context.Context) error {
	d := p.next
	p.next = min(2*d, lookEvery)
	return pause.For(ctx, d)
}

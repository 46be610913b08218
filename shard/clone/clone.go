// Package clone brings one store to what another one of the same node holds of a part
// of the ids, with the sequences that changes have there. Bytes are copied as they
// are stored.
package clone

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"divan/storage"
	"divan/storage/fault"
)

// Options say what is cloned. All but Progress and StepBytes are required.
type Options struct {
	Source *storage.Snapshot // durable
	Target *storage.Store    // takes nothing else meanwhile; durable
	// Belongs reports whether a document belongs into the target.
	Belongs func(id string) bool
	// Write has the single writer of the target fill a fresh batch with a step and
	// apply it. It need not wait until that is durable but for the last step.
	Write func(ctx context.Context, s *Step) error
	// Progress hears how many changes of how many have been looked at.
	Progress func(done, total uint64)
	// StepBytes is the size of a step, more or less; 0: 1 MB.
	StepBytes int
	// Pace, when set, returns when so many bytes more may be copied.
	Pace func(ctx context.Context, bytes int) error
}

// Run clones. The target has been cloned from the same source before, as far as its
// sequence tells, or is empty. One that is empty is filled by tables, all in one step:
// when that is interrupted it is empty still. For others steps are in the order of
// sequences, purges of before in front of them; each leaves a target that another Run
// goes on with:
//
//	R1  The target has of a document what the source has of it up to the
//	    target's sequence, unless an entry of the source's purge log above the
//	    target's purge sequence names the document.
//	R2  The first of the target's origins names the source and the target's
//	    sequence.
//
// A purge that changed a document has moved its sequence, or the source does not have
// it any more; so an entry only has to take out what is gone there.
//
// What compaction has dropped in the source since stays in the target: contents of
// inner revisions, entries of the purge log.
func Run(ctx context.Context, o Options) error {
	if o.Progress == nil {
		o.Progress = func(uint64, uint64) {}
	}
	if o.Pace == nil {
		o.Pace = func(ctx context.Context, _ int) error { return ctx.Err() }
	}
	if o.StepBytes <= 0 {
		o.StepBytes = stepBytes
	}
	r := &run{Options: o, steps: make(chan *Step, 1), free: make(chan *Step, stepsInUse), pace: pace{limit: o.Pace}}
	if done, err := r.begin(); done || err != nil {
		return err
	}
	if r.from == 0 && r.Target.Counters().PurgeSeq == 0 {
		return r.fill(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.ctx = ctx
	var writing sync.WaitGroup
	var written error
	writing.Go(func() {
		if written = r.write(); written != nil {
			cancel(written)
		}
	})
	err := r.read() //nolint:contextcheck // an ingestion cannot be given up half way
	if err != nil {
		cancel(err) // steps that wait are not needed to go on from
	}
	close(r.steps)
	writing.Wait()
	if err != nil || written != nil {
		return context.Cause(ctx) // what came first
	}
	return nil
}

// run is one Run: what reads the source makes steps, what writes the target is one
// step behind.
type run struct {
	Options
	ctx     context.Context // of the Run
	origins []storage.Origin
	from    uint64 // the target's sequence when it begins
	empty   bool   // the target had no documents then
	step    *Step  // being filled
	steps   chan *Step
	free    chan *Step // to be used again
	pace    pace
}

// begin compares where the two are; done: nothing is to be cloned.
func (r *run) begin() (done bool, err error) {
	have, want := r.Target.Counters(), r.Source.Counters()
	source := storage.Origin{UUID: r.Source.Store().UUID(), Upto: want.Seq}
	r.origins = append([]storage.Origin{source}, r.Source.Origins()...)
	r.from, r.empty = have.Seq, have.Live+have.Deleted == 0
	known := r.Target.Origins()
	switch {
	case have.Seq == 0 && have.PurgeSeq == 0:
		return want.Seq == 0 && want.PurgeSeq == 0, nil
	case len(known) == 0 || known[0].UUID != source.UUID:
		return false, errors.New("clone a store: the target has not come from this source")
	case known[0].Upto != have.Seq:
		return false, errors.New("clone a store: the target has taken changes of its own")
	case have.Seq > want.Seq || have.PurgeSeq > want.PurgeSeq:
		return false, errors.New("clone a store: the source is behind what was cloned of it")
	}
	return have.Seq == want.Seq && have.PurgeSeq == want.PurgeSeq, nil
}

// read makes all steps.
func (r *run) read() error {
	r.step = r.take()
	if err := r.readPurges(); err != nil {
		return fmt.Errorf("clone purges: %w", err)
	}
	if err := r.readChanges(); err != nil {
		return fmt.Errorf("clone documents: %w", err)
	}
	want := r.Source.Counters()
	r.step.seq, r.step.purgeSeq, r.step.Last = want.Seq, want.PurgeSeq, true
	return r.emit()
}

// stepsInUse are the steps in memory at once: one is filled, one waits, one is
// written.
const stepsInUse = 3

// take returns an empty step.
func (r *run) take() *Step {
	select {
	case s := <-r.free:
		s.reset()
		return s
	default:
		return &Step{run: r}
	}
}

// emit hands the step on and begins another.
func (r *run) emit() error {
	if err := r.pace.wait(r.ctx, r.step.bytes); err != nil {
		return err
	}
	select {
	case r.steps <- r.step:
		r.step = r.take()
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// write writes steps until there are no more.
func (r *run) write() error {
	expected := r.from
	for s := range r.steps {
		if err := r.ctx.Err(); err != nil {
			return context.Cause(r.ctx)
		}
		s.expected = expected
		if err := r.Write(r.ctx, s); err != nil {
			return err
		}
		expected = max(expected, s.seq)
		select {
		case r.free <- s:
		default:
		}
	}
	return nil
}

// errOwn ends a Run whose target takes writes from elsewhere.
func errOwn() error {
	return fault.New(fault.Unavailable, "The copy takes changes of its own while it is cloned.")
}

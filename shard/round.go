package shard

import (
	"fmt"

	"divan/storage"
	"divan/storage/doc"
)

// round is what one batch is made of: the tasks that waited, decided one after
// the other, each seeing what those before it did.
//
// One document gets one sequence per round, in the order in which documents
// were first touched, however many tasks changed it (semantics.md section 2.5).
type round struct {
	replica *replica
	store   *storage.Store
	states  map[string]*state // documents touched so far
	order   []*state
	locals  []localEdit
	purges  []storage.Purge
	discard []*dropTask
	alone   func(b *storage.Batch) error // of an exclusive task
	jobs    []*job
	errs    []error // the outcome of each job
	fresh   uint64  // purge sequence of the last entry in purges

	commit *storage.Commit // nil: nothing was written
	number uint64          // counts the rounds of a replica that write; 0: this one does not
	seq    uint64          // last sequence of the store after this round
	moved  bool            // seq is not what it was before
}

// rounds does jobs in their order: exclusive ones alone, those between them
// together. It runs on the writer's goroutine.
func (r *replica) rounds(jobs []*job, syncs chan<- *round) {
	for len(jobs) > 0 {
		n := 0
		for n < len(jobs) && !isExclusive(jobs[n]) {
			n++
		}
		r.round(jobs[:max(n, 1)], syncs)
		jobs = jobs[max(n, 1):]
	}
}

// round decides jobs, applies their batch and hands it to the finisher.
func (r *replica) round(jobs []*job, syncs chan<- *round) {
	store, err := r.local.engine.Acquire(r.name)
	if err != nil {
		answerAll(jobs, fmt.Errorf("open %s for writing: %w", r.name, err))
		return
	}
	// Not before: a store that was opened again since would get what was decided
	// on rounds that are lost.
	if err := r.failure(); err != nil {
		r.local.engine.Release(store)
		answerAll(jobs, err)
		return
	}
	rd := &round{
		replica: r, store: store, states: make(map[string]*state, len(jobs)),
		jobs: make([]*job, 0, len(jobs)), errs: make([]error, 0, len(jobs)),
	}
	rd.seq = store.Counters().Seq
	for _, j := range jobs {
		rd.run(j)
	}
	if err := rd.apply(); err != nil {
		r.purged.reset() // what it learned in this round was not written
		if cause := store.Err(); cause != nil {
			r.fail(fmt.Errorf("shard copy %s stopped: %w", r.name, cause))
		}
		for i := range rd.errs {
			rd.errs[i] = err
		}
	}
	for i, j := range rd.jobs {
		if j.early {
			j.answer(rd.errs[i])
		}
	}
	syncs <- rd
}

// run stages one job. A stale one goes back to its request at once.
func (rd *round) run(j *job) {
	err := j.task.stage(rd)
	if isStale(err) {
		j.answer(err)
		return
	}
	rd.jobs = append(rd.jobs, j)
	rd.errs = append(rd.errs, err)
}

// apply writes the batch: everything of the round in it, or nothing.
func (rd *round) apply() error {
	b := rd.store.NewBatch()
	if rd.alone != nil {
		if err := rd.alone(b); err != nil {
			b.Discard()
			return err
		}
	}
	seq := rd.seq
	ids := make([]string, 0, len(rd.order))
	for _, s := range rd.order {
		if !s.changed {
			continue
		}
		if s.write(b, seq+1) {
			seq++
			ids = append(ids, s.id)
		}
	}
	for i := range rd.locals {
		rd.locals[i].write(b)
	}
	for i := range rd.purges {
		b.PutPurge(rd.purges[i])
	}
	// After the documents: what they have claimed in this round stays.
	for _, t := range rd.discard {
		b.GiveUp(t.id, t.keys...)
	}
	// A batch that could not be begun is empty too, so it is not asked.
	if len(ids)+len(rd.locals)+len(rd.purges)+len(rd.discard) == 0 && rd.alone == nil {
		b.Discard()
		return nil
	}
	return rd.commitBatch(b, seq, ids)
}

// commitBatch applies b; the order of the steps is that of H3 and of recent.
func (rd *round) commitBatch(b *storage.Batch, seq uint64, ids []string) error {
	r := rd.replica
	r.begun++
	rd.number = r.begun
	r.horizon.begin(rd.number, rd.seq, len(rd.locals) > 0 || len(rd.purges) > 0)
	commit, err := b.Apply()
	if err != nil {
		return fmt.Errorf("apply a batch: %w", err)
	}
	rd.commit = commit
	rd.moved = seq != rd.seq
	rd.seq = seq
	moment := r.local.clock.Add(1)
	if rd.alone != nil {
		r.recent.reset(moment) // it may have rewritten any record
		return nil
	}
	r.recent.note(moment, ids)
	return nil
}

// write puts what the round made of the document into the batch. It reports
// whether that took the sequence: also a document that is gone moves it, so
// that whoever saw the copy before knows that it has changed.
func (s *state) write(b *storage.Batch, seq uint64) bool {
	out := s.seal()
	if out.next == nil && s.base == nil {
		return false // came and went within the round
	}
	for _, rev := range out.dels {
		b.DeleteRevision(s.id, rev)
	}
	for i := range out.puts {
		if p := &out.puts[i]; p.moved {
			b.PutRevisionText(s.id, p.rev, p.encoded)
		} else {
			b.PutRevision(s.id, p.rev, p.content)
		}
	}
	for i := range s.contents {
		b.PutAttachment(s.id, s.contents[i].key, s.contents[i].data)
	}
	if out.next == nil {
		b.Remove(s.base)
		b.Advance(seq)
		return true
	}
	out.next.Seq = seq
	b.Put(s.base, out.next)
	return true
}

// finish is the finisher goroutine: it waits for the batches in order,
// publishes what is durable, and answers. After a failed sync nothing that was
// applied later can be promised either.
func (r *replica) finish(syncs <-chan *round) {
	for rd := range syncs {
		err := r.failure()
		if rd.commit != nil {
			if werr := rd.commit.Wait(); werr != nil && err == nil {
				r.fail(fmt.Errorf("shard copy %s stopped: make writes durable: %w", r.name, werr))
				err = r.failure()
			}
		}
		r.local.engine.Release(rd.store)
		if err != nil {
			answerAll(rd.jobs, err)
			continue
		}
		if rd.number != 0 {
			r.horizon.publish(rd.number, rd.seq)
			if r.troubled && rd.commit != nil {
				r.troubled = false
				r.local.recovered(r.name)
			}
		}
		for i, j := range rd.jobs {
			j.answer(rd.errs[i])
		}
		switch {
		case rd.moved:
			r.announce()
		case len(rd.purges) > 0:
			r.tell() // other copies may have something to purge
		}
	}
}

// failure returns why the copy stopped, nil while it works.
func (r *replica) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.err
}

func answerAll(jobs []*job, err error) {
	for _, j := range jobs {
		j.answer(err)
	}
}

// state returns a copy of a document's state in this round, for a task that
// may yet fail; adopt makes it the round's.
func (rd *round) state(id string) (*state, error) {
	if s := rd.states[id]; s != nil {
		return s.clone(), nil
	}
	return readState(rd.store, id)
}

// revision reads stored content for a task.
func (rd *round) revision(id string, rev doc.Rev) (doc.Revision, error) {
	return readRevision(rd.store, id, rev)
}

// untouched reports whether a document is as a request read it that noted the
// node's clock before.
func (rd *round) untouched(id string, moment uint64) bool {
	return rd.states[id] == nil && rd.replica.recent.unchanged(id, moment)
}

// adopt takes over the states that a task has decided.
func (rd *round) adopt(states []*state) {
	for _, s := range states {
		if old := rd.states[s.id]; old != nil {
			*old = *s
			continue
		}
		rd.states[s.id] = s
		rd.order = append(rd.order, s)
	}
}

// lastPurge returns the sequence of the last entry in the log of purges.
func (rd *round) lastPurge() uint64 {
	if rd.fresh == 0 {
		return rd.store.Counters().PurgeSeq
	}
	return rd.fresh
}

// nextPurge returns the sequence of the next entry in the log of purges.
func (rd *round) nextPurge() uint64 {
	rd.fresh = rd.lastPurge() + 1
	return rd.fresh
}

// reader is what reading records and contents takes: a store, or one moment
// of it.
type reader interface {
	Record(id string) (doc.Record, bool, error)
	Revision(id string, rev doc.Rev) (doc.Revision, bool, error)
}

// readState reads a document to decide on it.
func readState(from reader, id string) (*state, error) {
	rec, ok, err := from.Record(id)
	if err != nil {
		return nil, fmt.Errorf("read document %q: %w", id, err)
	}
	if !ok {
		return newState(id, nil), nil
	}
	return newState(id, &rec), nil
}

// readRevision reads content that the tree says is stored.
func readRevision(from reader, id string, rev doc.Rev) (doc.Revision, error) {
	v, ok, err := from.Revision(id, rev)
	switch {
	case err != nil:
		return doc.Revision{}, fmt.Errorf("read revision %s of %q: %w", rev, id, err)
	case !ok:
		return doc.Revision{}, fmt.Errorf("read revision %s of %q: %w", rev, id, errLostContent())
	}
	return v, nil
}

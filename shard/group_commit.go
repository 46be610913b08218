package shard

import (
	"fmt"
	"strings"

	"divan/storage"
	"divan/storage/doc"
)

// groupCommit builds one batch from the tasks that waited, decided one after the
// other; each sees the effects of the tasks before it. Comments call it a group.
//
// One document gets one sequence per group, in the order in which documents
// were first touched, however many tasks changed it (semantics.md section 2.5).
type groupCommit struct {
	copy      *copyState
	store     *storage.Store       // of the jobs, which keep it pinned
	pinned    bool                 // by the group itself
	states    map[string]*docState // documents touched so far
	order     []*docState
	locals    []localEdit
	purges    []storage.Purge
	discard   []*dropTask
	exclusive *exclusive // nil: none
	jobs      []*job
	errs      []error // the outcome of each job
	purgeSeq  uint64  // purge sequence of the last entry in purges

	commit *storage.Commit // nil: nothing was written
	group  uint64          // counts the groups of a copyState that write; 0: this one does not
	seq    uint64          // last sequence of the store after this group
	moved  bool            // seq is not what it was before
	design bool            // a design document has changed
}

// commitGroups does jobs in their order: exclusive ones alone, those between them
// together. It runs on the writer's goroutine.
func (c *copyState) commitGroups(jobs []*job, syncs chan<- *groupCommit) {
	for len(jobs) > 0 {
		n := 0
		for n < len(jobs) && !isExclusive(jobs[n]) {
			n++
		}
		c.commitGroup(jobs[:max(n, 1)], syncs)
		jobs = jobs[max(n, 1):]
	}
}

// commitGroup decides jobs, applies their batch and hands it to the finisher.
func (c *copyState) commitGroup(jobs []*job, syncs chan<- *groupCommit) {
	edits, early := 0, false
	for _, j := range jobs {
		if n, _ := j.task.cost(); !isExclusive(j) {
			edits += n
		}
		early = early || j.early
	}
	store := jobs[0].store
	err := c.pinFor(store, early)
	if err == nil {
		if err = c.failure(); err != nil && early {
			c.states.engine.Release(store)
		}
	}
	if err != nil {
		answerAll(jobs, err)
		return
	}
	g := &groupCommit{
		copy: c, store: store, pinned: early, states: make(map[string]*docState, edits), order: make([]*docState, 0, edits),
		jobs: make([]*job, 0, len(jobs)), errs: make([]error, 0, len(jobs)),
	}
	g.seq = store.Counters().Seq
	var stale []*job
	for _, j := range jobs {
		if !g.stage(j) {
			stale = append(stale, j)
		}
	}
	if len(g.jobs) == 0 { // nothing to wait for: a stalled store would hold the requests
		if early {
			c.states.engine.Release(store)
		}
		answerAll(stale, errStale)
		return
	}
	answerAll(stale, errStale) // the others have the store pinned, or the group has
	if err := g.apply(); err != nil {
		c.purged.reset() // what it learned in this group was not written
		if cause := store.Err(); cause != nil {
			c.fail(fmt.Errorf("shard copy %s stopped: %w", c.name, cause))
		}
		for i := range g.errs {
			g.errs[i] = err
		}
	}
	for i, j := range g.jobs {
		if j.early {
			j.answer(g.errs[i])
		}
	}
	syncs <- g
}

// pinFor makes sure of the store of a group, which the jobs have pinned, and pins it for the group
// itself when some are answered before the group is durable. The error is fault.NoCopy when the
// copy was dropped.
func (c *copyState) pinFor(store *storage.Store, early bool) (err error) {
	if early {
		_, err = c.states.engine.Acquire(c.name)
	} else {
		err = store.Dropped()
	}
	if err != nil {
		return fmt.Errorf("open %s for writing: %w", c.name, err)
	}
	return nil
}

// stage stages one job; false when it is stale, and has to go back to its request.
func (g *groupCommit) stage(j *job) bool {
	err := j.task.stage(g)
	if isStale(err) {
		return false
	}
	g.jobs = append(g.jobs, j)
	g.errs = append(g.errs, err)
	return true
}

// apply writes the batch: everything of the group in it, or nothing.
func (g *groupCommit) apply() error {
	newBatch := g.store.NewBatch
	if g.exclusive != nil && !g.exclusive.edits { // a compaction, which gives space back
		newBatch = g.store.NewReserveBatch
	}
	b := newBatch()
	if g.exclusive != nil {
		if err := g.exclusive.fn(b); err != nil {
			b.Discard()
			return err
		}
	}
	seq := g.seq
	ids := make([]string, 0, len(g.order))
	var space []byte
	for _, s := range g.order {
		if !s.changed {
			continue
		}
		if s.write(b, seq+1, &space) {
			seq++
			ids = append(ids, s.id)
			g.design = g.design || strings.HasPrefix(s.id, designPrefix)
		}
	}
	for i := range g.locals {
		g.locals[i].write(b)
	}
	for i := range g.purges {
		b.PutPurge(g.purges[i])
	}
	// After the documents: what they have claimed in this group stays.
	for _, t := range g.discard {
		b.DropUploads(t.id, t.keys...)
	}
	// A batch that could not be begun is empty too, so it is not asked.
	if len(ids)+len(g.locals)+len(g.purges)+len(g.discard) == 0 && g.exclusive == nil {
		b.Discard()
		return nil
	}
	return g.commitBatch(b, seq, ids)
}

// commitBatch applies b; the order of the steps is that of D3 and of recentwrites.Writes.
func (g *groupCommit) commitBatch(b *storage.Batch, seq uint64, ids []string) error {
	c := g.copy
	c.groups++
	g.group = c.groups
	edits := g.exclusive != nil && g.exclusive.edits
	c.durable.begin(g.group, g.seq, len(g.locals) > 0 || len(g.purges) > 0 || edits)
	b.Waiters(len(g.jobs))
	commit, err := b.Apply()
	if err != nil {
		return fmt.Errorf("apply a batch: %w", err)
	}
	g.commit = commit
	if edits {
		seq = g.store.Counters().Seq
		c.purged.reset()
	}
	g.moved = seq != g.seq
	g.seq = seq
	ts := c.states.clock.Add(1)
	if g.exclusive != nil {
		c.recent.Reset(ts) // it may have rewritten any record
		return nil
	}
	c.recent.Note(ts, ids)
	return nil
}

// finish is the finisher goroutine: it waits for the batches in order,
// publishes what is durable, and answers. After a failed sync nothing that was
// applied later can be promised either.
func (c *copyState) finish(syncs <-chan *groupCommit) {
	for g := range syncs {
		err := c.failure()
		if g.commit != nil {
			if werr := g.commit.Wait(); werr != nil && err == nil {
				c.fail(fmt.Errorf("shard copy %s stopped: make writes durable: %w", c.name, werr))
				err = c.failure()
			}
		}
		if g.pinned {
			c.states.engine.Release(g.store)
		}
		if err != nil {
			answerAll(g.jobs, err)
			continue
		}
		if g.group != 0 {
			c.durable.publish(g.group, g.seq)
			if c.recovering && g.commit != nil {
				c.recovering = false
				c.states.noteRecovery(c.name)
			}
		}
		if g.design && c.states.onDesignDoc != nil {
			c.states.onDesignDoc(c.name)
		}
		for i, j := range g.jobs {
			j.answer(g.errs[i])
		}
		switch {
		case g.moved:
			c.notifyWatchers()
		case len(g.purges) > 0:
			c.notifyNode() // other copies may have something to purge
		}
	}
}

func answerAll(jobs []*job, err error) {
	for _, j := range jobs {
		j.answer(err)
	}
}

// state returns a copy of a document's state in this group, for a task that
// may yet fail; adopt makes it the group's.
func (g *groupCommit) state(id string, fresh bool) (*docState, error) {
	if s := g.states[id]; s != nil {
		return s.clone(), nil
	}
	return readDocState(g.store.Reader(), id, fresh)
}

// revision reads stored content for a task.
func (g *groupCommit) revision(id string, rev doc.Rev) (doc.Revision, error) {
	return readRevision(g.store.Reader(), id, rev)
}

// history reads what lies in blocks for a task: the group has not changed those yet.
func (g *groupCommit) history(id string, below doc.Below) (doc.Tree, error) {
	return g.store.Reader().History(id, below)
}

// oldest is history for the first block.
func (g *groupCommit) oldest(id string, below doc.Below) (doc.Tree, error) {
	return g.store.Reader().Oldest(id, below)
}

// unchangedSince reports whether a document is as a request read it that noted the
// node's clock before.
func (g *groupCommit) unchangedSince(id string, ts uint64) bool {
	return g.states[id] == nil && g.copy.recent.Unchanged(id, ts)
}

// adopt takes over the states that a task has decided.
func (g *groupCommit) adopt(states []*docState) {
	for _, s := range states {
		if old := g.states[s.id]; old != nil {
			*old = *s
			continue
		}
		g.states[s.id] = s
		g.order = append(g.order, s)
	}
}

// lastPurge returns the sequence of the last entry in the purge log.
func (g *groupCommit) lastPurge() uint64 {
	if g.purgeSeq == 0 {
		return g.store.Counters().PurgeSeq
	}
	return g.purgeSeq
}

// nextPurge returns the sequence of the next entry in the purge log.
func (g *groupCommit) nextPurge() uint64 {
	g.purgeSeq = g.lastPurge() + 1
	return g.purgeSeq
}

package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// editTask is a Decide or a Follow on its way through the writer.
type editTask struct {
	states *copyStates
	copy   string
	open   OpenCopy
	edits  []Edit
	limit  int // of revisions; 0: the default
	rules  editRules
	early  bool // answer when applied, not when durable

	readTS uint64   // of the node's clock, from before the documents were read
	plan   editPlan // what came out last
	again  bool     // the writer has to decide in any case
}

// editRules has the steps in which Decide and Follow differ.
type editRules interface {
	// read reads what the request needs beside its documents.
	read(store *storage.Store) error
	// admit refuses the request as a whole, on the writer.
	admit(g *groupCommit) error
	// begin forgets the outcome of all edits.
	begin()
	// edit decides one edit and notes the outcome. A refusal is the outcome; a
	// missing stub is the exception and fails the request (semantics.md section 2.6).
	edit(p *editPlan, i int) error
	// purged returns the revisions, by the place of their edit, that must not be
	// written because they have been purged; nil: none.
	purged(g *groupCommit) (map[int]doc.Rev, error)
}

// errStale sends a task back to its request: what was validated is not what
// would be written.
var errStale = errors.New("shard: decided on a document that has changed since")

func isStale(err error) bool { return errors.Is(err, errStale) }

// run decides the edits and has the writer take over what came out. The error
// says that no edit was done.
func (t *editTask) run(ctx context.Context) error {
	if t.open.store == nil {
		open, err := t.states.open(ctx, t.copy)
		if err != nil {
			return err
		}
		defer open.Close()
		t.open = open
	}
	for {
		if err := t.prepare(ctx); err != nil {
			return err
		}
		if err := t.states.submit(ctx, t.open.store, t, t.early); !isStale(err) {
			return err
		}
	}
}

// prepare reads the documents and decides the edits on the goroutine of the
// request: the reading warms the cache for the writer, and usually the writer
// only has to take over the outcome.
func (t *editTask) prepare(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.readTS = t.states.clock.Load()
	store := t.open.store
	if err := t.rules.read(store); err != nil {
		return err
	}
	absent, err := absentContent(store, t.edits)
	if err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		from := stored{store: store}
		if err := from.readAhead(t.edits); err != nil {
			return err
		}
		t.plan = t.newPlan(from, absent)
		err = t.plan.decide()
		// Compaction may have dropped an ancestor's content between the reading of the tree
		// and that of the content, and an edit a block of the history. The writer is not asked:
		// of what is damaged for good it would send the request back for a validation, for ever.
		if !fault.Is(err, fault.Corruption) || tries == rereads {
			break
		}
	}
	if fault.Is(err, fault.MissingStub) {
		// The write that made the stub miss may not be durable yet; the writer
		// decides again and answers when it is.
		t.again = true
		return nil
	}
	t.again = false
	return err
}

// newPlan returns a plan of which nothing has been decided.
func (t *editTask) newPlan(from docSource, absent map[int]bool) editPlan {
	return editPlan{touchedDocs: touchedDocs{from: from, most: len(t.edits)}, edits: t.edits, limit: t.limit, rules: t.rules, absent: absent}
}

// rereads is how often a read is repeated whose content went away between
// two steps.
const rereads = 3

// cost implements task.
func (t *editTask) cost() (edits, bytes int) {
	for i := range t.edits {
		bytes += len(t.edits[i].Body)
	}
	return len(t.edits), bytes
}

// stage implements task.
func (t *editTask) stage(g *groupCommit) error {
	if err := t.rules.admit(g); err != nil {
		return err
	}
	// Compaction may have dropped what nothing referred to; from here on it
	// waits for this group.
	absent, err := absentContent(g.store, t.edits)
	if err != nil {
		return err
	}
	if !maps.Equal(absent, t.plan.absent) || !t.current(g) {
		if err := t.decideOn(g, absent, nil); err != nil {
			return err
		}
	}
	purged, err := t.rules.purged(g)
	if err == nil && len(purged) > 0 {
		err = t.decideOn(g, absent, purged)
	}
	if err != nil {
		return err
	}
	g.adopt(t.plan.order)
	g.locals = append(g.locals, t.plan.locals...)
	return nil
}

// decideOn decides again, on the documents as the group has them.
func (t *editTask) decideOn(g *groupCommit, absent map[int]bool, purged map[int]doc.Rev) error {
	t.plan = t.newPlan(g, absent)
	t.plan.staged, t.plan.purged = true, purged
	return t.plan.decide()
}

// current reports whether every document is as prepare read it.
func (t *editTask) current(g *groupCommit) bool {
	if t.again {
		return false
	}
	for _, s := range t.plan.order {
		if !g.unchangedSince(s.id, t.readTS) {
			return false
		}
	}
	return true
}

// stored is the docSource of an editPlan on the goroutine of a request.
type stored struct {
	store *storage.Store
	ahead map[string]*doc.Record // read already; nil records for documents that are not there
}

// readAhead reads the documents of many edits in one go, which takes less than
// half of what reading them one by one does.
func (s *stored) readAhead(edits []Edit) error {
	if len(edits) < manyStates {
		return nil
	}
	ids := make([]string, 0, len(edits))
	for i := range edits {
		if !doc.IsLocal(edits[i].ID) {
			ids = append(ids, edits[i].ID)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	s.ahead = make(map[string]*doc.Record, len(ids))
	err := s.store.Reader().Records(ids, nil, func(i int, rec *doc.Record) { s.ahead[ids[i]] = rec })
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	return nil
}

func (s stored) state(id string, fresh bool) (*docState, error) {
	if rec, ok := s.ahead[id]; ok {
		return newDocState(id, rec), nil
	}
	return readDocState(s.store.Reader(), id, fresh)
}

func (s stored) revision(id string, rev doc.Rev) (doc.Revision, error) {
	return readRevision(s.store.Reader(), id, rev)
}

func (s stored) history(id string, below doc.Below) (doc.Tree, error) {
	return s.store.Reader().History(id, below)
}

func (s stored) oldest(id string, below doc.Below) (doc.Tree, error) {
	return s.store.Reader().Oldest(id, below)
}

// absentContent returns the edits, by their place, that refer to content which
// Attachments.Put has not stored in this copy: it was not reached when the content
// came in, or has been restarted since. nil when there are none.
func absentContent(store *storage.Store, edits []Edit) (map[int]bool, error) {
	var absent map[int]bool
	for i := range edits {
		for k := range edits[i].Atts {
			a := &edits[i].Atts[k]
			if !a.elsewhere() {
				continue
			}
			r, err := store.OpenAttachment(edits[i].ID, a.Key, 0, 0)
			switch {
			case err == nil:
				_ = r.Close() // read only: nothing to lose
			case fault.Is(err, fault.NotFound):
				if absent == nil {
					absent = make(map[int]bool)
				}
				absent[i] = true
			default:
				return nil, fmt.Errorf("look for an attachment of %q: %w", edits[i].ID, err)
			}
		}
	}
	return absent, nil
}

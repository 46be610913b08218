package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Update does the edits of one request and answers each, in order; edits of
// one document see those before them. On return what was accepted is durable,
// with Delayed only visible to later writes.
//
// A refused edit has a *fault.Error in its result. An error of Update itself
// means that no edit was done: fault.MissingStub (a stub refers to nothing,
// golden attachments/03), fault.NotFound (no such copy), fault.Closed, the end
// of ctx before the writer took the request, or an internal error.
func (l *Local) Update(ctx context.Context, req UpdateRequest) ([]EditResult, error) {
	if len(req.Edits) == 0 {
		return nil, nil
	}
	t := &updateTask{states: l.states, req: &req}
	t.validator = cachingValidator{ctx: ctx, req: &req}
	if err := t.validator.find(ctx, l); err != nil {
		return nil, err
	}
	for {
		if err := t.prepare(ctx); err != nil {
			return nil, err
		}
		err := l.states.submit(ctx, req.Copy, t, req.Delayed)
		if err == nil {
			return t.plan.results, nil
		}
		if !isStale(err) {
			return nil, err
		}
	}
}

// updateTask is an Update on its way through the writer.
type updateTask struct {
	states    *copyStates
	req       *UpdateRequest
	validator cachingValidator
	readTS    uint64     // of the node's clock, from before the documents were read
	plan      updatePlan // what came out last
	again     bool       // the writer has to decide in any case
}

// prepare reads the documents and decides the edits on the goroutine of the
// request: the reading warms the cache for the writer, and usually the writer
// only has to take over the outcome.
func (t *updateTask) prepare(ctx context.Context) error {
	t.readTS = t.states.clock.Load()
	store, err := t.states.pin(ctx, t.req.Copy)
	if err != nil {
		return err
	}
	defer t.states.engine.Release(store)
	full, err := fullPartitions(store, t.req)
	if err != nil {
		return err
	}
	absent, err := absentContent(store, t.req.Edits)
	if err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		from := stored{store: store}
		if err := from.readAhead(t.req.Edits); err != nil {
			return err
		}
		t.plan = updatePlan{req: t.req, from: from, validator: &t.validator, full: full, absent: absent}
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

// rereads is how often a read is repeated whose content went away between
// two steps.
const rereads = 3

// cost implements task.
func (t *updateTask) cost() (edits, bytes int) {
	for i := range t.req.Edits {
		bytes += len(t.req.Edits[i].Body)
	}
	return len(t.req.Edits), bytes
}

// stage implements task.
func (t *updateTask) stage(g *groupCommit) error {
	if t.readTS < t.states.reopenedTS.Load() {
		return errStale // what prepare has read was never durable, perhaps
	}
	if seen := t.req.PurgesSeen; seen != nil {
		if purged, err := g.purgedSince(*seen, t.req.Edits); err != nil {
			return err
		} else if purged {
			return fault.New(fault.Conflict, "The copy has purged these documents since.")
		}
	}
	// Compaction may have dropped what nothing referred to; from here on it
	// waits for this group.
	absent, err := absentContent(g.store, t.req.Edits)
	if err != nil {
		return err
	}
	if !maps.Equal(absent, t.plan.absent) || !t.current(g) {
		t.plan.absent = absent
		if err := t.decideOn(g, nil); err != nil {
			return err
		}
	}
	purged, err := g.purgedEdits(t.req, t.plan.results)
	if err == nil && len(purged) > 0 {
		err = t.decideOn(g, purged)
	}
	if err != nil {
		return err
	}
	g.adopt(t.plan.order)
	g.locals = append(g.locals, t.plan.locals...)
	return nil
}

// decideOn decides again, on the documents as the group has them.
func (t *updateTask) decideOn(g *groupCommit, purged map[int]doc.Rev) error {
	t.plan = updatePlan{
		req: t.req, from: g, validator: recordedValidator{&t.validator},
		full: t.plan.full, absent: t.plan.absent, purged: purged,
	}
	return t.plan.decide()
}

// current reports whether every document is as prepare read it.
func (t *updateTask) current(g *groupCommit) bool {
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

// stored is the docSource of an updatePlan on the goroutine of a request.
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
		if !strings.HasPrefix(edits[i].ID, localPrefix) {
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

// fullPartitions returns those partitions among the edits' that are at their
// limit; nil when there are none. Sizes are those before the request: one
// request may exceed the limit, the next one will not.
func fullPartitions(store *storage.Store, req *UpdateRequest) (map[string]bool, error) {
	if !req.Limits.Partitioned || req.Limits.MaxPartitionSize <= 0 || !req.NewEdits {
		return nil, nil
	}
	snap, err := store.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("partition sizes of %s: %w", req.Copy, err)
	}
	defer func() { _ = snap.Close() }()
	seen := make(map[string]bool)
	var full map[string]bool
	for i := range req.Edits {
		name, ok := partitionOf(req.Edits[i].ID)
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		sums, err := snap.Sums(partitionBounds(name))
		if err != nil {
			return nil, fmt.Errorf("size of partition %q of %s: %w", name, req.Copy, err)
		}
		if sums.External >= req.Limits.MaxPartitionSize {
			if full == nil {
				full = make(map[string]bool)
			}
			full[name] = true
		}
	}
	return full, nil
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

// partitionBounds returns the ids of a partition as [lo, hi): those that begin
// with its name and a colon.
func partitionBounds(name string) (lo, hi string) { return name + ":", name + ";" }

// cachingValidator asks what Options.Validator gave about edits, on the goroutine of
// the request, and remembers what it said. Revisions never change, so a result
// holds as long as the old document is the same revision; only when the writer
// finds another one there is it asked again.
type cachingValidator struct {
	ctx     context.Context
	ask     Validate // nil: no validation
	req     *UpdateRequest
	results []validation // by edit; nil until the first one
}

// validation is the verdict on an edit.
type validation struct {
	given bool
	base  doc.Rev // the old document then
	err   error
}

// wants implements editValidator. Design documents are the concern of database
// administrators alone, so validation functions do not see them.
func (v *cachingValidator) wants(id string) bool {
	return v.ask != nil && !strings.HasPrefix(id, designPrefix)
}

// find finds out who is asked about the edits of the request.
func (v *cachingValidator) find(ctx context.Context, l *Local) (err error) {
	if l.validator == nil || v.req.Trusted {
		return nil
	}
	for i := range v.req.Edits {
		if id := v.req.Edits[i].ID; !strings.HasPrefix(id, designPrefix) && !strings.HasPrefix(id, localPrefix) {
			v.ask, err = l.validator(ctx, v.req.Copy, v.req.DB)
			return err
		}
	}
	return nil
}

// validate implements editValidator.
func (v *cachingValidator) validate(i int, d *decision, next *Doc, before func() (*Doc, error)) error {
	if v.results == nil {
		v.results = make([]validation, len(v.req.Edits))
	}
	o := &v.results[i]
	if o.given && o.base == d.base {
		return o.err
	}
	old, err := before()
	if err != nil {
		return err
	}
	err = v.ask(v.ctx, ValidateRequest{DB: v.req.DB, User: v.req.User, Security: v.req.Security, New: next, Old: old})
	*o = validation{given: true, base: d.base, err: err}
	return err
}

// recordedValidator is the validator as the writer uses it: it only repeats results.
type recordedValidator struct{ *cachingValidator }

// validate implements editValidator. errStale: there is no verdict on this yet.
func (r recordedValidator) validate(i int, d *decision, _ *Doc, _ func() (*Doc, error)) error {
	if i < len(r.results) {
		if o := r.results[i]; o.given && o.base == d.base {
			return o.err
		}
	}
	return errStale
}

package shard

import (
	"context"
	"errors"
	"slices"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Texts of refusals, as CouchDB words them.
const (
	reasonConflict = "Document update conflict."
	reasonMissing  = "missing"
	reasonDeleted  = "deleted"
	reasonBadRev   = "Invalid rev format"
)

// Decide decides the edits of one request and answers each, in order; edits of
// one document see those before them. On return what was accepted is durable,
// with Delayed only visible to later writes.
//
// A refused edit has a *fault.Error in its result. An error of Decide itself
// means that no edit was done: fault.MissingStub (a stub refers to nothing,
// golden attachments/03), fault.NotFound (no such copy), fault.Closed, the end
// of ctx before the writer took the request, or an internal error.
func (l *Local) Decide(ctx context.Context, req DecideRequest) ([]EditResult, error) {
	if len(req.Edits) == 0 {
		return nil, nil
	}
	t := newDecide(ctx, l.states, req)
	if err := t.validator.find(ctx, l); err != nil {
		return nil, err
	}
	if err := t.run(ctx); err != nil {
		return nil, err
	}
	return t.results, nil
}

// decideTask is a Decide.
type decideTask struct {
	editTask
	req       DecideRequest
	validator validator
	full      map[string]bool // partitions at their limit, nil: none
	results   []EditResult
}

func newDecide(ctx context.Context, states *copyStates, req DecideRequest) *decideTask {
	t := &decideTask{req: req}
	t.editTask = editTask{states: states, copy: req.Copy, open: req.Open, edits: req.Edits, limit: req.Limits.Revs, rules: t, early: req.Delayed}
	t.validator = validator{ctx: ctx, req: &t.req}
	return t
}

// read implements editRules.
func (t *decideTask) read(store *storage.Store) (err error) {
	t.full, err = fullPartitions(store, &t.req)
	return err
}

// admit implements editRules.
func (t *decideTask) admit(*groupCommit) error { return nil }

// begin implements editRules.
func (t *decideTask) begin() { t.results = make([]EditResult, len(t.edits)) }

// edit implements editRules.
func (t *decideTask) edit(p *editPlan, i int) error {
	e, res := &t.edits[i], &t.results[i]
	if doc.IsLocal(e.ID) {
		if res.Rev, res.Err = p.local(e); res.Err == nil && !t.req.NoPath {
			res.Path = doc.Path{IDs: []string{res.Rev.ID}}
		}
		return nil
	}
	s, err := p.open(e, t.req.NewEdits)
	if err != nil {
		return err
	}
	asks := t.validator.wants(e.ID)
	v := t.decision(s, e, asks)
	rev, purged := p.purged[i]
	switch {
	case purged:
		res.Err = errPurged(rev)
		return nil
	case v.refused != 0:
		res.Err = v.refusal()
		return nil
	case v.stored:
		s.join(e.Path, p.limit)
		if err := t.done(p, s, e.Path, res); err != nil {
			return err
		}
		return t.keptBefore(p, s, e, res)
	case p.absent[i]:
		res.Err = errAbsentContent(e.ID)
		return nil
	}
	return t.write(p, i, s, &v, asks && v.leaf)
}

func (t *decideTask) decision(s *docState, e *Edit, asks bool) decision {
	if t.req.NewEdits {
		return decideInteractive(&s.tree, e.Parent, e.Deleted)
	}
	return decideReplicated(&s.tree, e.Path, asks || hasStubs(e))
}

// write makes the new revision of an edit that the tree lets through; judged says
// that validation has to see it.
func (t *decideTask) write(p *editPlan, i int, s *docState, v *decision, judged bool) error {
	e, res := &t.edits[i], &t.results[i]
	var base doc.Revision
	if judged || hasStubs(e) {
		var err error
		if base, err = p.base(s, v.base); err != nil {
			return err
		}
	}
	pos := e.Path.Start
	if t.req.NewEdits {
		pos = v.parent.Pos + 1
	}
	atts, contents, err := resolveAttachments(e, pos, base.Atts, false, newKey)
	if err != nil {
		return err
	}
	if judged {
		given, refused := t.validator.known(i, v)
		if !given {
			if p.staged { // functions are asked on the goroutine of the request
				return errStale
			}
			old, err := replaced(s, v, base, p.from)
			if err != nil {
				return err
			}
			refused = t.validator.validate(i, v, proposed(t.req.NewEdits, e, atts), old)
		}
		if refused != nil {
			return refuse(res, refused)
		}
	}
	next := doc.Revision{Deleted: e.Deleted, Body: doc.StoredBody(e.Body), Atts: atts}
	if t.overflows(s, v.parent, &next) {
		res.Err = fault.Newf(fault.PartitionOverflow, "Partition limit exceeded due to update on '%s'", e.ID)
		return nil
	}
	path := e.Path
	if t.req.NewEdits {
		path = doc.Path{Start: pos, IDs: []string{doc.NewRevID(e.Deleted, v.parent, e.Body, atts)}}
		if !v.parent.IsZero() {
			path.IDs = append(path.IDs, v.parent.ID)
		}
	}
	s.add(path, next, contents, p.limit)
	t.keep(e, atts, res)
	return t.done(p, s, path, res)
}

// keep tells what the stubs of an edit stand for. atts is in the order of the
// edit's.
func (t *decideTask) keep(e *Edit, atts []doc.Attachment, res *EditResult) {
	if t.req.NoPath {
		return
	}
	for i := range e.Atts {
		if e.Atts[i].Stub {
			res.Kept = append(res.Kept, atts[i])
		}
	}
}

// keptBefore is keep for a revision that is here already, and may have come with
// other attachments than the edit says.
func (t *decideTask) keptBefore(p *editPlan, s *docState, e *Edit, res *EditResult) error {
	if t.req.NoPath || !hasStubs(e) {
		return nil
	}
	content, err := p.base(s, res.Rev)
	if err != nil {
		return err
	}
	atts := make([]doc.Attachment, len(e.Atts))
	for i := range e.Atts {
		at := slices.IndexFunc(content.Atts, func(a doc.Attachment) bool { return a.Name == e.Atts[i].Name })
		if at < 0 {
			return nil
		}
		atts[i] = content.Atts[at]
	}
	t.keep(e, atts, res)
	return nil
}

// done fills in the result of an edit whose revision is in the tree; path is that of the
// edit. An interactive edit tells its parent even where the limit of revisions has cut it
// off, as other copies need it to join the revision to what they have.
func (t *decideTask) done(p *editPlan, s *docState, path doc.Path, res *EditResult) (err error) {
	res.Rev = path.Rev()
	if t.req.NoPath {
		return nil
	}
	if res.Path, err = s.path(res.Rev, p.from); t.req.NewEdits && len(res.Path.IDs) < len(path.IDs) {
		res.Path = path
	}
	return err
}

// purged implements editRules. The other edits of a document of which a revision has been
// purged are refused as well: they depend on each other, and a sender that insists sends them
// together.
func (t *decideTask) purged(g *groupCommit) (map[int]doc.Rev, error) {
	if t.req.Insist {
		return nil, nil
	}
	out, err := g.purgedEdits(t.edits, func(i int) (doc.Rev, bool) { return t.results[i].Rev, t.results[i].Err == nil })
	if len(out) > 0 {
		withSiblings(t.edits, out)
	}
	return out, err
}

// refuse puts a refusal into the result and passes on any other error.
func refuse(res *EditResult, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	res.Err = f
	return nil
}

// decision is the verdict of a document's tree on an edit, before its body and
// attachments are looked at.
type decision struct {
	refused fault.Kind // not 0: the edit is refused and the rest is empty
	parent  doc.Rev    // interactive: what the new revision goes on top of; zero: it starts the document
	base    doc.Rev    // where stubs find their attachments and what validation sees as the old document; zero: nothing
	leaf    bool       // the revision becomes a leaf, so validation functions are asked
	stored  bool       // replicated: the content of this revision is here already
}

// refusal returns the answer to a refused edit.
func (v *decision) refusal() *fault.Error {
	if v.refused == fault.Conflict {
		return fault.New(fault.Conflict, reasonConflict)
	}
	return fault.New(v.refused, reasonBadRev)
}

// decideInteractive is the table of semantics.md section 2.5: what becomes of
// an edit on top of parent (zero: the client named none).
func decideInteractive(t *doc.Tree, parent doc.Rev, deleted bool) decision {
	winner, exists := t.Winner()
	switch {
	case !exists && parent.IsZero():
		return decision{leaf: true}
	case !exists:
		return decision{refused: fault.Conflict}
	case winner.Deleted:
		// Only a live body that names nothing brings a document back, and it
		// continues the winning tombstone. Neither stubs nor validation
		// functions see what was before (golden docs/11, attachments/03).
		if !parent.IsZero() || deleted {
			return decision{refused: fault.Conflict}
		}
		return decision{parent: winner.Rev, leaf: true}
	case parent.IsZero():
		return decision{refused: fault.Conflict}
	}
	// Any leaf may be continued, winner or not, live or deleted.
	if _, leaf, ok := t.Find(parent); !ok || !leaf {
		return decision{refused: fault.Conflict}
	}
	return decision{parent: parent, base: parent, leaf: true}
}

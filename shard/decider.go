package shard

import (
	"errors"
	"slices"
	"strings"

	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	localPrefix  = "_local/"
	designPrefix = "_design/"
)

// source is where a decider gets what it does not have at hand: on the
// request's goroutine the store, on the writer's the round.
type source interface {
	// state returns a document to decide on; the caller owns it.
	state(id string) (*state, error)
	revision(id string, rev doc.Rev) (doc.Revision, error)
}

// errStale sends a task back to its request: what was validated is not what
// would be written.
var errStale = errors.New("shard: decided on a document that has changed since")

func isStale(err error) bool { return errors.Is(err, errStale) }

// decider decides the edits of one request in their order. The request's
// goroutine does it first, on documents as it read them, in parallel with all
// other requests. When none of those documents has changed since, the writer
// takes the outcome over; otherwise it decides again.
type decider struct {
	req     *UpdateRequest
	from    source
	judge   judge
	full    map[string]bool // partitions at their limit, nil: none
	lacking map[int]bool    // edits that refer to content which is not here, nil: none
	purged  map[int]doc.Rev // edits whose revision has been purged here, nil: none
	results []EditResult
	order   []*state // documents touched, in order of their first edit
	byID    map[string]*state
	locals  []localEdit
}

// judge has a validation function look at an edit; see validator.
type judge interface {
	// asks reports whether somebody wants to see the edits of that document.
	asks(id string) bool
	// judge returns a *fault.Error for a refusal. Any other error ends the
	// whole request.
	judge(i int, v *verdict, next *Doc, old *Doc) error
}

// manyStates is from when on the documents of a request get an index.
const manyStates = 8

// run decides everything. An error is the whole request's: nothing of it is
// done.
func (d *decider) run() error {
	d.results = make([]EditResult, len(d.req.Edits))
	for i := range d.req.Edits {
		if err := d.edit(i); err != nil {
			return err
		}
	}
	return nil
}

// edit decides one edit. A refusal goes to its result; a missing stub is the
// exception and fails the request (semantics.md section 2.6).
func (d *decider) edit(i int) error {
	e, res := &d.req.Edits[i], &d.results[i]
	if strings.HasPrefix(e.ID, localPrefix) {
		d.local(e, res)
		return nil
	}
	s, err := d.state(e.ID)
	if err != nil {
		return err
	}
	asks := d.judge.asks(e.ID)
	v := d.verdict(s, e, asks)
	rev, purged := d.purged[i]
	switch {
	case purged && !d.req.Trusted:
		res.Err = errPurged(rev)
		return nil
	case v.refused != 0:
		res.Err = v.refusal()
		return nil
	case v.leaf && purged:
		res.Err = errPurged(rev)
		return nil
	case v.stored:
		s.join(e.Path, d.req.Limits.Revs)
		d.done(s, e.Path.Rev(), res)
		return d.keptBefore(s, e, res)
	case d.lacking[i]:
		res.Err = fault.Newf(fault.Unavailable, "The content of an attachment of %s is not in this copy.", e.ID)
		return nil
	case d.overflows(e):
		res.Err = fault.Newf(fault.PartitionOverflow, "Partition limit exceeded due to update on '%s'", e.ID)
		return nil
	}
	return d.write(i, s, &v, asks && v.leaf)
}

func (d *decider) verdict(s *state, e *Edit, asks bool) verdict {
	if d.req.NewEdits {
		return decideInteractive(&s.tree, e.Parent, e.Deleted)
	}
	return decideReplicated(&s.tree, e.Path, asks || hasStubs(e))
}

// write makes the new revision of an edit that the tree lets through.
func (d *decider) write(i int, s *state, v *verdict, judged bool) error {
	e, res := &d.req.Edits[i], &d.results[i]
	base, err := d.base(s, e, v, judged)
	if err != nil {
		return err
	}
	pos := e.Path.Start
	if d.req.NewEdits {
		pos = v.parent.Pos + 1
	}
	atts, contents, err := resolveAttachments(e, pos, base.Atts, d.req.Trusted, newKey)
	if err != nil {
		return err
	}
	path := e.Path
	if d.req.NewEdits {
		path = doc.Path{Start: pos, IDs: []string{doc.NewRevID(e.Deleted, v.parent, e.Body, atts)}}
		if !v.parent.IsZero() {
			path.IDs = append(path.IDs, v.parent.ID)
		}
	}
	if judged {
		if err := d.judge.judge(i, v, proposed(d.req.NewEdits, e, atts), replaced(s, v, base)); err != nil {
			return refuse(res, err)
		}
	}
	s.add(path, doc.Revision{Deleted: e.Deleted, Body: doc.StoredBody(e.Body), Atts: atts}, contents, d.req.Limits.Revs)
	d.done(s, path.Rev(), res)
	d.keep(e, atts, res)
	return nil
}

// keep tells what the stubs of an edit stand for. atts is in the order of the
// edit's.
func (d *decider) keep(e *Edit, atts []doc.Attachment, res *EditResult) {
	if d.req.NoPath {
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
func (d *decider) keptBefore(s *state, e *Edit, res *EditResult) error {
	if d.req.NoPath || !hasStubs(e) {
		return nil
	}
	content, ok, err := s.revision(res.Rev)
	if err == nil && !ok {
		content, err = d.from.revision(s.id, res.Rev)
	}
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
	d.keep(e, atts, res)
	return nil
}

// done fills in the result of an edit whose revision is in the tree.
func (d *decider) done(s *state, rev doc.Rev, res *EditResult) {
	res.Rev = rev
	if !d.req.NoPath {
		res.Path = s.tree.Path(rev, 0)
	}
}

// base returns the content of the revision that stubs and validation functions
// look at; empty when nobody looks or there is none.
func (d *decider) base(s *state, e *Edit, v *verdict, judged bool) (doc.Revision, error) {
	if v.base.IsZero() || !judged && !hasStubs(e) {
		return doc.Revision{}, nil
	}
	content, ok, err := s.revision(v.base)
	if err != nil || ok {
		return content, err
	}
	return d.from.revision(s.id, v.base)
}

// proposed is the new document as validation functions see it.
func proposed(interactive bool, e *Edit, atts []doc.Attachment) *Doc {
	n := &Doc{ID: e.ID, Deleted: e.Deleted, Body: doc.StoredBody(e.Body), Atts: atts}
	if interactive {
		n.Rev = e.Parent
		if !e.Parent.IsZero() {
			n.Revisions = doc.Path{Start: e.Parent.Pos, IDs: []string{e.Parent.ID}}
		}
		return n
	}
	n.Rev, n.Revisions = e.Path.Rev(), e.Path
	return n
}

// replaced is the old document as validation functions see it.
func replaced(s *state, v *verdict, content doc.Revision) *Doc {
	if v.base.IsZero() {
		return nil
	}
	return &Doc{
		ID: s.id, Rev: v.base, Deleted: content.Deleted, Body: content.Body, Atts: content.Atts,
		Revisions: s.tree.Path(v.base, 0),
	}
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

// state returns the document of an edit, the same one for all edits of it.
func (d *decider) state(id string) (*state, error) {
	if d.byID != nil {
		if s := d.byID[id]; s != nil {
			return s, nil
		}
	} else {
		for _, s := range d.order {
			if s.id == id {
				return s, nil
			}
		}
	}
	s, err := d.from.state(id)
	if err != nil {
		return nil, err
	}
	d.order = append(d.order, s)
	if d.byID != nil {
		d.byID[id] = s
	} else if len(d.order) > manyStates {
		d.byID = make(map[string]*state, len(d.req.Edits))
		for _, known := range d.order {
			d.byID[known.id] = known
		}
	}
	return s, nil
}

// overflows reports whether an edit would let a partition grow that is at its
// limit: deletions, replicated edits and design documents pass (semantics.md
// section 17).
func (d *decider) overflows(e *Edit) bool {
	if d.full == nil || !d.req.NewEdits || e.Deleted {
		return false
	}
	name, ok := partitionOf(e.ID)
	return ok && d.full[name]
}

// partitionOf returns the partition of a document in a partitioned database;
// false for design documents, which have none.
func partitionOf(id string) (string, bool) {
	if strings.HasPrefix(id, "_") {
		return "", false
	}
	name, _, ok := strings.Cut(id, ":")
	return name, ok
}

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

// docSource is where an updatePlan gets what it does not have at hand: on the
// request's goroutine the store, on the writer's the group.
type docSource interface {
	// state returns a document to decide on; the caller owns it. fresh says that it most
	// likely does not exist.
	state(id string, fresh bool) (*docState, error)
	revision(id string, rev doc.Rev) (doc.Revision, error)
	historySource
}

// errStale sends a task back to its request: what was validated is not what
// would be written.
var errStale = errors.New("shard: decided on a document that has changed since")

func isStale(err error) bool { return errors.Is(err, errStale) }

// updatePlan decides the edits of one request in their order. The request's
// goroutine does it first, on documents as it read them, in parallel with all
// other requests. When none of those documents has changed since, the writer
// takes the outcome over; otherwise it decides again.
type updatePlan struct {
	req       *UpdateRequest
	from      docSource
	validator editValidator
	full      map[string]bool // partitions at their limit, nil: none
	absent    map[int]bool    // edits that refer to content which is not here, nil: none
	purged    map[int]doc.Rev // edits whose revision has been purged here, nil: none
	results   []EditResult
	order     []*docState // documents touched, in order of their first edit
	byID      map[string]*docState
	locals    []localEdit
}

// editValidator has a validation function look at an edit; see cachingValidator.
type editValidator interface {
	// wants reports whether validation has to see the edits of that document.
	wants(id string) bool
	// validate returns a *fault.Error for a refusal. Any other error ends the
	// whole request.
	// old returns the document as it was, nil when there was none.
	validate(i int, v *decision, next *Doc, old func() (*Doc, error)) error
}

// manyStates is from when on the documents of a request get an index.
const manyStates = 8

// decide decides everything. An error is the whole request's: nothing of it is
// done.
func (p *updatePlan) decide() error {
	p.results = make([]EditResult, len(p.req.Edits))
	for i := range p.req.Edits {
		if err := p.edit(i); err != nil {
			return err
		}
	}
	return nil
}

// edit decides one edit. A refusal goes to its result; a missing stub is the
// exception and fails the request (semantics.md section 2.6).
func (p *updatePlan) edit(i int) error {
	e, res := &p.req.Edits[i], &p.results[i]
	if strings.HasPrefix(e.ID, localPrefix) {
		p.local(e, res)
		return nil
	}
	s, err := p.state(e.ID, e.Parent.IsZero() && e.Path.Start <= 1)
	if err != nil {
		return err
	}
	if err := s.prepare(e, p.req.NewEdits, p.req.Limits.Revs, p.from); err != nil {
		return err
	}
	asks := p.validator.wants(e.ID)
	v := p.decision(s, e, asks)
	rev, purged := p.purged[i]
	switch {
	case purged && !p.req.Trusted:
		res.Err = errPurged(rev)
		return nil
	case v.refused != 0:
		res.Err = v.refusal()
		return nil
	case v.leaf && purged:
		res.Err = errPurged(rev)
		return nil
	case v.stored:
		s.join(e.Path, p.req.Limits.Revs)
		if err := p.done(s, e.Path, res); err != nil {
			return err
		}
		return p.keptBefore(s, e, res)
	case p.absent[i]:
		res.Err = fault.Newf(fault.Unavailable, "The content of an attachment of %s is not in this copy.", e.ID)
		return nil
	}
	return p.write(i, s, &v, asks && v.leaf)
}

func (p *updatePlan) decision(s *docState, e *Edit, asks bool) decision {
	if p.req.NewEdits {
		return decideInteractive(&s.tree, e.Parent, e.Deleted)
	}
	return decideReplicated(&s.tree, e.Path, asks || hasStubs(e))
}

// write makes the new revision of an edit that the tree lets through.
func (p *updatePlan) write(i int, s *docState, v *decision, judged bool) error {
	e, res := &p.req.Edits[i], &p.results[i]
	base, err := p.base(s, e, v, judged)
	if err != nil {
		return err
	}
	pos := e.Path.Start
	if p.req.NewEdits {
		pos = v.parent.Pos + 1
	}
	atts, contents, err := resolveAttachments(e, pos, base.Atts, p.req.Trusted, newKey)
	if err != nil {
		return err
	}
	path := e.Path
	if p.req.NewEdits {
		path = doc.Path{Start: pos, IDs: []string{doc.NewRevID(e.Deleted, v.parent, e.Body, atts)}}
		if !v.parent.IsZero() {
			path.IDs = append(path.IDs, v.parent.ID)
		}
	}
	if judged {
		var unread error // no refusal, even if its kind is that of one
		old := func() (d *Doc, err error) {
			d, unread = replaced(s, v, base, p.from)
			return d, unread
		}
		err := p.validator.validate(i, v, proposed(p.req.NewEdits, e, atts), old)
		if unread != nil {
			return unread
		}
		if err != nil {
			return refuse(res, err)
		}
	}
	next := doc.Revision{Deleted: e.Deleted, Body: doc.StoredBody(e.Body), Atts: atts}
	if p.overflows(s, v.parent, &next) {
		res.Err = fault.Newf(fault.PartitionOverflow, "Partition limit exceeded due to update on '%s'", e.ID)
		return nil
	}
	s.add(path, next, contents, p.req.Limits.Revs)
	p.keep(e, atts, res)
	return p.done(s, path, res)
}

// keep tells what the stubs of an edit stand for. atts is in the order of the
// edit's.
func (p *updatePlan) keep(e *Edit, atts []doc.Attachment, res *EditResult) {
	if p.req.NoPath {
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
func (p *updatePlan) keptBefore(s *docState, e *Edit, res *EditResult) error {
	if p.req.NoPath || !hasStubs(e) {
		return nil
	}
	content, ok, err := s.revision(res.Rev)
	if err == nil && !ok {
		content, err = p.from.revision(s.id, res.Rev)
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
	p.keep(e, atts, res)
	return nil
}

// done fills in the result of an edit whose revision is in the tree; path is that of the
// edit. An interactive edit tells its parent even where the limit of revisions has cut it
// off, as other copies need it to join the revision to what they have.
func (p *updatePlan) done(s *docState, path doc.Path, res *EditResult) (err error) {
	res.Rev = path.Rev()
	if p.req.NoPath {
		return nil
	}
	if res.Path, err = s.path(res.Rev, p.from); p.req.NewEdits && len(res.Path.IDs) < len(path.IDs) {
		res.Path = path
	}
	return err
}

// base returns the content of the revision that stubs and validation functions
// look at; empty when neither looks or there is none.
func (p *updatePlan) base(s *docState, e *Edit, v *decision, judged bool) (doc.Revision, error) {
	if v.base.IsZero() || !judged && !hasStubs(e) {
		return doc.Revision{}, nil
	}
	content, ok, err := s.revision(v.base)
	if err != nil || ok {
		return content, err
	}
	return p.from.revision(s.id, v.base)
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
func replaced(s *docState, v *decision, content doc.Revision, from historySource) (*Doc, error) {
	if v.base.IsZero() {
		return nil, nil
	}
	path, err := s.path(v.base, from)
	if err != nil {
		return nil, err
	}
	return &Doc{
		ID: s.id, Rev: v.base, Deleted: content.Deleted, Body: content.Body, Atts: content.Atts,
		Revisions: path,
	}, nil
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

// state returns the document of an edit, the same one for all edits of it. fresh says
// that it most likely does not exist: the edit names no earlier revision.
func (p *updatePlan) state(id string, fresh bool) (*docState, error) {
	if p.byID != nil {
		if s := p.byID[id]; s != nil {
			return s, nil
		}
	} else {
		for _, s := range p.order {
			if s.id == id {
				return s, nil
			}
		}
	}
	s, err := p.from.state(id, fresh)
	if err != nil {
		return nil, err
	}
	p.order = append(p.order, s)
	if p.byID != nil {
		p.byID[id] = s
	} else if len(p.order) > manyStates {
		p.byID = make(map[string]*docState, len(p.req.Edits))
		for _, known := range p.order {
			p.byID[known.id] = known
		}
	}
	return s, nil
}

// overflows reports whether a revision would let a partition grow that is at its
// limit: one that is no larger than the leaf whose place it takes passes, and so do
// replicated edits and design documents (semantics.md section 17).
func (p *updatePlan) overflows(s *docState, parent doc.Rev, next *doc.Revision) bool {
	if p.full == nil || !p.req.NewEdits {
		return false
	}
	name, ok := partitionOf(s.id)
	if !ok || !p.full[name] {
		return false
	}
	before, _, _ := s.tree.Find(parent) // none of a new document
	external, _ := sizesOf(next)
	return external > before.External
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

// fewAttachments is up to how many are looked through for a name.
const fewAttachments = 16

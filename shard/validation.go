package shard

import (
	"context"
	"strings"

	"divan/storage/doc"
)

// validator asks what Options.Validator gave about edits, on the goroutine of
// the request, and remembers the verdicts. Revisions never change, so a verdict
// holds as long as the old document is the same revision; only when the writer
// finds another one there is it asked again.
type validator struct {
	ctx     context.Context
	ask     Validate // nil: no validation
	req     *DecideRequest
	results []validation // by edit; nil until the first one
}

// validation is the verdict on an edit.
type validation struct {
	given bool
	base  doc.Rev // the old document then
	err   error
}

// wants reports whether validation has to see the edits of a document. Design
// documents are the concern of database administrators alone, so validation
// functions do not see them.
func (v *validator) wants(id string) bool {
	return v.ask != nil && !strings.HasPrefix(id, designPrefix)
}

// find finds out which functions are asked about the edits of the request.
func (v *validator) find(ctx context.Context, l *Local) (err error) {
	if l.validator == nil {
		return nil
	}
	for i := range v.req.Edits {
		if id := v.req.Edits[i].ID; !strings.HasPrefix(id, designPrefix) && !doc.IsLocal(id) {
			v.ask, err = l.validator(ctx, v.req.Copy, v.req.DB)
			return err
		}
	}
	return nil
}

// known returns the verdict on an edit; false when there is none yet.
func (v *validator) known(i int, d *decision) (given bool, err error) {
	if i < len(v.results) {
		if o := v.results[i]; o.given && o.base == d.base {
			return true, o.err
		}
	}
	return false, nil
}

// validate asks about an edit and notes the verdict: a *fault.Error for a
// refusal. Any other error ends the whole request.
func (v *validator) validate(i int, d *decision, next, old *Doc) error {
	if v.results == nil {
		v.results = make([]validation, len(v.req.Edits))
	}
	err := v.ask(v.ctx, ValidateRequest{DB: v.req.DB, User: v.req.User, Security: v.req.Security, New: next, Old: old})
	v.results[i] = validation{given: true, base: d.base, err: err}
	return err
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

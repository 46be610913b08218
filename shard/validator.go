package shard

import (
	"context"
	"strings"

	"divan/storage/doc"
)

// cachingValidator asks what Options.Validator gave about edits, on the goroutine of
// the request, and remembers what it said. Revisions never change, so a result
// holds as long as the old document is the same revision; only when the writer
// finds another one there is it asked again.
type cachingValidator struct {
	ctx     context.Context
	ask     Validate // nil: nobody is asked
	req     *UpdateRequest
	results []validation // by edit; nil until the first one
}

// validation is what was said about an edit.
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
func (v *cachingValidator) validate(i int, d *decision, next, old *Doc) error {
	if v.results == nil {
		v.results = make([]validation, len(v.req.Edits))
	}
	o := &v.results[i]
	if o.given && o.base == d.base {
		return o.err
	}
	err := v.ask(v.ctx, ValidateRequest{DB: v.req.DB, User: v.req.User, Security: v.req.Security, New: next, Old: old})
	*o = validation{given: true, base: d.base, err: err}
	return err
}

// recordedValidator is the validator as the writer uses it: it only repeats results.
type recordedValidator struct{ *cachingValidator }

// validate implements editValidator. errStale: nobody was asked about this yet.
func (r recordedValidator) validate(i int, d *decision, _, _ *Doc) error {
	if i < len(r.results) {
		if o := r.results[i]; o.given && o.base == d.base {
			return o.err
		}
	}
	return errStale
}

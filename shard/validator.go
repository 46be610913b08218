package shard

import (
	"context"
	"strings"

	"divan/storage/doc"
)

// validator asks Options.Validate about edits, on the goroutine of the
// request, and remembers what it said. Revisions never change, so an opinion
// holds as long as the old document is the same revision; only when the writer
// finds another one there is it asked again.
type validator struct {
	ctx   context.Context
	ask   Validate // nil: nobody is asked
	req   *UpdateRequest
	known []opinion // by edit; nil until the first one
}

// opinion is what was said about an edit.
type opinion struct {
	given bool
	base  doc.Rev // the old document then
	err   error
}

// asks implements judge. Design documents are the concern of database
// administrators alone, so validation functions do not see them.
func (v *validator) asks(id string) bool {
	return v.ask != nil && !v.req.Trusted && !strings.HasPrefix(id, designPrefix)
}

// judge implements judge.
func (v *validator) judge(i int, d *verdict, next, old *Doc) error {
	if v.known == nil {
		v.known = make([]opinion, len(v.req.Edits))
	}
	o := &v.known[i]
	if o.given && o.base == d.base {
		return o.err
	}
	err := v.ask(v.ctx, ValidateRequest{DB: v.req.DB, User: v.req.User, Security: v.req.Security, New: next, Old: old})
	*o = opinion{given: true, base: d.base, err: err}
	return err
}

// recorded is the validator as the writer uses it: it only repeats opinions.
type recorded struct{ *validator }

// judge implements judge. errStale: nobody was asked about this yet.
func (r recorded) judge(i int, d *verdict, _, _ *Doc) error {
	if i < len(r.known) {
		if o := r.known[i]; o.given && o.base == d.base {
			return o.err
		}
	}
	return errStale
}

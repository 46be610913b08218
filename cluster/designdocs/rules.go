package designdocs

import (
	"context"

	"divan/cluster/docformat"
	"divan/shard"
	"divan/shard/fairqueue"
	"divan/shard/ring"
	"divan/storage/doc"
)

// Validator returns what decides on edits of a database that a copy on this node
// belongs to: the rules that a system database has, then the validation functions of
// its design documents. nil: everything passes.
func (c *Cache) Validator(ctx context.Context, copyName, db string) (shard.Validate, error) {
	tail := ring.CopyTail(copyName)
	s, err := c.read(ctx, tail, db)
	if err != nil {
		return nil, err
	}
	builtIn := c.o.BuiltIn(db)
	validating := s.validating
	if d := c.o.Standard(db); d != nil && s.byID[d.ID] == nil {
		validating = append([]*Document{s.standIn(func() *Document { return newDocument(c.o.Scripts, tail, d) })}, validating...)
	}
	if len(validating) == 0 {
		return builtIn, nil
	}
	return func(ctx context.Context, r shard.ValidateRequest) error {
		if builtIn != nil {
			if err := builtIn(ctx, r); err != nil {
				return err
			}
		}
		return validate(ctx, validating, r)
	}, nil
}

// validate asks the validation functions, one after the other; the first refusal
// counts (semantics.md section 5.2).
func validate(ctx context.Context, validating []*Document, r shard.ValidateRequest) error {
	user := AppendUser(nil, r.DB, r.User)
	next, old := appendNew(nil, r.New), []byte("null")
	if r.Old != nil {
		old = docformat.Style{Revisions: true}.Append(nil, r.Old)
	}
	security := r.Security
	if len(security) == 0 {
		security = []byte("{}")
	}
	ctx = fairqueue.With(ctx, fairqueue.Caller{Account: r.User.Name})
	for _, d := range validating {
		if err := d.Functions().Validate(ctx, next, old, user, security); err != nil {
			return err
		}
	}
	return nil
}

// appendNew appends a new document as validation functions see it: one that starts
// a document has no _rev.
func appendNew(dst []byte, d *shard.Doc) []byte {
	text := docformat.Style{Revisions: true}.Append(nil, d)
	if !d.Rev.IsZero() {
		return append(dst, text...)
	}
	id := len(`{"_id":`) + len(doc.AppendString(nil, d.ID))
	rev := len(`,"_rev":`) + len(d.Rev.AppendJSON(nil))
	return append(append(dst, text[:id]...), text[id+rev:]...)
}

// AppendUser appends who asks, as functions see it.
func AppendUser(dst []byte, db string, u shard.User) []byte {
	dst = append(dst, `{"db":`...)
	dst = doc.AppendString(dst, db)
	dst = append(dst, `,"name":`...)
	if u.Anonymous {
		dst = append(dst, "null"...)
	} else {
		dst = doc.AppendString(dst, u.Name)
	}
	dst = append(dst, `,"roles":[`...)
	for i, role := range u.Roles {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = doc.AppendString(dst, role)
	}
	return append(dst, "]}"...)
}

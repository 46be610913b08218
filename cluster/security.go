package cluster

import (
	"context"

	"divan/cluster/meta"
	"divan/storage/doc"
	"divan/storage/fault"
)

// adminOnly is the security object of a new database under [couchdb]
// default_security=admin_only.
const adminOnly = `{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}`

// defaultSecurity returns the object that a new database gets; empty when it
// gets none.
func defaultSecurity(setting string) []byte {
	if setting == "admin_only" {
		return []byte(adminOnly)
	}
	return nil
}

// Security returns the security object as JSON text, "{}" when none is set. It
// must not be changed.
func (d *DB) Security() []byte {
	if len(d.meta.Security) == 0 {
		return []byte("{}")
	}
	return d.meta.Security
}

// SetSecurity replaces the security object. The error is a fault.BadRequest
// with the texts of api.md section 8.4 for an object of the wrong shape, and
// fault.NotFound when the database has been deleted meanwhile, also if another
// one has its name.
func (d *DB) SetSecurity(ctx context.Context, object []byte) error {
	text, err := doc.Canonical(nil, object)
	if err != nil {
		return err
	}
	if err := meta.CheckSecurity(text); err != nil {
		return err
	}
	return d.c.meta.SetSecurity(ctx, d.meta, text)
}

// SetRevsLimit sets how many generations of revisions are remembered, 1 at
// least; otherwise fault.BadRequest.
func (d *DB) SetRevsLimit(ctx context.Context, n int) error {
	if n < 1 {
		return fault.New(fault.BadRequest, "`revs_limit` must be a positive integer")
	}
	return d.c.meta.SetRevsLimit(ctx, d.meta, n)
}

// SetPurgedInfosLimit sets how many entries the log of purges keeps per shard,
// 1 at least; otherwise fault.BadRequest.
func (d *DB) SetPurgedInfosLimit(ctx context.Context, n int) error {
	if n < 1 {
		return fault.New(fault.BadRequest, "`purged_infos_limit` must be positive integer")
	}
	return d.c.meta.SetPurgedInfosLimit(ctx, d.meta, n)
}

// RevsLimit returns how many generations of revisions are remembered.
func (d *DB) RevsLimit() int { return d.meta.RevsLimit }

// PurgedInfosLimit returns how many entries the log of purges keeps per shard.
func (d *DB) PurgedInfosLimit() int { return d.meta.PurgedInfosLimit }

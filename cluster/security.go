package cluster

import (
	"context"

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
	if err := validateSecurity(text); err != nil {
		return err
	}
	return d.c.meta.SetSecurity(ctx, d.meta, text)
}

// validateSecurity checks the members that evaluation reads; others may be
// anything. "readers" counts only when "members" is absent, as on reading.
func validateSecurity(text []byte) error {
	if len(text) == 0 || text[0] != '{' {
		return fault.New(fault.BadRequest, "Request body must be a JSON object")
	}
	var members, readers, admins []byte
	err := doc.EachMember(text, func(name string, value []byte) error {
		switch name {
		case "admins":
			admins = value
		case "members":
			members = value
		case "readers":
			readers = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if members == nil {
		members = readers
	}
	for _, part := range [][]byte{admins, members} {
		if err := validateNamesAndRoles(part); err != nil {
			return err
		}
	}
	return nil
}

func validateNamesAndRoles(part []byte) error {
	if part == nil {
		return nil
	}
	if part[0] != '{' {
		return fault.New(fault.BadRequest, "admins or members must be a JSON list of strings")
	}
	return doc.EachMember(part, func(name string, value []byte) error {
		if name != "names" && name != "roles" {
			return nil
		}
		refusal := fault.New(fault.BadRequest, name+" must be a JSON list of strings")
		if value[0] != '[' {
			return refusal
		}
		return doc.EachElement(value, func(item []byte) error {
			if item[0] != '"' {
				return refusal
			}
			return nil
		})
	})
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

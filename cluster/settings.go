package cluster

import (
	"context"
	"strconv"

	"divan/cluster/meta"
	"divan/cluster/meta/dbsetting"
	"divan/shard/ring"
	"divan/storage/doc"
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

// settings reads what the metadata of the cluster say of a database.
type settings struct {
	of        *meta.Database
	metaGroup *meta.Meta
}

// Meta returns the metadata behind the handle. It must not be changed.
func (s *settings) Meta() *meta.Database { return s.of }

// Instance names the database and no other one that had or will have its name: what
// the names of its copies have in common.
func (s *settings) Instance() string { return ring.CopyTail(s.of.CopyName(ring.Range{})) }

// Name returns the name of the database.
func (s *settings) Name() string { return s.of.Name }

// InstanceStart returns instance_start_time, which replicators compare: the
// unix seconds of the creation as text.
func (s *settings) InstanceStart() string { return instanceStart(s.of) }

func instanceStart(m *meta.Database) string { return strconv.FormatInt(m.Created, 10) }

// Shards returns the shard map: ranges in ring order, each with the nodes that
// hold a copy. It must not be changed.
func (s *settings) Shards() []ring.Shard { return ring.Visible(s.of.Shards) }

// Security returns the security object as JSON text, "{}" when none is set. It
// must not be changed.
func (s *settings) Security() []byte {
	if len(s.of.Security) == 0 {
		return []byte("{}")
	}
	return s.of.Security
}

// SetSecurity replaces the security object. The error is a fault.BadRequest
// with the texts of api.md section 8.4 for an object of the wrong shape, and
// fault.NotFound when the database has been deleted meanwhile, also if another
// one has its name.
func (s *settings) SetSecurity(ctx context.Context, object []byte) error {
	text, err := doc.Canonical(nil, object)
	if err != nil {
		return err
	}
	if err := meta.CheckSecurity(text); err != nil {
		return err
	}
	return s.metaGroup.SetSecurity(ctx, s.of, text)
}

// Set changes a setting; the errors are those of meta.Catalog.Set.
func (s *settings) Set(ctx context.Context, of dbsetting.Setting, value int) error {
	return s.metaGroup.Set(ctx, s.of, of, value)
}

// Setting returns the value of a setting.
func (s *settings) Setting(of dbsetting.Setting) int { return s.of.Settings[of] }

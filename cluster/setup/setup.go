// Package setup does the work of /_cluster_setup: it tells how far a node is set up, and makes the
// settings and databases that are missing. It changes both through cluster/meta.
package setup

import (
	"context"
	"strconv"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/storage/fault"
)

// State is the state that GET /_cluster_setup tells.
type State string

// The states of server-level.md 3.1.
const (
	ClusterDisabled    State = "cluster_disabled"
	SingleNodeDisabled State = "single_node_disabled"
	SingleNodeEnabled  State = "single_node_enabled"
	ClusterEnabled     State = "cluster_enabled"
	ClusterFinished    State = "cluster_finished"
)

// SystemDatabases returns the databases that a set-up cluster has unless told
// otherwise (api.md 20, row 4).
func SystemDatabases() []string { return []string{"_users", "_replicator", "_global_changes"} }

// Decide returns the set-up state of a node with that configuration and
// these databases. ensure are the databases asked for by the request, nil when
// it names none; with [couchdb] single_node=true only databases asked for by
// name can be missing.
func Decide(c *config.Snapshot, dbs meta.Databases, ensure []string) State {
	named := ensure != nil
	if !named {
		ensure = SystemDatabases()
	}
	complete := len(missing(dbs, ensure)) == 0
	admin := len(c.Admins) > 0
	switch {
	case c.CouchDB.SingleNode && (!named || complete):
		return SingleNodeEnabled
	case c.CouchDB.SingleNode || c.Cluster.N == 1:
		if admin && complete {
			return SingleNodeEnabled
		}
		return SingleNodeDisabled
	case !admin || (c.Chttpd.BindAddress == "127.0.0.1" && !SaysCluster(c)):
		return ClusterDisabled
	case complete:
		return ClusterFinished
	}
	return ClusterEnabled
}

// SaysCluster reports whether the settings of a node say where other nodes
// find it. Such a node is meant for a cluster, even one whose HTTP interface
// listens on this machine only, as all nodes of a cluster on one machine do.
func SaysCluster(c *config.Snapshot) bool {
	for _, key := range []string{"bind_address", "advertise"} {
		if v, ok := c.Get("cluster", key); ok && v != "" {
			return true
		}
	}
	return false
}

func missing(dbs meta.Databases, names []string) []string {
	var out []string
	for _, name := range names {
		if _, ok := dbs.Get(name); !ok {
			out = append(out, name)
		}
	}
	return out
}

// SingleNode is the body of the action enable_single_node.
type SingleNode struct {
	Username     string
	Password     string
	PasswordHash string   // stored form, instead of Password
	BindAddress  string   // empty: as it is
	Port         int      // 0: as it is
	EnsureDBs    []string // nil: SystemDatabases

	// Create makes a database with the defaults for new ones.
	Create func(ctx context.Context, name string) error
}

// EnableSingleNode sets a node, whose settings are c, up to stay alone: the administrator, one
// copy of each document, address and port for the next start, and the system
// databases. It may be repeated. The refusals are fault.BadRequest.
func EnableSingleNode(ctx context.Context, m *meta.Meta, c *config.Snapshot, s SingleNode) error {
	changes, err := singleNodeChanges(c, s)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if _, err := m.Config.Set(ctx, c); err != nil {
			return err
		}
	}
	return createMissing(ctx, m, s.EnsureDBs, s.Create)
}

// singleNodeChanges checks the request as a whole, so that a refused one
// changes nothing.
func singleNodeChanges(now *config.Snapshot, s SingleNode) ([]meta.ConfigChange, error) {
	var changes []meta.ConfigChange
	set := func(section, key, value string, wide bool) {
		changes = append(changes, meta.ConfigChange{Section: section, Key: key, Value: value, ClusterWide: wide})
	}
	switch stored := s.PasswordHash; {
	case s.Username == "" && s.Password == "" && stored == "":
		if len(now.Admins) == 0 {
			return nil, fault.New(fault.BadRequest, "Cluster setup requires admin account to be configured")
		}
	case s.Username == "" || (s.Password == "" && stored == ""):
		return nil, fault.New(fault.BadRequest, "Cluster setup requires admin account to be configured")
	case stored != "" && !config.IsHashed(stored):
		return nil, fault.New(fault.BadRequest, "`password_hash` must be a stored form of a password, like -pbkdf2:…")
	case stored != "":
		set("admins", s.Username, stored, true)
	default:
		set("admins", s.Username, s.Password, true)
	}
	if s.BindAddress != "" {
		set("chttpd", "bind_address", s.BindAddress, false)
	}
	if s.Port != 0 {
		set("chttpd", "port", strconv.Itoa(s.Port), false)
	}
	set("cluster", "n", "1", true)
	for _, c := range changes {
		if err := config.Check(c.Section, c.Key, c.Value); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// FinishCluster makes the system databases that are missing, ensure or the
// default ones; create makes one. fault.BadRequest when none is missing.
func FinishCluster(ctx context.Context, m *meta.Meta, ensure []string, create func(ctx context.Context, name string) error) error {
	if err := m.CatchUp(ctx); err != nil {
		return err
	}
	names := ensure
	if names == nil {
		names = SystemDatabases()
	}
	if len(missing(m.Databases(), names)) == 0 {
		return fault.New(fault.BadRequest, "Cluster is already finished")
	}
	return createMissing(ctx, m, ensure, create)
}

// createMissing makes the databases that are not there; nil stands for the
// system databases. Another request may be making them at the same time.
func createMissing(ctx context.Context, m *meta.Meta, names []string, create func(ctx context.Context, name string) error) error {
	if names == nil {
		names = SystemDatabases()
	}
	for _, name := range missing(m.Databases(), names) {
		if err := create(ctx, name); err != nil && !fault.Is(err, fault.Exists) {
			return err
		}
	}
	return nil
}

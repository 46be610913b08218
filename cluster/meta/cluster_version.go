package meta

import (
	"slices"
	"strings"

	"divan/cluster/meta/dbsetting"
	"divan/cluster/meta/metapb"
	"divan/storage/fault"
)

// The version of a cluster says which operations its members can be asked to apply.
// Each member tells with its entry the newest version that it knows. The leader proposes
// an operation only when every member knows its version, and the state remembers the
// newest version of an operation that was applied: from then on a program that does not
// know it cannot be a member. So nodes are upgraded one by one, and until the last of
// them is, everything works but what needs the new version.

// ClusterVersion is the newest version whose operations this program knows. A release
// that adds an operation to metapb.Command raises it by one and names the operation in
// neededVersion. Version 1 is that of release 1.0.
const ClusterVersion = 1

// versions holds the versions that a program knows.
type versions struct {
	known  uint64
	needed func(c *metapb.Command) uint64 // the version that an operation belongs to
}

func newVersions() versions { return versions{ClusterVersion, neededVersion} }

// neededVersion returns the version that an operation belongs to; 0: release 1.0 knew it, and
// with it every program.
func neededVersion(c *metapb.Command) (needed uint64) {
	for _, s := range c.GetAlterDatabase().GetSettings() {
		needed = max(needed, dbsetting.Setting(s.Number).Version())
	}
	return needed
}

// ClusterVersions is how far the upgrade of a cluster is.
type ClusterVersions struct {
	Known   uint64   // the newest that this program knows
	Usable  uint64   // the newest that every member knows
	Written uint64   // the newest that an operation applied so far belongs to
	Behind  []string // members that do not know Known, sorted
}

// ClusterVersions returns what this node knows of the versions of its cluster.
func (m *Members) ClusterVersions() ClusterVersions { return m.fsm.clusterVersions() }

func (m *stateMachine) clusterVersions() ClusterVersions {
	s := m.load()
	out := ClusterVersions{Known: m.versions.known, Usable: m.versions.known, Written: s.clusterVersion}
	for _, n := range s.nodes {
		out.Usable = min(out.Usable, n.ClusterVersion)
		if n.ClusterVersion < out.Known {
			out.Behind = append(out.Behind, n.Name)
		}
	}
	slices.Sort(out.Behind)
	return out
}

// permit returns an error when a member does not know an operation of that version.
func (s *state) permit(needed uint64) error {
	var behind []string
	for _, n := range s.sortedNodes() {
		if n.ClusterVersion < needed {
			behind = append(behind, n.Name)
		}
	}
	if behind == nil {
		return nil
	}
	return fault.Newf(fault.Unavailable, "This needs version %d of the cluster, which these nodes do not know: %s. Upgrade them, or remove them.",
		needed, strings.Join(behind, ", "))
}

// permitAt is permit for a leader that does not know the operation itself.
func (s *state) permitAt(leader string, needed uint64) error {
	if n, ok := s.nodes[leader]; !ok || n.ClusterVersion >= needed {
		return nil // it knows who is behind better than this node
	}
	return s.permit(needed)
}

// welcome returns an error when a node does not know the version that the state is
// written in.
func (s *state) welcome(node string, known uint64) error {
	if known >= s.clusterVersion {
		return nil
	}
	return fault.Newf(fault.BadRequest, "node %s knows version %d of the cluster; the metadata are of version %d: start a newer program there",
		node, known, s.clusterVersion)
}

// changesMembers reports whether a command may bring a member that knows less.
func changesMembers(c *metapb.Command) bool {
	switch op := c.Op.(type) {
	case *metapb.Command_PutNode:
		return true
	case *metapb.Command_AlterNode:
		return op.AlterNode.ClusterVersion != nil
	default:
		return false
	}
}

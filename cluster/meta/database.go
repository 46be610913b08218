package meta

import (
	"slices"
	"strconv"

	"divan/cluster/meta/dbsetting"
	"divan/shard/ring"
)

// Database is the cluster's description of one database. It is immutable: a change makes a new one,
// so no caller may change what is reached through it.
type Database struct {
	Name        string
	Suffix      string // digits at the end of its copies' names, unique among all databases of that name ever
	ID          [16]byte
	N           int // copies of each range asked for at creation, cut to the number of nodes
	Partitioned bool
	Shards      []ring.Shard // sorted by range; see ring.Valid
	Security    []byte       // JSON object; nil: never set
	Settings    dbsetting.Values
	Created     int64 // unix seconds; the number that Suffix spells

	Generation uint64 // index of the command that changed the copies last
	// FullGeneration is the index of the command that changed last which copies are full; 0: none
	// has since it was created.
	FullGeneration uint64
	Born           uint64 // index of the command that created it; 0: metadata were lost, it is known from its copies
}

// Q returns the number of ranges, as the API shows it.
func (d *Database) Q() int { return len(ring.Visible(d.Shards)) }

// Holders returns the names of the nodes with copies that hold a document, in the order of the
// map.
func (d *Database) Holders(docID string) []string {
	at := ring.Hash(docID, d.Partitioned)
	var out []string
	for _, s := range d.Shards {
		if !s.Contains(at) {
			continue
		}
		for _, c := range s.Copies {
			if c.State.Used() && !slices.Contains(out, c.Node) {
				out = append(out, c.Node)
			}
		}
	}
	return out
}

// CopyName returns the name of the database's copies of one range.
func (d *Database) CopyName(r ring.Range) string { return ring.CopyName(r, d.Name, d.Suffix) }

// CopiesOn returns the names of the copies that a node is to hold.
func (d *Database) CopiesOn(node string) []string {
	var out []string
	for _, s := range d.Shards {
		if s.On(node) {
			out = append(out, d.CopyName(s.Range))
		}
	}
	return out
}

// Copy returns a copy by its name and node; false when the map has none there.
func (d *Database) Copy(name, node string) (ring.Copy, bool) {
	for i := range d.Shards {
		if d.CopyName(d.Shards[i].Range) == name {
			return d.Shards[i].CopyOn(node)
		}
	}
	return ring.Copy{}, false
}

// suffixOf spells a time as a suffix.
func suffixOf(unix int64) string { return strconv.FormatInt(unix, 10) }

// Node is a member of the cluster.
type Node struct {
	Name     string // name@host
	HTTP     string // addresses, host:port; empty when not known
	RPC      string // where other nodes find the cluster port
	Zone     string
	Draining bool   // gets no new copies that have another place (ring.Place)
	Version  string // of its program

	ClusterVersion uint64 // the newest whose operations it knows; see ClusterVersion
}

func (n Node) ring() ring.Node { return ring.Node{Name: n.Name, Zone: n.Zone, Draining: n.Draining} }

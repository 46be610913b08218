package ring

import (
	"strconv"
	"strings"

	"divan/storage/fault"
)

// Node is a candidate for holding copies.
type Node struct {
	Name     string
	Zone     string // empty when the node is in no zone
	Draining bool   // gets new copies only where there would be less than a quorum without it
}

// ZoneCount says how many copies of each range go to a zone.
type ZoneCount struct {
	Zone string
	N    int
}

// Placement fixes the number of copies zone by zone; empty means that zones do
// not matter.
type Placement []ZoneCount

// ParsePlacement reads "zone:n[,zone:n…]". The refusal is a fault.BadRequest
// with CouchDB's text.
func ParsePlacement(s string) (Placement, error) {
	var out Placement
	for item := range strings.SplitSeq(s, ",") {
		zone, count, ok := strings.Cut(strings.TrimSpace(item), ":")
		n, err := strconv.Atoi(count)
		if !ok || zone == "" || err != nil || n < 1 {
			return nil, fault.New(fault.BadRequest, "The `placement` value should be in a format `zone:n`.")
		}
		out = append(out, ZoneCount{Zone: zone, N: n})
	}
	return out, nil
}

// String is the inverse of ParsePlacement.
func (p Placement) String() string {
	var b strings.Builder
	for i, z := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(z.Zone)
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(z.N))
	}
	return b.String()
}

// Request is the input of Place.
type Request struct {
	Nodes     []Node    // all nodes of the cluster, in an order all callers share
	Q, N      int       // ranges, copies of each; N is cut to the number of usable nodes (see usable)
	Placement Placement // overrides N when not empty
	Rotate    uint64    // where in the list of nodes to begin; a random number spreads databases evenly
}

// Place returns the shard map of a new database. Copies of one range are on
// different nodes; consecutive copies go to consecutive nodes of the rotated
// list, as in CouchDB, so that every node gets the same number give or take
// one. Which of a range's copies is named first rotates with the range, since
// the first one decides edits. With a placement the zones follow one another.
//
// Without a usable node (in a zone of the placement, or at all) the error is a
// fault.Unavailable.
func Place(r Request) ([]Shard, error) {
	shards := make([]Shard, 0, max(r.Q, 0))
	for _, g := range Split(r.Q) {
		shards = append(shards, Shard{Range: g})
	}
	if len(shards) == 0 || (r.N < 1 && len(r.Placement) == 0) {
		return nil, fault.Newf(fault.BadRequest, "a database needs 1 to %d shards and at least one copy of each", MaxQ)
	}
	if len(r.Placement) == 0 {
		return shards, attach(shards, usable(r.Nodes, nil, r.N), r.N, r.Rotate)
	}
	for _, z := range r.Placement {
		if err := attach(shards, usable(r.Nodes, &z.Zone, z.N), z.N, r.Rotate); err != nil {
			return nil, err
		}
	}
	return shards, nil
}

// usable returns the names of the nodes that take new copies, of one zone or of all: those
// that are not drained. Where they are fewer than a quorum of n copies, or of all nodes if
// these are fewer than n, drained ones make up for it: a database keeps the number of
// copies that it was made with, and what only one disk has is lost with it.
func usable(nodes []Node, zone *string, n int) []string {
	var out, draining []string
	for _, c := range nodes {
		switch {
		case zone != nil && c.Zone != *zone:
		case c.Draining:
			draining = append(draining, c.Name)
		default:
			out = append(out, c.Name)
		}
	}
	n = min(n, len(out)+len(draining))
	if lacking := n/2 + 1 - len(out); len(out) > 0 && lacking > 0 {
		out = append(out, draining[:lacking]...)
	}
	return out
}

// attach adds n copies to each shard.
func attach(shards []Shard, names []string, n int, rotate uint64) error {
	if len(names) == 0 {
		return fault.New(fault.Unavailable, "no node can take a copy of the database")
	}
	n = min(n, len(names))
	at := int(rotate % uint64(len(names)))
	for i := range shards {
		for c := range n {
			name := names[(at+i*n+(c+i)%n)%len(names)]
			if !shards[i].On(name) { // a placement may name a zone twice
				shards[i].Copies = append(shards[i].Copies, Copy{Node: name})
			}
		}
	}
	return nil
}

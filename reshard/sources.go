package reshard

import (
	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/fault"
)

// SplitOf returns what splits the copy of a range into its halves.
func SplitOf(db *meta.Database, r ring.Range, c ring.Copy) (*job.Source, error) {
	if job.Halves(r) == nil {
		return nil, fault.New(fault.BadRequest, "The range is too small to be split.")
	}
	return sourceOf(db, job.Split, r, c.Node, c.ID), nil
}

// MoveOf returns what moves the copy of a range to another node.
func MoveOf(db *meta.Database, r ring.Range, c ring.Copy, to string) (*job.Source, error) {
	for i := range db.Shards {
		if s := &db.Shards[i]; s.Overlaps(r) && s.On(to) {
			return nil, fault.Newf(fault.BadRequest, "%s has a copy of documents of %s already.", to, r)
		}
	}
	s := sourceOf(db, job.Move, r, c.Node, c.ID)
	s.To = to
	return s, nil
}

// MergesOf returns what merges the full copies of a range on each node that has some, at least two, which
// make up all of it; on one node only, unless that is empty.
func MergesOf(db *meta.Database, r ring.Range, node string) []*job.Source {
	parts := map[string][]ring.Range{}
	var nodes []string
	for _, s := range db.Shards { // sorted by where they begin
		for _, c := range s.Full() {
			if !r.Includes(s.Range) || node != "" && c.Node != node {
				continue
			}
			if parts[c.Node] == nil {
				nodes = append(nodes, c.Node)
			}
			parts[c.Node] = append(parts[c.Node], s.Range)
		}
	}
	var out []*job.Source
	for _, n := range nodes {
		if of := parts[n]; len(of) > 1 && tile(of, r) {
			s := sourceOf(db, job.Merge, r, n, 0)
			s.Parts = of
			out = append(out, s)
		}
	}
	return out
}

// tile reports whether ranges, one after the other, make up a range.
func tile(parts []ring.Range, r ring.Range) bool {
	next := r.Begin
	for i, p := range parts {
		if p.Begin != next || (i == len(parts)-1) != (p.End == r.End) {
			return false
		}
		next = p.End + 1
	}
	return true
}

func sourceOf(db *meta.Database, what job.Type, r ring.Range, node string, id uint64) *job.Source {
	return &job.Source{Type: what, Node: node, Database: db.Name, DatabaseID: db.ID, Suffix: db.Suffix, Range: r, Copy: id}
}

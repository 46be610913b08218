package rebalance

import (
	"slices"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/reshard/placer"
	"divan/shard/ring"
)

// view is the maps of a cluster as the placer sees them.
type view struct {
	cluster placer.Cluster
	names   []string         // of nodes, by their index
	dbs     []*meta.Database // by their index
	node    map[string]int32 // index by name
	waits   []bool           // of shards of the cluster: their copies may move later, by themselves
}

// facts are what a view is made of besides the maps.
type facts struct {
	members   []meta.Node
	away      []string // members that do not answer: nothing moves from or to them
	sizes     sizes
	jobs      []*job.Job     // those whose copies are left alone; also what has failed
	placement ring.Placement // of all databases
}

// newView returns the view of the databases.
//
// It has copies where they will be when what is under way is done: of one that moves it has the
// new one. They are pinned, as all copies of a shard of which one is not simply full. Nodes that are no
// members of the cluster any more are lost.
func newView(dbs meta.Databases, f *facts) *view {
	v := &view{node: map[string]int32{}}
	for _, n := range f.members {
		node := ring.Node{Name: n.Name, Zone: n.Zone, Draining: n.Draining}
		v.add(n.Name, placer.Node{Node: node, Away: slices.Contains(f.away, n.Name)})
	}
	busy, pending := busyRanges(f.jobs), busyRanges(unfinished(f.jobs))
	for db := range dbs.All() {
		at := int32(len(v.dbs))
		v.dbs = append(v.dbs, db)
		v.cluster.Databases = append(v.cluster.Databases, placer.Database{Placement: f.placement})
		for i := range db.Shards {
			s := &db.Shards[i]
			waits := !settled(db.Shards, s) || slices.ContainsFunc(pending[db.ID], s.Overlaps)
			pinned := waits || slices.ContainsFunc(busy[db.ID], s.Overlaps)
			out := placer.Shard{Range: s.Range, Database: at}
			for _, c := range s.Copies {
				if c.State == ring.StateCopying || c.State == ring.StateLeaving || succeeded(s, c) {
					continue
				}
				away := slices.Contains(f.away, c.Node)
				waits = waits || away
				out.Copies = append(out.Copies, placer.Copy{Node: v.indexOf(c.Node), Bytes: f.sizes.of(db, s, c), Pinned: pinned || away})
			}
			if len(out.Copies) > 0 {
				v.cluster.Shards, v.waits = append(v.cluster.Shards, out), append(v.waits, waits)
			}
		}
	}
	return v
}

func (v *view) add(name string, n placer.Node) int32 {
	at := int32(len(v.names))
	v.node[name] = at
	v.names = append(v.names, name)
	v.cluster.Nodes = append(v.cluster.Nodes, n)
	return at
}

// indexOf returns the index of a node that a map names.
func (v *view) indexOf(name string) int32 {
	if at, known := v.node[name]; known {
		return at
	}
	return v.add(name, placer.Node{Node: ring.Node{Name: name}, Lost: true})
}

// settled reports whether all copies of a shard, and of those that overlap with it, are full, and none comes in
// the place of another one. Ranges overlap for good where only some copies of a shard were split.
func settled(shards []ring.Shard, s *ring.Shard) bool {
	return !slices.ContainsFunc(shards, func(o ring.Shard) bool {
		return o.Overlaps(s.Range) && slices.ContainsFunc(o.Copies, func(c ring.Copy) bool { return c.State != ring.StateFull || c.Instead != "" })
	})
}

// succeeded reports whether another copy comes in the place of one.
func succeeded(s *ring.Shard, c ring.Copy) bool {
	return slices.ContainsFunc(s.Copies, func(o ring.Copy) bool { return o.Instead == c.Node })
}

// busyRanges returns what jobs have to do with, by id of the database.
func busyRanges(jobs []*job.Job) map[[16]byte][]ring.Range {
	out := map[[16]byte][]ring.Range{}
	for _, j := range jobs {
		out[j.DatabaseID] = append(out[j.DatabaseID], j.Range)
	}
	return out
}

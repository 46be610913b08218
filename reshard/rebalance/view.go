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
	members int              // so many of them are members
	dbs     []*meta.Database // by their index
	node    map[string]int32 // index by name
	shards  []shardFacts     // of shards of the cluster
	heirs   []Move           // copies on nodes that are no members, of which others come in the place already
	giveUp  []meta.CopyChange
}

// shardFacts holds the facts of a shard that the placer does not know.
type shardFacts struct {
	waits  bool // its copies may move later, by themselves
	doomed bool // too few of its full copies are on members to be sure of all edits
	source bool // there is one
}

// facts are the inputs of a view besides the maps.
type facts struct {
	members   []meta.Node
	away      []string // members that do not answer: nothing moves from or to them
	sizes     sizes
	jobs      []*job.Job     // that have not ended: their copies are left alone
	placement ring.Placement // of all databases
}

// newView returns the view of the databases.
//
// It has copies where they will be when what is under way is done: of one that moves it has the
// new one. They are pinned, as all copies of a shard of which one is not simply full. Nodes that are no
// members of the cluster any more are lost: what comes in the place of a copy on one takes it, what is to
// come there is given up, and all else there is to be made anew.
func newView(dbs meta.Databases, f *facts) *view {
	v := &view{node: map[string]int32{}, members: len(f.members)}
	for _, n := range f.members {
		node := ring.Node{Name: n.Name, Zone: n.Zone, Draining: n.Draining}
		v.add(n.Name, placer.Node{Node: node, Away: slices.Contains(f.away, n.Name)})
	}
	busy := busyRanges(f.jobs)
	for db := range dbs.All() {
		v.dbs = append(v.dbs, db)
		v.cluster.Databases = append(v.cluster.Databases, placer.Database{Placement: f.placement})
		for i := range db.Shards {
			v.addShard(db, &db.Shards[i], f, busy[db.ID])
		}
	}
	return v
}

// addShard adds a shard of the last of the databases.
func (v *view) addShard(db *meta.Database, s *ring.Shard, f *facts, busy []ring.Range) {
	facts := shardFacts{
		waits: !v.settled(db.Shards, s) || slices.ContainsFunc(busy, s.Overlaps), doomed: v.doomed(s),
		source: slices.ContainsFunc(s.Full(), func(c ring.Copy) bool { return v.isMember(c.Node) }),
	}
	out := placer.Shard{Range: s.Range, Database: int32(len(v.dbs) - 1)}
	pinned := facts.waits || facts.doomed
	for _, c := range s.Copies {
		heir, succeeded := successor(s, c)
		lost := !v.isMember(c.Node)
		switch {
		case c.State == ring.StateCopying, c.State == ring.StateLeaving && (!lost || !succeeded):
			continue
		case lost && c.State == ring.StateJoining && c.Instead != "" && s.On(c.Instead):
			v.giveUp = append(v.giveUp, meta.CopyChange{Name: db.Name, ID: db.ID, Change: ring.Change{Copy: c.ID, To: ring.StateGone}})
			continue
		case lost && succeeded && v.isMember(heir.Node):
			if !facts.doomed {
				v.heirs = append(v.heirs, Move{db, s.Range, c.Node, heir.Node, f.sizes.of(db, s, c), placer.Lost})
			}
			continue
		case succeeded && v.isMember(heir.Node):
			continue
		}
		away := slices.Contains(f.away, c.Node)
		facts.waits = facts.waits || away
		out.Copies = append(out.Copies, placer.Copy{Node: v.indexOf(c.Node), Bytes: f.sizes.of(db, s, c), Pinned: pinned || away})
	}
	if len(out.Copies) > 0 {
		v.cluster.Shards, v.shards = append(v.cluster.Shards, out), append(v.shards, facts)
	}
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

// isMember reports whether a node that a map names is a member of the cluster.
func (v *view) isMember(name string) bool {
	at, known := v.node[name]
	return known && int(at) < v.members
}

// settled reports whether all copies of a shard on members, and of those that overlap with it, are full, and none
// comes in the place of another one on a member. Ranges overlap for good where only some copies of a shard were split.
func (v *view) settled(shards []ring.Shard, s *ring.Shard) bool {
	for i := range shards {
		o := &shards[i]
		if !o.Overlaps(s.Range) {
			continue
		}
		for _, c := range o.Copies {
			heir, succeeded := successor(o, c)
			switch {
			case !v.isMember(c.Node), c.Instead != "" && !v.isMember(c.Instead), succeeded && !v.isMember(heir.Node):
			case c.State != ring.StateFull || c.Instead != "":
				return false
			}
		}
	}
	return true
}

// doomed reports whether more than half of the full copies of a shard are on nodes that are no members: the others
// may lack edits that were acknowledged.
func (v *view) doomed(s *ring.Shard) bool {
	full, here := s.Full(), 0
	for _, c := range full {
		if v.isMember(c.Node) {
			here++
		}
	}
	return 2*here < len(full)
}

// successor returns the copy that comes in the place of one.
func successor(s *ring.Shard, c ring.Copy) (ring.Copy, bool) {
	at := slices.IndexFunc(s.Copies, func(o ring.Copy) bool { return o.Instead == c.Node })
	if at < 0 {
		return ring.Copy{}, false
	}
	return s.Copies[at], true
}

// busyRanges returns what jobs have to do with, by id of the database.
func busyRanges(jobs []*job.Job) map[[16]byte][]ring.Range {
	out := map[[16]byte][]ring.Range{}
	for _, j := range jobs {
		out[j.DatabaseID] = append(out[j.DatabaseID], j.Range)
	}
	return out
}

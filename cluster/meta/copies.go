package meta

import (
	"bytes"
	"context"
	"slices"

	"go.uber.org/zap"

	"divan/cluster/meta/metapb"
	"divan/shard/ring"
	"divan/storage/fault"
)

// The copies of databases are entries of their maps, with ids that are never given
// again (ring.NewCopies).

// changeMaps changes the maps of databases. change gets a database that it may write
// to, but for what it refers to, and reports whether it has changed its copies.
func (s *state) changeMaps(change func(db *Database) bool, e *effects) {
	dbs := make([]*Database, 0, s.dbs.Len())
	changed := 0
	for db := range s.dbs.All() {
		next := *db
		if change(&next) {
			s.changed(db, &next)
			if changed++; changed <= maxPending {
				e.events = append(e.events, Event{Kind: Changed, Old: db, New: &next})
			}
			db = &next
		}
		dbs = append(dbs, db)
	}
	s.dbs = databasesOf(dbs)
	e.lagged = e.lagged || changed > maxPending
}

// changed notes that the command that is applied has changed the copies of a database.
func (s *state) changed(old, db *Database) {
	db.Generation = s.index
	if ring.FullChanged(old.Shards, db.Shards) {
		db.FullGeneration = s.index
	}
}

// changeCopies changes the states of copies. What a change was decided on may have
// changed since; then it is passed over.
func (s *state) changeCopies(changes []*metapb.CopyChange, e *effects) {
	ids := ring.IDsOf(s.index) // of all databases together: one may be named twice
	for len(changes) > 0 {
		first, n := changes[0], 1
		for n < len(changes) && changes[n].Name == first.Name && bytes.Equal(changes[n].Id, first.Id) {
			n++
		}
		if old, ok := s.find(first.Name, first.Id); ok {
			if shards, ok := ring.Apply(old.Shards, ringChanges(changes[:n]), ids); ok {
				db := *old
				db.Shards = shards
				s.changed(old, &db)
				s.dbs = s.dbs.with(&db)
				e.events = append(e.events, Event{Kind: Changed, Old: old, New: &db})
			}
		}
		changes = changes[n:]
	}
}

func ringChanges(changes []*metapb.CopyChange) []ring.Change {
	out := make([]ring.Change, len(changes))
	for i, c := range changes {
		out[i] = ring.Change{Copy: c.Copy, To: ring.State(c.State), Filled: c.Filled}
	}
	return out
}

// CopyChange gives a copy of a database another state.
type CopyChange struct {
	Name string   // of the database
	ID   [16]byte // of the database
	ring.Change
}

// Copies are those of all databases: where they are, how they change their state, and up to which
// command this node has made its own (made_copies.go).
type Copies struct {
	fsm      *stateMachine
	proposer *proposer
	stores   *nodeStores
	log      *zap.Logger
}

// maxChanges is how many changes one command makes at most.
const maxChanges = 1000

// ChangeCopies gives copies other states, all at once or, when they are very many, in
// several commands. The changes of one database stand together. What may not be (ring.Apply)
// is passed over without an error. The errors are those of a proposal.
func (c *Copies) ChangeCopies(ctx context.Context, changes []CopyChange) error {
	for part := range slices.Chunk(changes, maxChanges) {
		next := &metapb.ChangeCopies{Changes: make([]*metapb.CopyChange, len(part))}
		for i := range part {
			next.Changes[i] = &metapb.CopyChange{
				Name: part[i].Name, Id: part[i].ID[:], Copy: part[i].Copy, State: uint32(part[i].To), Filled: part[i].Filled,
			}
		}
		if _, err := c.proposer.propose(ctx, &metapb.Command{Op: &metapb.Command_ChangeCopies{ChangeCopies: next}}); err != nil {
			return err
		}
	}
	return nil
}

// AddCopies adds copies to a database (ring.Add). fault.NotFound: the database is gone, or a node is no
// member; fault.Conflict: a copy may not be there. One that is there already stays.
func (c *Copies) AddCopies(ctx context.Context, name string, id [16]byte, copies []ring.Addition) error {
	more := &metapb.AddCopies{Name: name, Id: id[:], Copies: make([]*metapb.Addition, len(copies))}
	for i, a := range copies {
		more.Copies[i] = &metapb.Addition{Begin: a.Begin, End: a.End, Node: a.Node, Instead: a.Instead, Lost: a.Lost}
	}
	_, err := c.proposer.propose(ctx, &metapb.Command{Op: &metapb.Command_AddCopies{AddCopies: more}})
	return err
}

func (s *state) addCopies(c *metapb.AddCopies, e *effects) result {
	old, ok := s.find(c.Name, c.Id)
	if !ok {
		return result{err: errNoDatabase()}
	}
	copies := make([]ring.Addition, len(c.Copies))
	for i, a := range c.Copies {
		if _, member := s.nodes[a.Node]; !member {
			return result{err: errNoNode(a.Node)}
		}
		if _, member := s.nodes[a.Instead]; a.Lost && member {
			return result{err: fault.Newf(fault.Conflict, "%s is a member of the cluster.", a.Instead)}
		}
		copies[i] = ring.Addition{Range: ring.Range{Begin: a.Begin, End: a.End}, Node: a.Node, Instead: a.Instead, Lost: a.Lost}
	}
	shards, ok := ring.Add(old.Shards, copies, ring.IDsOf(s.index))
	if len(shards) > ring.MaxQ {
		return result{err: fault.Newf(fault.Conflict, "A database has at most %d shards.", ring.MaxQ)}
	}
	if !ok {
		return result{err: fault.New(fault.Conflict, "The nodes do not have the full copies of that range that this needs, or others are in the way.")}
	}
	db := *old
	db.Shards = shards
	s.changed(old, &db)
	s.dbs = s.dbs.with(&db)
	e.events = append(e.events, Event{Kind: Changed, Old: old, New: &db})
	return result{db: &db}
}

// CopyIn returns the database of a copy by the name that it has on every node, and its
// entry on one node; false when the map has none there.
func (c *Copies) CopyIn(name, node string) (*Database, ring.Copy, bool) {
	r, dbName, suffix, ok := ring.ParseCopyName(name)
	if !ok {
		return nil, ring.Copy{}, false
	}
	db, ok := c.fsm.load().dbs.Get(dbName)
	if !ok || db.Suffix != suffix {
		return nil, ring.Copy{}, false
	}
	for i := range db.Shards {
		if db.Shards[i].Range == r {
			one, ok := db.Shards[i].CopyOn(node)
			return db, one, ok
		}
	}
	return nil, ring.Copy{}, false
}

package meta

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"divan/cluster/config"
	"divan/cluster/meta/metapb"
	"divan/cluster/meta/sortedset"
	"divan/shard/ring"
	"divan/storage/fault"
)

// state is all that the group has agreed on. A published state is immutable;
// the machine changes a copy whose maps it replaces before it writes to them.
type state struct {
	uuid, secret string
	dbs          Databases
	nodes        map[string]Node
	cluster      config.Layer            // configuration for all nodes
	perNode      map[string]config.Layer // and for one
	slots        *Slots                  // of work; never nil
	records      sortedset.Set[Record]
	index, term  uint64 // of the last command applied

	clusterVersion uint64 // the newest that a command applied so far belongs to

	// restored says that no command was applied since a snapshot was restored,
	// which can reach over more entries of the log than up to index.
	restored bool
}

// newState returns what a group has agreed on before its first command.
func newState() *state {
	return &state{nodes: map[string]Node{}, perNode: map[string]config.Layer{}, slots: &Slots{}}
}

func (s *state) sortedNodes() []Node {
	return slices.SortedFunc(maps.Values(s.nodes), func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
}

// generated is the configuration that the group made up for itself.
func (s *state) generated() config.Layer {
	var l config.Layer
	if s.uuid != "" {
		l.Put("couchdb", "uuid", s.uuid)
		l.Put("chttpd_auth", "secret", s.secret)
	}
	return l
}

// result is the outcome of a command. err is a fault for the client.
type result struct {
	err         error
	db          *Database
	index, term uint64 // of the command
}

// effects gathers what the machine has to tell after a batch.
type effects struct {
	events []Event
	config bool // a layer of configuration changed
	nodes  bool // a member came, went or changed
	slots  bool // a slot changed hands
	record bool // one was written or removed
	lagged bool // too much changed to tell one by one
}

// apply carries out a command on s. It must come to the same result on every
// node: it may look at s, whose index is that of the command already, at the
// tombstones and at the command only.
func (s *state) apply(c *command, t *tombstones, e *effects) result {
	switch op := c.Op.(type) {
	case *metapb.Command_Init:
		if s.uuid == "" {
			s.uuid, s.secret = op.Init.Uuid, op.Init.Secret
			e.config = true
		}
	case *metapb.Command_CreateDatabase:
		return s.createDatabase(c.database, t, e)
	case *metapb.Command_AlterDatabase:
		return s.alterDatabase(op.AlterDatabase, e)
	case *metapb.Command_DeleteDatabase:
		return s.deleteDatabase(op.DeleteDatabase, t, e)
	case *metapb.Command_ChangeConfig:
		s.changeConfig(op.ChangeConfig)
		e.config = true
	case *metapb.Command_PutNode:
		if err := s.welcome(op.PutNode.Name, op.PutNode.ClusterVersion); err != nil {
			return result{err: err}
		}
		s.putNode(nodeFrom(op.PutNode), e)
	case *metapb.Command_AlterNode:
		return s.alterNode(op.AlterNode, e)
	case *metapb.Command_RemoveNode:
		return s.removeNode(op.RemoveNode.Name, e)
	case *metapb.Command_ReplaceNode:
		return s.replaceNode(op.ReplaceNode, e)
	case *metapb.Command_ChangeCopies:
		s.changeCopies(op.ChangeCopies.Changes, e)
	case *metapb.Command_AddCopies:
		return s.addCopies(op.AddCopies, e)
	case *metapb.Command_PutRecord:
		return s.putRecord(op.PutRecord, e)
	case *metapb.Command_AssignSlots:
		s.assignSlots(op.AssignSlots, e)
	}
	return result{}
}

func errNoDatabase() error { return fault.New(fault.NoDatabase, "Database does not exist.") }

func errDatabaseExists() error {
	return fault.New(fault.Exists, "The database could not be created, the file already exists.")
}

func (s *state) createDatabase(wish *Database, t *tombstones, e *effects) result {
	if node, ok := s.nonMember(wish); ok {
		return result{err: errNoNode(node)}
	}
	if _, ok := s.dbs.Get(wish.Name); ok {
		return result{err: errDatabaseExists()}
	}
	db := *wish
	db.Created = t.nextSuffix(wish.Name, wish.Created)
	db.Suffix = suffixOf(db.Created)
	db.Shards, db.Generation, db.Born = ring.Identify(wish.Shards, ring.IDsOf(s.index)), s.index, s.index
	s.dbs = s.dbs.with(&db)
	e.events = append(e.events, Event{Kind: Created, New: &db})
	return result{db: &db}
}

// nonMember returns a node that is to get a copy of a database and is no member.
func (s *state) nonMember(db *Database) (string, bool) {
	for _, shard := range db.Shards {
		for _, c := range shard.Copies {
			if _, member := s.nodes[c.Node]; !member {
				return c.Node, true
			}
		}
	}
	return "", false
}

// find returns a database by name, and by id unless that is empty.
func (s *state) find(name string, id []byte) (*Database, bool) {
	db, ok := s.dbs.Get(name)
	return db, ok && (len(id) == 0 || bytes.Equal(id, db.ID[:]))
}

func (s *state) deleteDatabase(c *metapb.DeleteDatabase, t *tombstones, e *effects) result {
	old, ok := s.find(c.Name, c.Id)
	if !ok {
		return result{err: errNoDatabase()}
	}
	t.add(old.Name, old.Created)
	s.dbs = s.dbs.without(old.Name)
	e.events = append(e.events, Event{Kind: Deleted, Old: old})
	return result{db: old}
}

func (s *state) alterDatabase(c *metapb.AlterDatabase, e *effects) result {
	old, ok := s.find(c.Name, c.Id)
	if !ok {
		return result{err: errNoDatabase()}
	}
	db := *old
	if c.Security != nil {
		db.Security = c.Security
	}
	db.set(c.Settings)
	s.dbs = s.dbs.with(&db)
	e.events = append(e.events, Event{Kind: Changed, Old: old, New: &db})
	return result{db: &db}
}

func (s *state) changeConfig(c *metapb.ConfigChange) {
	l := s.cluster
	if c.Node != "" {
		l = s.perNode[c.Node]
	}
	l = l.Clone()
	change(&l, c)
	if c.Node == "" {
		s.cluster = l
		return
	}
	s.perNode = maps.Clone(s.perNode)
	s.perNode[c.Node] = l
	if l.Empty() {
		delete(s.perNode, c.Node)
	}
}

// change changes one key of a layer.
func change(l *config.Layer, c *metapb.ConfigChange) {
	switch c.Op {
	case metapb.ConfigChange_SET:
		l.Put(c.Section, c.Key, c.Value)
	case metapb.ConfigChange_HIDE:
		l.Hide(c.Section, c.Key)
	case metapb.ConfigChange_UNSET:
		l.Drop(c.Section, c.Key)
	case metapb.ConfigChange_NONE: // was refused when it was read
	}
}

// check verifies what commands and snapshots must keep true.
func (s *state) check() error {
	prev := ""
	for db := range s.dbs.All() {
		if db.Name <= prev && prev != "" {
			return fmt.Errorf("%w: database %q out of order", errMalformed, db.Name)
		}
		prev = db.Name
	}
	return nil
}

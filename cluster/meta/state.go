package meta

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"divan/cluster/config"
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
	index, term  uint64                  // of the last command applied

	// restored says that no command was applied since a snapshot was restored,
	// which can reach over more entries of the log than up to index.
	restored bool
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

// result is what a command came to. err is a fault for the client.
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
	lagged bool // too much changed to tell one by one
}

// apply carries out a command on s. It must come to the same result on every
// node: it may look at s, at the graves and at the command only.
func (s *state) apply(c *command, g *graves, e *effects) result {
	switch c.kind {
	case kindInit:
		if s.uuid == "" {
			s.uuid, s.secret = c.init.uuid, c.init.secret
			e.config = true
		}
	case kindCreateHere:
		if away, ok := s.stranger(c.db); ok {
			return result{err: errNoNode(away)}
		}
		return s.create(c.db, g, e)
	case kindCreate:
		return s.create(c.db, g, e)
	case kindDelete, kindDeleteExact:
		old, ok := s.dbs.Get(c.name)
		if !ok || (c.kind == kindDeleteExact && old.ID != c.id) {
			return result{err: errNoDatabase()}
		}
		g.bury(old.Name, old.Created)
		s.dbs = s.dbs.without(c.name)
		e.events = append(e.events, Event{Kind: Deleted, Old: old})
		return result{db: old}
	case kindAlter, kindAlterExact:
		return s.alter(c, e)
	case kindConfig:
		s.setConfig(c.config)
		e.config = true
	case kindPutNode, kindDropNode, kindDrain, kindReplace, kindTakeOver, kindAmendNode, kindZone:
		return s.applyNode(c, e)
	}
	return result{}
}

func errNoDatabase() error { return fault.New(fault.NoDatabase, "Database does not exist.") }

func errDatabaseExists() error {
	return fault.New(fault.Exists, "The database could not be created, the file already exists.")
}

func (s *state) create(wish *Database, g *graves, e *effects) result {
	if _, ok := s.dbs.Get(wish.Name); ok {
		return result{err: errDatabaseExists()}
	}
	db := *wish
	db.Created = g.suffix(wish.Name, wish.Created)
	db.Suffix = suffixOf(db.Created)
	s.dbs = s.dbs.with(&db)
	e.events = append(e.events, Event{Kind: Created, New: &db})
	return result{db: &db}
}

// stranger returns a node that is to get a copy of a database and is no member.
func (s *state) stranger(db *Database) (string, bool) {
	for _, shard := range db.Shards {
		for _, node := range shard.Nodes {
			if _, member := s.nodes[node]; !member {
				return node, true
			}
		}
	}
	return "", false
}

func (s *state) alter(c *command, e *effects) result {
	old, ok := s.dbs.Get(c.name)
	if !ok || (c.kind == kindAlterExact && old.ID != c.id) {
		return result{err: errNoDatabase()}
	}
	db := *old
	if c.alter.security != nil {
		db.Security = c.alter.security
	}
	if c.alter.revsLimit != nil {
		db.RevsLimit = *c.alter.revsLimit
	}
	if c.alter.purgedInfosLimit != nil {
		db.PurgedInfosLimit = *c.alter.purgedInfosLimit
	}
	s.dbs = s.dbs.with(&db)
	e.events = append(e.events, Event{Kind: Changed, Old: old, New: &db})
	return result{db: &db}
}

func (s *state) setConfig(c configCommand) {
	l := s.cluster
	if c.node != "" {
		l = s.perNode[c.node]
	}
	l = l.Clone()
	switch c.op {
	case configPut:
		l.Put(c.section, c.key, c.value)
	case configHide:
		l.Hide(c.section, c.key)
	case configDrop:
		l.Drop(c.section, c.key)
	}
	if c.node == "" {
		s.cluster = l
		return
	}
	s.perNode = maps.Clone(s.perNode)
	s.perNode[c.node] = l
	if l.Empty() {
		delete(s.perNode, c.node)
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

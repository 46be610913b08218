package meta

import (
	"context"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta/metapb"
	"divan/shard/ring"
)

// The copies of databases are entries of their maps, with ids that are never given
// again (ring.NewCopies). Programs of before copiesVersion know no ids; copies get theirs in one command (identify_copies)
// when all members know them.

// copiesVersion is the version of the cluster from which on copies have ids.
const copiesVersion = 2

// newCopies returns the ids of copies that the command makes which is applied; all are 0
// as long as copies have none.
func (s *state) newCopies() *ring.NewCopies {
	if s.clusterVersion < copiesVersion {
		return &ring.NewCopies{}
	}
	return ring.IDsOf(s.index)
}

// identify gives ids to the copies of a database that have none, and reports whether
// there were any. old: the database is of before, and its directories tell no ids.
func (d *Database) identify(index uint64, old bool) bool {
	shards, ok := ring.Identify(d.Shards, ring.IDsOf(index))
	if ok {
		d.Generation, d.Shards = index, shards
		if old {
			d.Unnamed = ring.LastID(index)
		} else {
			d.Born = index
		}
	}
	return ok
}

// Unnamed reports whether the directory of a copy need not tell which copy it is, when
// the map has the one with that id under its name.
func (m *Meta) Unnamed(name string, id uint64) bool {
	db, ok := m.DatabaseOf(name)
	return ok && id <= db.Unnamed
}

// DatabaseOf returns the database of a copy by its name.
func (m *Meta) DatabaseOf(name string) (*Database, bool) {
	_, dbName, suffix, ok := ring.ParseCopyName(name)
	if !ok {
		return nil, false
	}
	db, ok := m.Database(dbName)
	return db, ok && db.Suffix == suffix
}

// changeMaps changes the maps of databases. change gets a database that it may write
// to, but for what it refers to, and reports whether it has changed its copies.
func (s *state) changeMaps(change func(db *Database) bool, e *effects) {
	dbs := make([]*Database, 0, s.dbs.Len())
	changed := 0
	for db := range s.dbs.All() {
		next := *db
		if change(&next) {
			if s.clusterVersion >= copiesVersion {
				next.Generation = s.index
			}
			if changed++; changed <= maxPending {
				e.events = append(e.events, Event{Kind: Changed, Old: db, New: &next})
			}
			db = &next
		}
		dbs = append(dbs, db)
	}
	s.dbs = Databases{build(dbs)}
	e.lagged = e.lagged || changed > maxPending
}

// changeCopies changes the states of copies. What a change was decided on may have
// changed since; then it is passed over.
func (s *state) changeCopies(changes []*metapb.CopyChange, e *effects) {
	ids := s.newCopies() // of all databases together: one may be named twice
	for _, c := range changes {
		old, ok := s.find(c.Name, c.Id)
		if !ok {
			continue
		}
		if shards, ok := ring.Change(old.Shards, c.Copy, ring.State(c.State), ids); ok {
			db := *old
			db.Shards, db.Generation = shards, s.index
			s.dbs = s.dbs.with(&db)
			e.events = append(e.events, Event{Kind: Changed, Old: old, New: &db})
		}
	}
}

// identifyCopies has the copies of all databases get ids when every member knows them
// and that was not done yet.
func (m *Meta) identifyCopies(ctx context.Context, do func(context.Context, *metapb.Command) (result, error)) error {
	s := m.fsm.load()
	if s.clusterVersion >= copiesVersion || m.fsm.versions.known < copiesVersion || len(s.nodes) == 0 {
		return nil
	}
	if err := s.permit(copiesVersion); err != nil {
		return nil //nolint:nilerr // when the last member is upgraded
	}
	_, err := do(ctx, &metapb.Command{Op: &metapb.Command_IdentifyCopies{IdentifyCopies: &metapb.Nothing{}}})
	return err
}

// keepIdentified does that as soon as the last member is upgraded, until ctx ends.
func (m *Meta) keepIdentified(ctx context.Context) {
	for m.fsm.load().clusterVersion < copiesVersion {
		changed := m.NodesChanged()
		if err := m.identifyCopies(ctx, m.propose); err != nil && ctx.Err() == nil {
			m.log.Warn("copies without ids", zap.Error(err))
		}
		select {
		case <-changed:
		case <-time.After(joinEvery): // it may have failed
		case <-ctx.Done():
			return
		}
	}
}

// identifyAs gives ids to the copies of the only node there is: those that its
// directories tell, unless the map has one that is as new.
func (d *Database) identifyAs(node string, there map[string]uint64, index uint64) {
	told := func(r ring.Range) uint64 { return there[d.CopyName(r)] }
	shards, old := ring.IdentifyAs(d.Shards, node, told, ring.IDsOf(index))
	if d.Shards, d.Generation = shards, max(d.Generation, 1); old {
		d.Unnamed = ring.LastID(index)
	}
}

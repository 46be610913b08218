package reshard

import (
	"context"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/shard/ring"
)

// jobMap is the shard maps of databases as jobs see them.
type jobMap struct{ Map }

// database returns the database of a job; false when it is gone.
func (m jobMap) database(j *job.Job) (*meta.Database, bool) {
	db, ok := m.Database(j.Database)
	return db, ok && db.ID == j.DatabaseID
}

// target returns what the map has of a target; false when it has nothing.
func (m jobMap) target(j *job.Job, name string) (c ring.Copy, ok bool) {
	if db, there := m.database(j); there {
		c, ok = db.Copy(name, j.Node)
	}
	return c, ok
}

// see looks at the map.
func (m jobMap) see(j *job.Job) *job.Seen {
	db, ok := m.database(j)
	if !ok {
		return &job.Seen{}
	}
	return j.See(db.Shards)
}

// propose proposes changes of the map. What may not be is passed over.
func (m jobMap) propose(ctx context.Context, j *job.Job, changes []ring.Change) error {
	out := make([]meta.CopyChange, len(changes))
	for i, ch := range changes {
		out[i] = meta.CopyChange{Name: j.Database, ID: j.DatabaseID, Change: ch}
	}
	return m.ChangeCopies(ctx, out)
}

package meta

import "context"

// Catalog is the databases of the cluster: what this node knows of them, and how they are made, altered
// and deleted (change_db.go).
type Catalog struct {
	fsm      *stateMachine
	proposer *proposer
	reader   *Reader
}

// Databases returns all databases as they are now on this node.
func (c *Catalog) Databases() Databases { return c.fsm.load().dbs }

// Database returns a database as this node knows it now. One that is not
// found may have been created a moment ago through another node: CatchUp
// before answering that it does not exist.
func (c *Catalog) Database(name string) (*Database, bool) { return c.fsm.load().dbs.Get(name) }

// Require returns a database, catching up with the group before it says
// fault.NotFound.
func (c *Catalog) Require(ctx context.Context, name string) (*Database, error) {
	if db, ok := c.Database(name); ok {
		return db, nil
	}
	if err := c.reader.CatchUp(ctx); err != nil {
		return nil, err
	}
	if db, ok := c.Database(name); ok {
		return db, nil
	}
	return nil, errNoDatabase()
}

// Subscribe returns a subscription and the databases it starts from: every
// change after them will be an event.
func (c *Catalog) Subscribe() (*Subscription, Databases) {
	return c.fsm.subscribe()
}

// IsDeleted reports whether a copy belongs to a database that was deleted, as far
// as this node has heard. Of the databases that were deleted, the last ten
// thousand are known.
func (c *Catalog) IsDeleted(copyName string) bool { return c.fsm.tombstones.Load().hasCopy(copyName) }

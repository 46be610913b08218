package meta

import (
	"context"
	"crypto/rand"
	randv2 "math/rand/v2"
	"time"

	"divan/cluster/meta/dbsetting"
	"divan/cluster/meta/metapb"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Create says what a new database is to be.
type Create struct {
	Name        string
	ID          [16]byte       // random; zero: made up
	Q           int            // ranges, 1…ring.MaxQ
	N           int            // copies, cut to the number of nodes; ignored with a placement
	Placement   ring.Placement // copies zone by zone; may be nil
	Partitioned bool
	Security    []byte // JSON object of at most 1 MB; nil: none
}

// CreateDatabase makes a database and returns it once this node knows it. Its
// refusals are fault.IllegalDatabaseName, DatabaseNameTooLong, BadRequest,
// RequestTooLarge, Exists, and Unavailable when no majority or no node for a
// copy is there.
func (c *Catalog) CreateDatabase(ctx context.Context, wish Create) (*Database, error) {
	if err := ring.ValidateName(wish.Name); err != nil {
		return nil, err
	}
	if len(wish.Security) > maxSecurity {
		return nil, errTooLarge()
	}
	// Many clients create on every start what is there since long: answer them
	// without an entry in the log.
	if _, ok := c.Database(wish.Name); ok {
		if err := c.reader.CatchUp(ctx); err != nil {
			return nil, err
		}
		if _, ok := c.Database(wish.Name); ok {
			return nil, errDatabaseExists()
		}
	}
	return c.place(ctx, wish)
}

// placeAttempts is how often a creation is tried: each time but the last, a
// node has left the cluster after it was chosen.
const placeAttempts = 5

// place chooses the nodes of a new database and proposes it. A node that leaves meanwhile must not
// be left in the map: no node would ever take its copies.
func (c *Catalog) place(ctx context.Context, wish Create) (*Database, error) {
	for left := placeAttempts; ; left-- {
		db, err := c.newDatabase(wish)
		if err != nil {
			return nil, err
		}
		res, err := c.proposer.propose(ctx, &metapb.Command{Op: &metapb.Command_CreateDatabase{CreateDatabase: db.proto()}})
		switch {
		case !fault.Is(err, fault.NotFound):
			return res.db, err
		case left == 1:
			return nil, errUnavailable(err)
		}
	}
}

// newDatabase decides all that a creation leaves to chance or to the clock.
func (c *Catalog) newDatabase(wish Create) (*Database, error) {
	nodes := c.fsm.load().sortedNodes()
	candidates := make([]ring.Node, len(nodes))
	for i, n := range nodes {
		candidates[i] = n.ring()
	}
	shards, err := ring.Place(ring.Request{
		Nodes: candidates, Q: wish.Q, N: wish.N, Placement: wish.Placement, Rotate: randv2.Uint64(),
	})
	if err != nil {
		return nil, err
	}
	if len(shards)*len(shards[0].Copies) >= ring.MaxNewCopies {
		return nil, fault.Newf(fault.BadRequest, "a database has fewer than %d copies of shards", ring.MaxNewCopies)
	}
	db := &Database{
		Name: wish.Name, Created: time.Now().Unix(), N: len(shards[0].Copies), Partitioned: wish.Partitioned,
		Shards: shards, Security: wish.Security, Settings: dbsetting.Standard(),
	}
	if db.ID = wish.ID; db.ID == ([16]byte{}) {
		db.ID = NewDatabaseID()
	}
	return db, nil
}

// NewDatabaseID makes up an id for a database.
func NewDatabaseID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// DeleteDatabase removes a database and returns what it was. fault.NotFound
// when there is none of that name.
func (c *Catalog) DeleteDatabase(ctx context.Context, name string) (*Database, error) {
	if _, err := c.Require(ctx, name); err != nil { // spares the log a command that would find nothing
		return nil, err
	}
	res, err := c.proposer.propose(ctx, deleteCommand(&metapb.DeleteDatabase{Name: name}))
	return res.db, err
}

// DeleteExactly removes a database unless it is gone or another one has its
// name by now; that is fault.NotFound.
func (c *Catalog) DeleteExactly(ctx context.Context, db *Database) error {
	_, err := c.proposer.propose(ctx, deleteCommand(&metapb.DeleteDatabase{Name: db.Name, Id: db.ID[:]}))
	return err
}

func deleteCommand(c *metapb.DeleteDatabase) *metapb.Command {
	return &metapb.Command{Op: &metapb.Command_DeleteDatabase{DeleteDatabase: c}}
}

// SetSecurity replaces the security object, a JSON object whose shape the caller has checked. The
// database is the one with the name and the ID of db: fault.NotFound when it is gone, also when
// another one has its name by now, because a user who may change the one need not be allowed to
// change the other. Without an ID it is the one that has the name now. fault.RequestTooLarge above
// 1 MB.
func (c *Catalog) SetSecurity(ctx context.Context, db *Database, object []byte) error {
	if object == nil {
		object = []byte("{}")
	}
	if len(object) > maxSecurity {
		return errTooLarge()
	}
	return c.alter(ctx, db, &metapb.AlterDatabase{Security: object})
}

// Set changes a setting. The error is that of Check for a value that it does not have. db is as
// for SetSecurity.
func (c *Catalog) Set(ctx context.Context, db *Database, s dbsetting.Setting, value int) error {
	if err := s.Check(value); err != nil {
		return err
	}
	return c.alter(ctx, db, &metapb.AlterDatabase{Settings: []*metapb.Setting{{Number: uint32(s), Value: int64(value)}}})
}

func (c *Catalog) alter(ctx context.Context, db *Database, to *metapb.AlterDatabase) error {
	if _, err := c.Require(ctx, db.Name); err != nil { // as above
		return err
	}
	to.Name = db.Name
	if db.ID != ([16]byte{}) {
		to.Id = db.ID[:]
	}
	_, err := c.proposer.propose(ctx, &metapb.Command{Op: &metapb.Command_AlterDatabase{AlterDatabase: to}})
	return err
}

package meta

import (
	"context"
	"crypto/rand"
	randv2 "math/rand/v2"
	"time"

	"divan/cluster/meta/metapb"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Create says what a new database is to be.
type Create struct {
	Name             string
	ID               [16]byte       // random; zero: made up
	Q                int            // ranges, 1…ring.MaxQ
	N                int            // copies, cut to the number of nodes; ignored with a placement
	Placement        ring.Placement // copies zone by zone; may be nil
	Partitioned      bool
	Security         []byte // JSON object of at most 1 MB; nil: none
	RevsLimit        int    // 0: 1000
	PurgedInfosLimit int    // 0: 1000
}

// defaultLimit is CouchDB's _revs_limit and _purged_infos_limit of a new
// database.
const defaultLimit = 1000

// CreateDatabase makes a database and returns it once this node knows it. Its
// refusals are fault.IllegalDatabaseName, DatabaseNameTooLong, BadRequest,
// RequestTooLarge, Exists, and Unavailable when no majority or no node for a
// copy is there.
func (m *Meta) CreateDatabase(ctx context.Context, c Create) (*Database, error) {
	if err := ring.ValidateName(c.Name); err != nil {
		return nil, err
	}
	if len(c.Security) > maxSecurity {
		return nil, errTooLarge()
	}
	// Many clients create on every start what is there since long: answer them
	// without an entry in the log.
	if _, ok := m.Database(c.Name); ok {
		if err := m.CatchUp(ctx); err != nil {
			return nil, err
		}
		if _, ok := m.Database(c.Name); ok {
			return nil, errDatabaseExists()
		}
	}
	return m.place(ctx, c)
}

// placeAttempts is how often a creation is tried: each time but the last, a
// node has left the cluster after it was chosen.
const placeAttempts = 5

// place chooses the nodes of a new database and proposes it. A node that leaves
// meanwhile must not be left in the map: nobody would ever take its copies.
func (m *Meta) place(ctx context.Context, c Create) (*Database, error) {
	for left := placeAttempts; ; left-- {
		db, err := m.newDatabase(c)
		if err != nil {
			return nil, err
		}
		res, err := m.propose(ctx, &metapb.Command{Op: &metapb.Command_CreateDatabase{CreateDatabase: db.proto()}})
		switch {
		case !fault.Is(err, fault.NotFound):
			return res.db, err
		case left == 1:
			return nil, errUnavailable(err)
		}
	}
}

// newDatabase decides all that a creation leaves to chance or to the clock.
func (m *Meta) newDatabase(c Create) (*Database, error) {
	nodes := m.Nodes()
	candidates := make([]ring.Node, len(nodes))
	for i, n := range nodes {
		candidates[i] = n.ring()
	}
	shards, err := ring.Place(ring.Request{
		Nodes: candidates, Q: c.Q, N: c.N, Placement: c.Placement, Rotate: randv2.Uint64(),
	})
	if err != nil {
		return nil, err
	}
	if len(shards)*len(shards[0].Copies) >= ring.MaxNewCopies {
		return nil, fault.Newf(fault.BadRequest, "a database has fewer than %d copies of shards", ring.MaxNewCopies)
	}
	db := &Database{
		Name: c.Name, Created: time.Now().Unix(), N: len(shards[0].Copies), Partitioned: c.Partitioned,
		Shards: shards, Security: c.Security, RevsLimit: c.RevsLimit, PurgedInfosLimit: c.PurgedInfosLimit,
	}
	if db.RevsLimit == 0 {
		db.RevsLimit = defaultLimit
	}
	if db.PurgedInfosLimit == 0 {
		db.PurgedInfosLimit = defaultLimit
	}
	if db.ID = c.ID; db.ID == ([16]byte{}) {
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
func (m *Meta) DeleteDatabase(ctx context.Context, name string) (*Database, error) {
	if err := m.mustExist(ctx, name); err != nil {
		return nil, err
	}
	res, err := m.propose(ctx, deleteCommand(&metapb.DeleteDatabase{Name: name}))
	return res.db, err
}

// DeleteExactly removes a database unless it is gone or another one has its
// name by now; that is fault.NotFound.
func (m *Meta) DeleteExactly(ctx context.Context, db *Database) error {
	_, err := m.propose(ctx, deleteCommand(&metapb.DeleteDatabase{Name: db.Name, Id: db.ID[:]}))
	return err
}

func deleteCommand(c *metapb.DeleteDatabase) *metapb.Command {
	return &metapb.Command{Op: &metapb.Command_DeleteDatabase{DeleteDatabase: c}}
}

// SetSecurity replaces the security object, a JSON object whose shape the
// caller has checked. The database is the one with the name and the ID of db:
// fault.NotFound when it is gone, also when another one has its name by now,
// because whoever may change the one need not be allowed to change the other.
// Without an ID it is whichever has the name. fault.RequestTooLarge above 1 MB.
func (m *Meta) SetSecurity(ctx context.Context, db *Database, object []byte) error {
	if object == nil {
		object = []byte("{}")
	}
	if len(object) > maxSecurity {
		return errTooLarge()
	}
	return m.alterDatabase(ctx, db, &metapb.AlterDatabase{Security: object})
}

// SetRevsLimit sets how many generations a revision's ancestry keeps. limit is
// at least 1. db is as for SetSecurity.
func (m *Meta) SetRevsLimit(ctx context.Context, db *Database, limit int) error {
	if limit < 1 {
		return fault.New(fault.BadRequest, "`rev_limit` must be positive")
	}
	return m.alterDatabase(ctx, db, &metapb.AlterDatabase{RevsLimit: new(int64(limit))})
}

// SetPurgedInfosLimit sets how many purges are remembered. limit is at least 1.
// db is as for SetSecurity.
func (m *Meta) SetPurgedInfosLimit(ctx context.Context, db *Database, limit int) error {
	if limit < 1 {
		return fault.New(fault.BadRequest, "`purge_infos_limit` must be positive")
	}
	return m.alterDatabase(ctx, db, &metapb.AlterDatabase{PurgedInfosLimit: new(int64(limit))})
}

func (m *Meta) alterDatabase(ctx context.Context, db *Database, c *metapb.AlterDatabase) error {
	if err := m.mustExist(ctx, db.Name); err != nil {
		return err
	}
	c.Name = db.Name
	if db.ID != ([16]byte{}) {
		c.Id = db.ID[:]
	}
	_, err := m.propose(ctx, &metapb.Command{Op: &metapb.Command_AlterDatabase{AlterDatabase: c}})
	return err
}

// mustExist spares the log a command that would find nothing.
func (m *Meta) mustExist(ctx context.Context, name string) error {
	_, err := m.Require(ctx, name)
	return err
}

// Require returns a database, catching up with the group before it says
// fault.NotFound.
func (m *Meta) Require(ctx context.Context, name string) (*Database, error) {
	if db, ok := m.Database(name); ok {
		return db, nil
	}
	if err := m.CatchUp(ctx); err != nil {
		return nil, err
	}
	if db, ok := m.Database(name); ok {
		return db, nil
	}
	return nil, errNoDatabase()
}

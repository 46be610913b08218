package local

import (
	"context"

	"divan/cluster"
	"divan/cluster/access"
	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
)

// Options configures an Opener. All are required.
type Options struct {
	Coordinator *cluster.Coordinator
	Access      Access
}

// Access tells what accounts may do, by the rules that hold for requests.
type Access interface {
	// Rights returns what an account may do with a database as it is now.
	Rights(db *cluster.DB, u shard.User) Rights
	// Create reads the parameters of a new database. The error refuses them, or
	// an account that may make none.
	Create(u shard.User, name string, query [][2]string) (cluster.CreateOptions, error)
	// Filter reads a filter of changes. The error is the answer to a request with that filter.
	Filter(ctx context.Context, db *cluster.DB, u shard.User, f endpoint.Filter) (shard.Filter, error)
}

// Rights tells what an account may do with one database.
type Rights interface {
	// May refuses a request that the account may not make.
	May(need access.Need) error
	// Edit refuses an edit that cannot be, or that the account may not make, and
	// makes it what is to be written.
	Edit(ctx context.Context, e *shard.Edit) error
	// Written is told of every document that may have been written.
	Written(id string)
	// Read refuses documents that the account may not know about.
	Read(id string) error
	// Screen leaves of a document what the account may see.
	Screen(d *shard.Doc) error
}

// Opener opens databases. It is safe for concurrent use.
type Opener struct{ o Options }

// New returns an opener.
func New(o Options) *Opener { return &Opener{o: o} }

// Account tells on whose account a database is used. It is asked before each
// operation: a user who is removed, or has another password, ends it.
type Account func(ctx context.Context) (shard.User, error)

// Of returns the account of a user who stays the same.
func Of(u shard.User) Account {
	return func(context.Context) (shard.User, error) { return u, nil }
}

// Open returns a database on an account, whether it exists or not: Info tells.
func (o *Opener) Open(name string, account Account) *Database {
	return &Database{Options: &o.o, name: name, account: account}
}

// Database is a database of this cluster. It implements endpoint.Source and
// endpoint.Target, and is safe for concurrent use.
type Database struct {
	*Options
	name    string
	account Account
}

// userRights are the rights of a user.
type userRights struct {
	Rights
	user shard.User
}

// open returns the database when the account may make a request of it.
func (d *Database) open(ctx context.Context, need access.Need) (*cluster.DB, userRights, error) {
	u, err := d.account(ctx)
	if err != nil {
		return nil, userRights{}, err
	}
	db, err := d.Coordinator.DB(ctx, d.name)
	if err != nil {
		return nil, userRights{}, err
	}
	rights := userRights{d.Access.Rights(db, u), u}
	return db, rights, rights.May(need)
}

// Info implements endpoint.Database.
func (d *Database) Info(ctx context.Context) (endpoint.Info, error) {
	db, _, err := d.open(ctx, access.Documents)
	if err != nil {
		return endpoint.Info{}, err
	}
	in, err := db.Info(ctx)
	if err != nil {
		return endpoint.Info{}, err
	}
	return endpoint.Info{
		Name: in.Name, InstanceStart: in.InstanceStart, UpdateSeq: seqOf(in.UpdateSeq), Documents: in.DocCount + in.DocDelCount,
	}, nil
}

// seqOf is a sequence as a client is shown it: a JSON string.
func seqOf(text string) endpoint.Seq { return endpoint.Seq(`"` + text + `"`) }

// Local implements endpoint.Database.
func (d *Database) Local(ctx context.Context, id string) (body []byte, rev string, err error) {
	db, _, err := d.open(ctx, access.Contents)
	if err != nil {
		return nil, "", err
	}
	l, err := db.LocalGet(ctx, doc.LocalPrefix+id)
	if err != nil {
		return nil, "", err
	}
	return l.Body, l.DocRev().String(), nil
}

// PutLocal implements endpoint.Database. It does not notice the write of another client, as over
// HTTP: local documents are replaced at any revision.
func (d *Database) PutLocal(ctx context.Context, id, rev string, body []byte) (newRev string, err error) {
	db, rights, err := d.open(ctx, access.Contents)
	if err != nil {
		return "", err
	}
	edit := shard.Edit{ID: doc.LocalPrefix + id, Body: body}
	if err := rights.Edit(ctx, &edit); err != nil {
		return "", err
	}
	if rev != "" {
		if edit.Parent, err = doc.ParseRev(rev); err != nil {
			return "", err
		}
	}
	written, err := db.LocalPut(ctx, edit.ID, edit.Parent, edit.Body)
	if err != nil {
		return "", err
	}
	return written.String(), nil
}

// Commit implements endpoint.Database.
func (d *Database) Commit(ctx context.Context) (instanceStart string, err error) {
	db, _, err := d.open(ctx, access.Documents)
	if err != nil {
		return "", err
	}
	return db.EnsureFullCommit(ctx)
}

// Close implements endpoint.Database: there is nothing to give back.
func (d *Database) Close() error { return nil }

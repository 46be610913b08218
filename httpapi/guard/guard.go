// Package guard decides what an account may do with a database and its documents, both by
// a request and through a replication that runs on this node and stands for requests.
package guard

import (
	"divan/cluster/access"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi/auth"
	"divan/replicator/spec"
	"divan/shard"
	"divan/shard/script"
	"divan/storage/fault"
)

// The refusals of api.md section 3; clients and test suites compare them.
const (
	textServerAdmin  = "You are not a server admin."
	textServerOrDB   = "You are not a server or db admin."
	textDBOrServer   = "You are not a db or server admin."
	textMemberNobody = "You are not authorized to access this db."
	textMemberUser   = "You are not allowed to access this db."
)

// Guard holds the parts that the rules need. It is safe for concurrent use.
type Guard struct {
	Auth     *auth.Authenticator
	Scripts  *script.Engine // what checks functions when a design document is saved
	Security access.Cache
}

// Rights decides what an account may do with a database, by the metadata and the
// configuration of one moment.
type Rights struct {
	Guard  *Guard
	Config *config.Snapshot
	User   shard.User
	DB     *meta.Database
	Peer   string // address of the client, where passwords may be written; empty: there is none
}

// ServerAdminOnly reports whether only server administrators may make a request on the
// database of that name: then no other client learns whether it exists.
func ServerAdminOnly(db string, need access.Need) bool {
	return need == access.ServerAdmin || IsSystemDatabase(db) && (need == access.AllDocs || need == access.Changes)
}

// IsSystemDatabase reports whether a name that begins with "_" is that of a database.
func IsSystemDatabase(name string) bool { return name == "_users" || name == "_replicator" }

// May refuses a request on the database that the account may not make.
func (r Rights) May(need access.Need) error {
	if ServerAdminOnly(r.DB.Name, need) {
		return RequireAdmin(r.User)
	}
	if err := r.member(); err != nil || r.User.Admin() {
		return err
	}
	switch {
	case need == access.Documents:
		return nil
	case auth.IsUsersDatabase(r.Config, r.DB.Name):
		return RequireAdmin(r.User) // it would show more than single documents
	case spec.IsDatabase(r.DB.Name) && need != access.AllDocs && !r.IsAdmin():
		return RequireAdmin(r.User)
	case need == access.DBAdmin && !r.IsAdmin():
		return fault.New(fault.Unauthorized, textServerOrDB)
	case need == access.Settings && !r.IsAdmin():
		return fault.New(fault.Unauthorized, textDBOrServer)
	case need == access.DBAdmin, need == access.Settings, need == access.Contents, need == access.AllDocs, need == access.Changes:
		return nil
	default: // that of another kind of request
		return RequireAdmin(r.User)
	}
}

// RequireAdmin refuses every client but server administrators: with 401 even those who are
// logged in.
func RequireAdmin(u shard.User) error {
	if u.Admin() {
		return nil
	}
	return fault.New(fault.Unauthorized, textServerAdmin)
}

// member refuses those who may not read the database.
func (r Rights) member() error {
	if r.User.Admin() || r.Guard.Security.Of(r.DB).Member(r.User) {
		return nil
	}
	if r.User.Anonymous {
		return fault.New(fault.Unauthorized, textMemberNobody)
	}
	return fault.New(fault.Forbidden, textMemberUser)
}

// IsAdmin reports whether the account administers the database.
func (r Rights) IsAdmin() bool { return r.User.Admin() || r.Guard.Security.Of(r.DB).Admin(r.User) }

// WriteDesign refuses accounts that may not write design documents: it asks an anonymous
// client to log in, and forbids it to any other.
func (r Rights) WriteDesign() error {
	switch {
	case r.IsAdmin():
		return nil
	case r.User.Anonymous:
		return fault.New(fault.Unauthorized, textDBOrServer)
	default:
		return fault.New(fault.Forbidden, textDBOrServer)
	}
}

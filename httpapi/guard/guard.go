// Package guard decides what an account may do with a database and its
// documents, whatever way the wish comes: as a request, or from a replication
// that runs on this node and stands for requests.
package guard

import (
	"net/http"

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

// Guard is what the rules stand on. It is safe for concurrent use.
type Guard struct {
	Auth     *auth.Authenticator
	Scripts  *script.Engine // what checks functions when a design document is saved
	Security access.Cache
}

// Rights are what an account may do with a database, as the metadata and the
// configuration are at one moment.
type Rights struct {
	Guard  *Guard
	Config *config.Snapshot
	User   shard.User
	DB     *meta.Database
	Peer   string // address of the client, where passwords may be written; empty: there is none
}

// Need is who may make a request.
type Need uint8

// Who may make a request on a database.
const (
	Reader      Need = iota // whoever may read it
	DBAdmin                 // its administrators
	ServerAdmin             // server administrators only: nobody else learns whether it exists
)

// NeedOf tells who may make a request on a database, by the method, with HEAD as
// GET, and the decoded path below the database alone (api.md section 3). What
// depends on the document, its author or a validation function is decided where
// the document is known.
func NeedOf(db, method string, below []string) Need {
	if len(below) == 0 {
		if method == http.MethodPut || method == http.MethodDelete {
			return ServerAdmin
		}
		return Reader
	}
	if db == "_users" || db == "_replicator" {
		if below[0] == "_all_docs" || below[0] == "_changes" {
			return ServerAdmin
		}
		return Reader
	}
	switch {
	case below[0] == "_compact", below[0] == "_view_cleanup" && len(below) == 1:
		return DBAdmin
	case len(below) == 1 && (below[0] == "_sync_shards" || below[0] == "_purge" || below[0] == "_purged_infos_limit"):
		return ServerAdmin
	}
	return Reader
}

// Request refuses a request that the account may not make.
func (r Rights) Request(method string, below ...string) error {
	need := NeedOf(r.DB.Name, method, below)
	if need == ServerAdmin {
		return RequireAdmin(r.User)
	}
	if err := r.member(); err != nil {
		return err
	}
	switch {
	case need == DBAdmin && !r.IsAdmin():
		return fault.New(fault.Unauthorized, textServerOrDB)
	case need == DBAdmin || r.User.Admin():
		return nil
	case auth.IsUsersDatabase(r.Config, r.DB.Name) && !auth.UsersOpenTo(method, below),
		spec.IsDatabase(r.DB.Name) && !r.IsAdmin() && !auth.ReplicationsOpenTo(method, below):
		return RequireAdmin(r.User) // it would show more than single documents
	}
	return nil
}

// RequireAdmin refuses everybody but server administrators: with 401 even those
// who are logged in.
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

// ChangeSettings refuses those who may not change settings of the database.
func (r Rights) ChangeSettings() error {
	if r.IsAdmin() {
		return nil
	}
	return fault.New(fault.Unauthorized, textDBOrServer)
}

// WriteDesign refuses those who may not write design documents: it asks nobody
// in particular to log in, and tells everybody else no.
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

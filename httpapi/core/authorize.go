package core

import (
	"net/http"
	"slices"

	"divan/cluster/config"
	"divan/httpapi/auth"
	"divan/httpapi/guard"
	"divan/shard"
	"divan/storage/fault"
)

// The refusals of api.md section 3; clients and test suites compare them.
const (
	textMetrics        = "You are not a server admin or read-only metrics user"
	textNeedsUser      = "You are not an authenticated user"
	textAuthenticate   = "Authentication required."
	metricsRole        = "_metrics"
	usersDatabase      = "_users"
	replicatorDatabase = "_replicator"
)

// requireUser refuses a caller without a name when the server demands one for
// everything. Trying to log in is always allowed.
func requireUser(t *Target, u *shard.User, set *config.Chttpd) error {
	if !u.Anonymous {
		return nil
	}
	needed := set.RequireValidUser || set.ExceptUp
	if len(t.Path) == 1 {
		switch t.Path[0] {
		case "_session":
			needed = needed && t.Method != http.MethodPost
		case "_up":
			needed = set.RequireValidUser && !set.ExceptUp
		}
	}
	if len(t.Path) > 0 && t.Path[0] == "_utils" && t.Method == http.MethodGet {
		needed = false // the console and its log-in are the same for everybody
	}
	if needed {
		return fault.New(fault.Unauthorized, textAuthenticate)
	}
	return nil
}

// authorize decides whether the user may make this call, by the path and the
// method alone (api.md section 3). What depends on the document, its author or
// a validation function is decided where the document is known. For calls on a
// database the database is open afterwards, except for those that create one.
func (c *Call) authorize() error {
	p := c.Path
	if len(p) == 0 || p[0] == "favicon.ico" {
		return nil
	}
	if p[0][0] == '_' {
		switch p[0] {
		case "_all_dbs", "_dbs_info":
			if !c.Config.Chttpd.AdminOnlyAllDBs {
				return nil
			}
			return guard.RequireAdmin(c.User)
		case usersDatabase, replicatorDatabase:
			return c.authorizeDatabase()
		default:
			return authorizeServer(&c.Target, &c.User)
		}
	}
	return c.authorizeDatabase()
}

// authorizeServer is for paths that start with an underscore, known or not:
// a stranger is not told which exist.
func authorizeServer(t *Target, u *shard.User) error {
	p := t.Path
	switch {
	case len(p) == 1 && (p[0] == "_up" || p[0] == "_uuids" || p[0] == "_session"):
		return nil
	case p[0] == "_utils" && t.Method == http.MethodGet:
		return nil
	case len(p) == 1 && p[0] == "_replicate", len(p) == 3 && p[0] == "_node" && p[2] == "_replicate":
		if u.Anonymous {
			return fault.New(fault.Unauthorized, textNeedsUser)
		}
		return nil
	case len(p) > 2 && p[0] == "_node" && (p[2] == "_stats" || p[2] == "_system" || p[2] == "_prometheus"):
		if u.Admin() || slices.Contains(u.Roles, metricsRole) {
			return nil
		}
		return fault.New(fault.Unauthorized, textMetrics)
	default:
		return guard.RequireAdmin(*u)
	}
}

// authorizeDatabase is for everything below a database.
func (c *Call) authorizeDatabase() error {
	if guard.NeedOf(c.Path[0], c.Method, c.Path[1:]) == guard.ServerAdmin {
		return guard.RequireAdmin(c.User)
	}
	if c.DB == nil {
		if err := c.OpenDatabase(); err != nil {
			return err
		}
	}
	return c.Rights().Request(c.Method, c.Path[1:]...)
}

// Rights returns what the user may do with the database of the call.
func (c *Call) Rights() guard.Rights {
	r := guard.Rights{Guard: c.API.Guard, Config: c.Config, User: c.User, DB: c.DB.Meta()}
	if auth.IsUsersDatabase(r.Config, r.DB.Name) {
		r.Peer = c.API.Deps.Auth.Peer(c.Request)
	}
	return r
}

package core

import (
	"slices"

	"divan/cluster/access"
	"divan/cluster/config"
	"divan/httpapi/auth"
	"divan/httpapi/guard"
	"divan/shard"
	"divan/storage/fault"
)

// The refusals of api.md section 3; clients and test suites compare them.
const (
	textMetrics      = "You are not a server admin or read-only metrics user"
	textNeedsUser    = "You are not an authenticated user"
	textAuthenticate = "Authentication required."
	metricsRole      = "_metrics"
)

// requireUser refuses a caller without a name when the server demands one for
// everything. Trying to log in is always allowed.
func requireUser(need access.Need, u *shard.User, set *config.Chttpd) error {
	needed := set.RequireValidUser || set.ExceptUp
	switch need { //nolint:exhaustive // the others are not excepted
	case access.LogIn:
		needed = false
	case access.Health:
		needed = set.RequireValidUser && !set.ExceptUp
	}
	if needed && u.Anonymous {
		return fault.New(fault.Unauthorized, textAuthenticate)
	}
	return nil
}

// need returns who may make this call. A path of no route needs what the most careful one of its place
// does: a stranger is not told what exists.
func (c *Call) need() access.Need {
	switch {
	case c.DBName == "" && c.route != nil:
		return c.route.needOf(c.Method)
	case c.DBName == "" || c.DBName[0] == '_' && !guard.IsSystemDatabase(c.DBName):
		return access.ServerAdmin
	case c.route == nil || c.route.Table == DocTable && c.oddDocument():
		return access.Contents
	default:
		return c.route.needOf(c.Method)
	}
}

// oddDocument reports whether the path of a document names one that begins with "_" in one segment, as
// "_local%2Fx": that is no ordinary document, though it matches the pattern of those.
func (t *Target) oddDocument() bool { return t.Path[1][0] == '_' && t.Path[1] != "_design" }

// authorize decides whether the user may make this call, by its route and the
// method alone (api.md section 3). What depends on the document, its author or
// a validation function is decided where the document is known. For calls on a
// database the database is open afterwards, except for those that create one.
func (c *Call) authorize() error {
	need := c.need()
	if c.DBName == "" {
		return authorizeServer(need, c.User, &c.Config.Chttpd)
	}
	if guard.ServerAdminOnly(c.DBName, need) {
		return guard.RequireAdmin(c.User)
	}
	if c.DB == nil {
		if err := c.OpenDatabase(); err != nil {
			return err
		}
	}
	return c.Rights().May(need)
}

// authorizeServer is authorize for what belongs to no database.
func authorizeServer(need access.Need, u shard.User, set *config.Chttpd) error {
	switch need { //nolint:exhaustive // all others are for server administrators
	case access.Anyone, access.LogIn, access.Health:
		return nil
	case access.DatabaseNames:
		if !set.AdminOnlyAllDBs {
			return nil
		}
	case access.Account:
		if u.Anonymous {
			return fault.New(fault.Unauthorized, textNeedsUser)
		}
		return nil
	case access.Metrics:
		if u.Admin() || slices.Contains(u.Roles, metricsRole) {
			return nil
		}
		return fault.New(fault.Unauthorized, textMetrics)
	}
	return guard.RequireAdmin(u)
}

// Rights returns what the user may do with the database of the call.
func (c *Call) Rights() guard.Rights {
	r := guard.Rights{Guard: c.API.Guard, Config: c.Config, User: c.User, DB: c.DB.Meta()}
	if auth.IsUsersDatabase(r.Config, r.DB.Name) {
		r.Peer = c.API.Deps.Auth.Peer(c.Request)
	}
	return r
}

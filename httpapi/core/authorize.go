package core

import (
	"net/http"
	"slices"
	"sync"

	"divan/cluster/meta"
	"divan/httpapi/auth"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// The refusals of api.md section 3; clients and test suites compare them.
const (
	textServerAdmin    = "You are not a server admin."
	textMetrics        = "You are not a server admin or read-only metrics user"
	textServerOrDB     = "You are not a server or db admin."
	TextDBOrServer     = "You are not a db or server admin."
	textMemberNobody   = "You are not authorized to access this db."
	textMemberUser     = "You are not allowed to access this db."
	textNeedsUser      = "You are not an authenticated user"
	textAuthenticate   = "Authentication required."
	metricsRole        = "_metrics"
	usersDatabase      = "_users"
	replicatorDatabase = "_replicator"
)

// requireUser refuses a caller without a name when the server demands one for
// everything. Trying to log in is always allowed.
func (c *Call) requireUser() error {
	if !c.User.Anonymous {
		return nil
	}
	set := &c.Config.Chttpd
	needed := set.RequireValidUser || set.ExceptUp
	if len(c.Path) == 1 {
		switch c.Path[0] {
		case "_session":
			needed = needed && c.Method != http.MethodPost
		case "_up":
			needed = set.RequireValidUser && !set.ExceptUp
		}
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
			return c.requireAdmin()
		case usersDatabase, replicatorDatabase:
			return c.authorizeSystem()
		default:
			return c.authorizeServer()
		}
	}
	return c.authorizeDatabase()
}

// authorizeServer is for paths that start with an underscore, known or not:
// a stranger is not told which exist.
func (c *Call) authorizeServer() error {
	p := c.Path
	switch {
	case len(p) == 1 && (p[0] == "_up" || p[0] == "_uuids" || p[0] == "_session"):
		return nil
	case p[0] == "_utils" && c.Method == http.MethodGet:
		return nil
	case len(p) == 1 && p[0] == "_replicate":
		if c.User.Anonymous {
			return fault.New(fault.Unauthorized, textNeedsUser)
		}
		return nil
	case len(p) > 2 && p[0] == "_node" && (p[2] == "_stats" || p[2] == "_system" || p[2] == "_prometheus"):
		if c.User.Admin() || slices.Contains(c.User.Roles, metricsRole) {
			return nil
		}
		return fault.New(fault.Unauthorized, textMetrics)
	default:
		return c.requireAdmin()
	}
}

// authorizeSystem is for _users and _replicator.
func (c *Call) authorizeSystem() error {
	p := c.Path
	switch {
	case len(p) == 1 && (c.Method == http.MethodPut || c.Method == http.MethodDelete),
		len(p) > 1 && (p[1] == "_all_docs" || p[1] == "_changes"):
		return c.requireAdmin()
	}
	return c.requireReader()
}

// authorizeDatabase is for everything below an ordinary database.
func (c *Call) authorizeDatabase() error {
	p := c.Path
	if len(p) == 1 {
		if c.Method == http.MethodPut || c.Method == http.MethodDelete {
			return c.requireAdmin()
		}
		return c.requireReader()
	}
	switch {
	case p[1] == "_compact", p[1] == "_view_cleanup" && len(p) == 2:
		if err := c.requireMember(); err != nil {
			return err
		}
		if !c.IsDBAdmin() {
			return fault.New(fault.Unauthorized, textServerOrDB)
		}
		return nil
	case len(p) == 2 && (p[1] == "_sync_shards" || p[1] == "_purge" || p[1] == "_purged_infos_limit"):
		return c.requireAdmin()
	}
	return c.requireReader()
}

// requireReader refuses those who may not read the database, and on the one
// with the user documents whatever would show more than single documents.
func (c *Call) requireReader() error {
	if err := c.requireMember(); err != nil || c.User.Admin() {
		return err
	}
	if auth.IsUsersDatabase(c.Config, c.Path[0]) && !auth.UsersOpenTo(c.Method, c.Path[1:]) {
		return c.requireAdmin()
	}
	return nil
}

// requireAdmin refuses everybody but server administrators: with 401 even
// those who are logged in.
func (c *Call) requireAdmin() error {
	if c.User.Admin() {
		return nil
	}
	return fault.New(fault.Unauthorized, textServerAdmin)
}

// requireMember opens the database and refuses those who may not read it.
func (c *Call) requireMember() error {
	if c.DB == nil {
		if err := c.OpenDatabase(); err != nil {
			return err
		}
	}
	if c.User.Admin() || c.security().member(c.User) {
		return nil
	}
	if c.User.Anonymous {
		return fault.New(fault.Unauthorized, textMemberNobody)
	}
	return fault.New(fault.Forbidden, textMemberUser)
}

// IsDBAdmin reports whether the user administers the database of the call.
func (c *Call) IsDBAdmin() bool { return c.User.Admin() || c.security().admin(c.User) }

// RequireDBAdmin refuses those who may not change settings of the database.
func (c *Call) RequireDBAdmin() error {
	if c.IsDBAdmin() {
		return nil
	}
	return fault.New(fault.Unauthorized, TextDBOrServer)
}

// security returns the parsed security object of the database of the call.
func (c *Call) security() *security { return c.API.access.get(c.DB.Meta()) }

// group is one half of a security object.
type group struct{ names, roles []string }

func (g *group) empty() bool { return len(g.names) == 0 && len(g.roles) == 0 }

func (g *group) has(u shard.User) bool {
	if !u.Anonymous && slices.Contains(g.names, u.Name) {
		return true
	}
	for _, role := range u.Roles {
		if slices.Contains(g.roles, role) {
			return true
		}
	}
	return false
}

// security is a parsed security object. Server administrators are not its
// business: they may do everything.
type security struct{ admins, members group }

func (s *security) admin(u shard.User) bool { return s.admins.has(u) }

// member reports whether the user may read and write: the database is public
// when nobody is named as a member.
func (s *security) member(u shard.User) bool {
	return s.members.empty() || s.members.has(u) || s.admins.has(u)
}

// parseSecurity reads a security object as stored; members of the wrong type,
// which cannot be stored, name nobody. "readers" is the old name of "members".
func parseSecurity(object []byte) *security {
	s := &security{}
	var readers group
	named := false
	// What is stored is well-formed; members that cannot be read name nobody.
	_ = doc.EachMember(object, func(name string, value []byte) error {
		switch name {
		case "admins":
			s.admins = parseGroup(value)
		case "members":
			s.members, named = parseGroup(value), true
		case "readers":
			readers = parseGroup(value)
		}
		return nil
	})
	if !named {
		s.members = readers
	}
	return s
}

func parseGroup(object []byte) group {
	var g group
	_ = doc.EachMember(object, func(name string, value []byte) error {
		list := []string{}
		_ = doc.EachElement(value, func(item []byte) error {
			if text, ok := doc.Unquote(item); ok {
				list = append(list, text)
			}
			return nil
		})
		switch name {
		case "names":
			g.names = list
		case "roles":
			g.roles = list
		}
		return nil
	})
	return g
}

// securityCache keeps parsed security objects by the metadata they came from,
// which is immutable: a changed object comes with another *meta.Database.
type securityCache struct {
	mu struct {
		sync.RWMutex
		byName map[string]parsedSecurity
	}
}

type parsedSecurity struct {
	of *meta.Database
	*security
}

// maxSecurities bounds the cache; one entry costs a few hundred bytes.
const maxSecurities = 4096

func (s *securityCache) get(db *meta.Database) *security {
	s.mu.RLock()
	p := s.mu.byName[db.Name]
	s.mu.RUnlock()
	if p.of == db {
		return p.security
	}
	p = parsedSecurity{of: db, security: parseSecurity(db.Security)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.byName == nil || len(s.mu.byName) >= maxSecurities {
		s.mu.byName = make(map[string]parsedSecurity)
	}
	s.mu.byName[db.Name] = p
	return p.security
}

// createsDatabase reports whether the call is PUT /{db}: the only one below a
// database that does not need one.
func (c *Call) createsDatabase() bool { return len(c.Path) == 1 && c.Method == http.MethodPut }

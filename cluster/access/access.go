// Package access reads security objects: who administers a database and who may
// read it (semantics.md section 6).
package access

import (
	"slices"
	"sync"

	"divan/cluster/meta"
	"divan/shard"
	"divan/storage/doc"
)

// Security is a parsed security object. Server administrators are not its
// business: they may do everything.
type Security struct{ admins, members group }

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

// Admin reports whether the object names the user as an administrator.
func (s *Security) Admin(u shard.User) bool { return s.admins.has(u) }

// Member reports whether the user may read and write: the database is public when it names no
// members.
func (s *Security) Member(u shard.User) bool {
	return s.members.empty() || s.members.has(u) || s.admins.has(u)
}

// Parse reads a security object as stored; members of the wrong type, which cannot be stored, name
// no user. "readers" is the old name of "members".
func Parse(object []byte) *Security {
	s := &Security{}
	var readers group
	named := false
	// What is stored is well-formed; members that cannot be read name no user.
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

// Cache keeps parsed security objects by the metadata they came from, which is
// immutable: a changed object comes with another *meta.Database. It is safe for
// concurrent use.
type Cache struct {
	mu struct {
		sync.RWMutex
		byName map[string]parsed
	}
}

type parsed struct {
	of *meta.Database
	*Security
}

// maxParsed bounds the cache; one entry costs a few hundred bytes.
const maxParsed = 4096

// Of returns the security object of a database.
func (c *Cache) Of(db *meta.Database) *Security {
	c.mu.RLock()
	p := c.mu.byName[db.Name]
	c.mu.RUnlock()
	if p.of == db {
		return p.Security
	}
	p = parsed{of: db, Security: Parse(db.Security)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.byName == nil || len(c.mu.byName) >= maxParsed {
		c.mu.byName = make(map[string]parsed)
	}
	c.mu.byName[db.Name] = p
	return p.Security
}

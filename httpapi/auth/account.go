package auth

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"divan/shard"
	"divan/storage/doc"
)

// account holds the data about one name that authentication needs. All but upgrading is
// immutable once made.
type account struct {
	name       string
	roles      []string
	hash       passwordHash
	salt       string // what the session cookie is bound to, besides the secret
	totp       *totp  // nil: no second factor
	rev        doc.Rev
	inDB       bool // there is a user document
	conflicted bool // its conflicts must be resolved before it counts
	upgrading  atomic.Bool
}

func (a *account) user() shard.User { return shard.User{Name: a.name, Roles: a.roles} }

// accountSize is the largest account that is cached, in bytes (I6).
const accountSize = 8 << 10

// size is about what a keeps in memory.
func (a *account) size() int {
	n := len(a.name) + len(a.salt) + len(a.hash.salt) + len(a.hash.key)
	for _, role := range a.roles {
		n += len(role) + 16
	}
	if a.totp != nil {
		n += len(a.totp.key)
	}
	return n
}

// parseAccount reads a user document. Members of the wrong type count as missing: no login
// succeeds with half a hash.
func parseAccount(u UserDoc) (*account, error) {
	a := &account{name: u.Name, rev: u.Rev, inDB: true, conflicted: u.Conflicted, roles: []string{}}
	h := hashMembers{scheme: nameSimple, prf: "sha", iterations: legacyIterations}
	err := doc.EachMember(u.Body, func(name string, value []byte) error {
		switch name {
		case "roles":
			a.roles = userRoles(value)
		case "totp":
			t := parseTOTP(value)
			a.totp = &t
		default:
			h.set(name, value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.hash, a.salt = h.hash(), h.salt
	return a, nil
}

// legacyIterations count for a pbkdf2 document without the member iterations.
const legacyIterations = 10000

// userRoles reads the member roles of a user document. Reserved roles in it
// are not believed (I5).
func userRoles(value []byte) []string {
	roles := []string{}
	if len(value) == 0 || value[0] != '[' {
		return roles
	}
	err := doc.EachElement(value, func(v []byte) error {
		if role, ok := doc.Unquote(v); ok && !reservedRole(role) {
			roles = append(roles, role)
		}
		return nil
	})
	if err != nil {
		return []string{}
	}
	return roles
}

// metricsRole is the one reserved role that a user document may grant.
const metricsRole = "_metrics"

func reservedRole(role string) bool {
	return strings.HasPrefix(role, "_") && role != metricsRole
}

// hashMembers collects the members of a user document that make up the stored
// password.
type hashMembers struct {
	scheme, prf, salt, sha, key string
	iterations                  int
}

func (h *hashMembers) set(name string, value []byte) {
	switch name {
	case "iterations":
		n, err := strconv.Atoi(string(value))
		if err != nil {
			n = 0
		}
		h.iterations = n
	case "password_scheme":
		h.scheme, _ = doc.Unquote(value)
	case "pbkdf2_prf":
		h.prf, _ = doc.Unquote(value)
	case "salt":
		h.salt, _ = doc.Unquote(value)
	case "password_sha":
		h.sha, _ = doc.Unquote(value)
	case "derived_key":
		h.key, _ = doc.Unquote(value)
	}
}

// hash is the stored password, with schemeNone when it is not whole.
func (h *hashMembers) hash() passwordHash {
	out := passwordHash{salt: h.salt}
	switch {
	case h.scheme == nameSimple && h.sha != "" && h.salt != "":
		out.scheme, out.key = schemeSimple, h.sha
	case h.key == "" || h.iterations < 1 || prfOf(h.prf) == nil:
	case h.scheme == namePBKDF2:
		out.scheme = schemePBKDF2
	case h.scheme == nameSimplePBKDF2:
		out.scheme = schemeSimplePBKDF2
	}
	if out.scheme == schemePBKDF2 || out.scheme == schemeSimplePBKDF2 {
		out.prf, out.iterations, out.key = h.prf, h.iterations, h.key
	}
	return out.sealed()
}

// admin returns the account of a server administrator: the password of the
// configuration, and the roles of the user document of the same name, if there
// is one, beside the role of administrators (semantics.md section 10).
func (s *settings) admin(name string, h passwordHash, userDoc *account) *account {
	a := &account{name: name, hash: h, salt: h.salt, roles: []string{shard.AdminRole}}
	if userDoc != nil {
		for _, role := range userDoc.roles {
			if !slices.Contains(a.roles, role) {
				a.roles = append(a.roles, role)
			}
		}
	}
	return a
}

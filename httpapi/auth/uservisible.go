package auth

import (
	"slices"
	"strings"

	"divan/cluster/config"
	"divan/shard"
	"divan/storage/doc"
)

// UserRead is a request for one document of the authentication database.
type UserRead struct {
	ID     string
	User   shard.User
	Admin  bool     // User is admin of the server or of the database
	Public []string // [chttpd_auth] public_fields
}

// MayRead refuses what is refused without looking at the document: a design
// document is for administrators.
func (r UserRead) MayRead() error {
	if !r.Admin && strings.HasPrefix(r.ID, "_design/") {
		return forbidden("Only administrators can view design docs in the users database.")
	}
	return nil
}

// Whole reports whether the reader sees the whole document, attachments
// included: administrators and its owner do.
func (r UserRead) Whole() bool {
	if r.Admin {
		return true
	}
	name, ok := UserName(r.ID)
	return ok && owns(r.User, name)
}

// Visible returns what the reader sees of a stored body: all of it, or for
// strangers the public members; fault.NotFound "missing" when nothing is left,
// so that it looks like a document that does not exist.
func (r UserRead) Visible(body []byte) ([]byte, error) {
	if err := r.MayRead(); err != nil {
		return nil, err
	}
	if r.Whole() {
		return body, nil
	}
	out := append(make([]byte, 0, 128), '{')
	err := doc.EachMember(body, func(name string, value []byte) error {
		if !slices.Contains(r.Public, name) {
			return nil
		}
		out = appendMember(out, name, value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 1 {
		return nil, errMissing()
	}
	return closeObject(out), nil
}

// IsUsersDatabase reports whether the rules of this package hold for the database of that
// name: the configured authentication database, and _users even when another one is
// configured, because it may still hold hashes. A database behind a prefix (api.md 8.1)
// keeps them too: it authenticates no account, but it may be the copy of a database that
// did. All of the rules hold there, those about listings included, which is more than
// CouchDB asks: a document that only its owner may read must not be in a list that any
// account may read.
func IsUsersDatabase(c *config.Snapshot, name string) bool {
	return name == "_users" || strings.HasSuffix(name, "/_users") || name == c.ChttpdAuth.AuthenticationDB
}

package auth

import (
	"context"
	_ "embed" // the rules
	"strings"

	"divan/cluster/config"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// UserPrefix begins the ids of user documents.
const UserPrefix = "org.couchdb.user:"

// UserName returns the name in the id of a user document; ok is false for the
// id of another document.
func UserName(id string) (name string, ok bool) { return strings.CutPrefix(id, UserPrefix) }

// userDocument holds the members of a user document that become a stored password: raw
// JSON values, nil when missing.
type userDocument struct{ salt, iterations, password, keepSalt []byte }

func parseUser(body []byte) (userDocument, error) {
	var d userDocument
	err := doc.EachMember(body, func(name string, value []byte) error {
		switch name {
		case "salt":
			d.salt = value
		case "iterations":
			d.iterations = value
		case "password":
			d.password = value
		case "preserve_salt":
			d.keepSalt = value
		}
		return nil
	})
	return d, err
}

func forbidden(reason string) error { return fault.New(fault.Forbidden, reason) }

// owns reports whether the document of that name is the user's own.
func owns(u shard.User, name string) bool { return !u.Anonymous && name != "" && u.Name == name }

// userRules is the validation function of the authentication database (semantics.md
// section 10; the texts are part of the protocol).
//
//go:embed userrules.js
var userRules string

// UserDesign returns the design document that decides which edits of the
// authentication database may be made. An administrator may change it; hashing and
// hiding do not depend on it.
func UserDesign() *shard.Doc {
	body := append([]byte(`{"language":"javascript","validate_doc_update":`), doc.AppendString(nil, strings.TrimSpace(userRules))...)
	return &shard.Doc{ID: doc.DesignPrefix + "_auth", Body: append(body, '}')}
}

// Standard returns the design document that a database has as long as there is none with
// its id: an authentication database is never written to without rules. nil: none.
func Standard(h *config.Holder) func(db string) *shard.Doc {
	design := UserDesign()
	return func(db string) *shard.Doc {
		if !IsUsersDatabase(h.Load(), db) {
			return nil
		}
		return design
	}
}

// Rules returns the rules that a database has without a design document: those of
// replications; nil for any other.
func Rules(db string) shard.Validate {
	if !spec.IsDatabase(db) {
		return nil
	}
	return func(_ context.Context, r shard.ValidateRequest) error { return ValidateReplication(r) }
}

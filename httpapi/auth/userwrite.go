package auth

import (
	"context"
	"strconv"
	"strings"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// UserWrite is one edit of the authentication database before it is made.
type UserWrite struct {
	ID      string
	Deleted bool
	Body    []byte // canonical JSON object without underscore members
	User    shard.User
	Peer    string // whose turn it takes, see Authenticator.Peer; empty: the server's own
	Admin   bool   // User is admin of the server or of the database
	// Replicated: the client says which revision it is, and which are before it.
	Replicated bool
}

// PrepareUser returns the body to store for an edit of the authentication
// database: a password is replaced by its hash; a body without one, or with
// null, stays as it is. It must be called before each such edit.
//
// fault.NotFound "missing": the document is another user's. fault.Forbidden,
// fault.BadRequest: the password is refused.
func (a *Authenticator) PrepareUser(ctx context.Context, w UserWrite) ([]byte, error) {
	if strings.HasPrefix(w.ID, "_design/") {
		return w.Body, nil
	}
	name, _ := UserName(w.ID)
	if !w.Admin && !w.User.Anonymous && !owns(w.User, name) {
		return nil, errMissing()
	}
	if w.Replicated && !w.Admin {
		// The revision before tells whose document it is, and with which roles. Here the client
		// names that revision: none, or one whose roles were never judged, or one that an
		// administrator has replaced.
		return nil, forbidden("Only administrators can write user documents with `new_edits: false`.")
	}
	d, err := parseUser(w.Body)
	if err != nil {
		return nil, err
	}
	s := a.settings()
	if len(d.password) == 0 || string(d.password) == "null" {
		if n, err := strconv.Atoi(string(d.iterations)); err == nil && !w.Admin && n > s.passwords.mostIterations() {
			return nil, forbidden(reasonTooManyIterations)
		}
		return w.Body, nil
	}
	if w.Deleted { // a tombstone needs no password
		return withMembers(w.Body, nil)
	}
	password, ok := doc.Unquote(d.password)
	if !ok {
		return nil, fault.Newf(fault.Forbidden, "Password value of '%s' is invalid.", d.password)
	}
	if err := s.passwords.accepts(password); err != nil {
		return nil, err
	}
	salt := ""
	if s.passwords.keepSalt || string(d.keepSalt) == "true" {
		salt, _ = doc.Unquote(d.salt)
	}
	var h passwordHash
	err = a.verifier.slowly(ctx, applicant{peer: networkOf(w.Peer), name: w.User.Name}, func(ctx context.Context) (err error) {
		h, err = s.passwords.hash(ctx, password, salt)
		return err
	})
	if err != nil {
		return nil, err
	}
	return withHash(w.Body, h)
}

func errMissing() error { return fault.New(fault.NotFound, "missing") }

// withHash returns the body of a user document with h as its stored password:
// first the members of the hash in CouchDB's order, then the others in their
// own; nothing of an earlier hash stays, and no password.
func withHash(body []byte, h passwordHash) ([]byte, error) {
	first := make([]byte, 0, 256)
	text := func(name, value string) {
		first = append(first, '"')
		first = append(first, name...)
		first = append(first, `":`...)
		first = append(doc.AppendString(first, value), ',')
	}
	if h.scheme == schemeSimple {
		text("password_scheme", nameSimple)
		text("salt", h.salt)
		text("password_sha", h.key)
	} else {
		text("password_scheme", namePBKDF2)
		text("pbkdf2_prf", h.prf)
		text("salt", h.salt)
		first = append(first, `"iterations":`...)
		first = append(strconv.AppendInt(first, int64(h.iterations), 10), ',')
		text("derived_key", h.key)
	}
	return withMembers(body, first)
}

// withMembers returns body with the members first, each followed by a comma,
// in place of its password and, when there are any, its earlier hash.
func withMembers(body, first []byte) ([]byte, error) {
	out := make([]byte, 0, len(body)+len(first))
	out = append(append(out, '{'), first...)
	err := doc.EachMember(body, func(name string, value []byte) error {
		switch name {
		case "password", "preserve_salt":
			return nil
		case "password_scheme", "pbkdf2_prf", "salt", "iterations", "derived_key", "password_sha":
			if len(first) > 0 {
				return nil
			}
		}
		out = appendMember(out, name, value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return closeObject(out), nil
}

// appendMember appends a member and a comma.
func appendMember(dst []byte, name string, value []byte) []byte {
	dst = append(doc.AppendString(dst, name), ':')
	return append(append(dst, value...), ',')
}

// closeObject ends an object whose members are each followed by a comma.
func closeObject(b []byte) []byte {
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

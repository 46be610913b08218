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
	Admin   bool // User is admin of the server or of the database
}

// PrepareUser returns the body to store for an edit of the authentication
// database: a password is replaced by its hash; a body without one, or with
// null, stays as it is. It must be called before each such edit.
//
// fault.NotFound "missing": the document is somebody else's. fault.Forbidden,
// fault.BadRequest: the document is refused, or the password. The rules that
// need the stored document are ValidateUser's.
func (a *Authenticator) PrepareUser(ctx context.Context, w UserWrite) ([]byte, error) {
	if strings.HasPrefix(w.ID, "_design/") || strings.HasPrefix(w.ID, "_local/") {
		return w.Body, nil
	}
	name, _ := UserName(w.ID)
	if !w.Admin && !w.User.Anonymous && !owns(w.User, name) {
		return nil, errMissing()
	}
	d, err := parseUser(w.Body)
	if err != nil {
		return nil, err
	}
	if len(d.password) == 0 || string(d.password) == "null" {
		return w.Body, nil
	}
	if !w.Deleted { // cheaper than hashing first
		if err := d.wellFormed(w.ID); err != nil {
			return nil, err
		}
		if err := d.namesAllowed(); err != nil {
			return nil, err
		}
	}
	password, ok := doc.Unquote(d.password)
	if !ok {
		return nil, fault.Newf(fault.Forbidden, "Password value of '%s' is invalid.", d.password)
	}
	s := a.settings()
	if err := s.passwords.accepts(password); err != nil {
		return nil, err
	}
	salt := ""
	if s.passwords.keepSalt || string(d.keepSalt) == "true" {
		salt, _ = doc.Unquote(d.salt)
	}
	var h passwordHash
	err = a.verifier.slowly(ctx, func(ctx context.Context) (err error) {
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
	out := make([]byte, 0, len(body)+256)
	text := func(name, value string) {
		out = append(out, '"')
		out = append(out, name...)
		out = append(out, `":`...)
		out = append(doc.AppendString(out, value), ',')
	}
	out = append(out, '{')
	if h.scheme == schemeSimple {
		text("password_scheme", nameSimple)
		text("salt", h.salt)
		text("password_sha", h.key)
	} else {
		text("password_scheme", namePBKDF2)
		text("pbkdf2_prf", h.prf)
		text("salt", h.salt)
		out = append(out, `"iterations":`...)
		out = append(strconv.AppendInt(out, int64(h.iterations), 10), ',')
		text("derived_key", h.key)
	}
	err := doc.EachMember(body, func(name string, value []byte) error {
		switch name {
		case "password", "preserve_salt",
			"password_scheme", "pbkdf2_prf", "salt", "iterations", "derived_key", "password_sha":
			return nil
		}
		out = append(doc.AppendString(out, name), ':')
		out = append(append(out, value...), ',')
		return nil
	})
	if err != nil {
		return nil, err
	}
	out[len(out)-1] = '}' // in place of the last comma
	return out, nil
}

package auth

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"divan/cluster/access"
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

// userDocument is what the rules look at in a user document: raw JSON values,
// nil when missing.
type userDocument struct {
	typ, name, roles     []byte
	sha, salt, scheme    []byte
	iterations, key      []byte
	password, keepSalt   []byte
	roleNames            []string
	nameText             string
	nameIsText, rolesBad bool
}

func parseUser(body []byte) (userDocument, error) {
	var d userDocument
	err := doc.EachMember(body, func(name string, value []byte) error {
		switch name {
		case "type":
			d.typ = value
		case "name":
			d.name = value
		case "roles":
			d.roles = value
		case "password_sha":
			d.sha = value
		case "salt":
			d.salt = value
		case "password_scheme":
			d.scheme = value
		case "iterations":
			d.iterations = value
		case "derived_key":
			d.key = value
		case "password":
			d.password = value
		case "preserve_salt":
			d.keepSalt = value
		}
		return nil
	})
	if err != nil {
		return d, err
	}
	d.nameText, d.nameIsText = doc.Unquote(d.name)
	if isArray(d.roles) {
		err = doc.EachElement(d.roles, func(v []byte) error {
			role, ok := doc.Unquote(v)
			d.rolesBad = d.rolesBad || !ok
			d.roleNames = append(d.roleNames, role)
			return nil
		})
	}
	return d, err
}

func isArray(v []byte) bool { return len(v) > 0 && v[0] == '[' }

// truthy is JavaScript's idea of it: the rules were a JavaScript function once
// and their texts are told by it.
func truthy(v []byte) bool {
	switch string(v) {
	case "", "null", "false", `""`, "0", "-0", "0.0", "-0.0":
		return false
	}
	return true
}

func forbidden(reason string) error { return fault.New(fault.Forbidden, reason) }

// Rules returns the rules that a database has without a design document: those of
// users and of replications; nil for any other.
func Rules(h *config.Holder) func(db string) shard.Validate {
	return func(db string) shard.Validate {
		switch {
		case IsUsersDatabase(h.Load(), db):
			return func(_ context.Context, r shard.ValidateRequest) error { return ValidateUser(r) }
		case spec.IsDatabase(db):
			return func(_ context.Context, r shard.ValidateRequest) error { return ValidateReplication(r) }
		default:
			return nil
		}
	}
}

// ValidateUser decides whether an edit of a document of the authentication
// database may be written (semantics.md section 10; the texts are part of the
// protocol). It is not asked about design and local documents.
func ValidateUser(r shard.ValidateRequest) error {
	var old *userDocument
	if r.Old != nil {
		d, err := parseUser(r.Old.Body)
		if err != nil {
			return err
		}
		old = &d
	}
	if r.New.Deleted {
		return mayDelete(r.User, old)
	}
	d, err := parseUser(r.New.Body)
	if err != nil {
		return err
	}
	if err := d.wellFormed(r.New.ID); err != nil {
		return err
	}
	if old != nil && !bytes.Equal(old.name, d.name) {
		return forbidden("Usernames can not be changed.")
	}
	if err := d.hashWellFormed(); err != nil {
		return err
	}
	if !r.User.Admin() && !access.Parse(r.Security).Admin(r.User) {
		if err := d.mayChange(r.User, old); err != nil {
			return err
		}
	}
	return d.namesAllowed()
}

func mayDelete(u shard.User, old *userDocument) error {
	if u.Admin() || (old != nil && owns(u, old.nameText)) {
		return nil
	}
	return forbidden("Only admins may delete other user docs.")
}

// owns reports whether the document of that name is the user's own.
func owns(u shard.User, name string) bool { return !u.Anonymous && name != "" && u.Name == name }

// wellFormed checks type, name, roles and id.
func (d *userDocument) wellFormed(id string) error {
	typ, _ := doc.Unquote(d.typ)
	switch {
	case typ != "user":
		return forbidden("doc.type must be user")
	case !truthy(d.name):
		return forbidden("doc.name is required")
	case !truthy(d.roles):
		return forbidden("doc.roles must exist")
	case !isArray(d.roles):
		return forbidden("doc.roles must be an array")
	case d.rolesBad:
		return forbidden("doc.roles can only contain strings")
	case !d.nameIsText || id != UserPrefix+d.nameText:
		return forbidden("Doc ID must be of the form org.couchdb.user:name")
	}
	return nil
}

// hashWellFormed checks the members that hold the stored password.
func (d *userDocument) hashWellFormed() error {
	if truthy(d.sha) && !truthy(d.salt) {
		return forbidden("Users with password_sha must have a salt.See /_utils/script/couch.js for example code.")
	}
	scheme, isText := doc.Unquote(d.scheme)
	if truthy(d.scheme) {
		switch scheme {
		case nameSimple, namePBKDF2, nameSimplePBKDF2:
		default:
			if !isText {
				scheme = string(d.scheme)
			}
			return forbidden("Password scheme `" + scheme + "` not supported.")
		}
	}
	if scheme == namePBKDF2 {
		if !isNumber(d.iterations) {
			return forbidden("iterations must be a number.")
		}
		if _, ok := doc.Unquote(d.key); !ok {
			return forbidden("derived_key must be a string.")
		}
	}
	return nil
}

func isNumber(v []byte) bool {
	return len(v) > 0 && (v[0] == '-' || (v[0] >= '0' && v[0] <= '9'))
}

// mayChange holds for everybody but administrators.
func (d *userDocument) mayChange(u shard.User, old *userDocument) error {
	if old == nil {
		if len(d.roleNames) > 0 {
			return forbidden("Only _admin may set roles")
		}
		return nil
	}
	if !owns(u, d.nameText) {
		return forbidden("You may only update your own user document.")
	}
	before, after := slices.Sorted(slices.Values(old.roleNames)), slices.Sorted(slices.Values(d.roleNames))
	if !slices.Equal(before, after) {
		return forbidden("Only _admin may edit roles")
	}
	return nil
}

// namesAllowed keeps reserved names out of the database, also for
// administrators.
func (d *userDocument) namesAllowed() error {
	if slices.ContainsFunc(d.roleNames, reservedRole) {
		return forbidden("No system roles (starting with underscore) in users db.")
	}
	if strings.HasPrefix(d.nameText, "_") {
		return forbidden("Username may not start with underscore.")
	}
	if strings.Contains(d.nameText, ":") { // it separates the parts of a session cookie
		return forbidden("Character `:` is not allowed in usernames.")
	}
	return nil
}

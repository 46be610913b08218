package peruser

import (
	"encoding/hex"

	"divan/cluster/meta"
	"divan/storage/doc"
)

// databaseOf returns the name of an account's database. Each byte is two digits: with one
// for those below 16, as CouchDB has it, two accounts could share a database.
func databaseOf(prefix, account string) string {
	return prefix + hex.EncodeToString([]byte(account))
}

// step is the next step for the database of an account.
type step int

const (
	nothing step = iota
	create       // the database, which is granted then
	grant        // the account its names in the security object
	revoke       // them
	drop         // the database
)

// next decides what has to be done. db is nil when there is no database. The security
// object is the new one, for grant and revoke.
func next(account string, alive bool, db *meta.Database, deletes bool) (s step, security []byte, err error) {
	switch {
	case db == nil && alive:
		return create, nil, nil
	case db == nil:
		return nothing, nil, nil
	case !alive && deletes:
		return drop, nil, nil
	}
	security, changed, err := withName(db.Security, account, alive)
	switch {
	case err != nil || !changed:
		return nothing, nil, err
	case alive:
		return grant, security, nil
	default:
		return revoke, security, nil
	}
}

// withName returns a security object in which an account is among the names of
// administrators and of members, or among neither; changed says whether it was so already.
// All else stays as it is.
func withName(object []byte, account string, wanted bool) (out []byte, changed bool, err error) {
	out = object
	if len(out) == 0 {
		out = []byte("{}")
	}
	for _, name := range []string{"admins", "members"} {
		group := doc.Lookup(out, name)
		if !doc.IsObject(group) {
			group = []byte("{}")
		}
		names, differ, err := withElement(doc.Lookup(group, "names"), account, wanted)
		if err != nil {
			return nil, false, err
		}
		if !differ {
			continue
		}
		changed = true
		if group, err = withMember(group, "names", names); err != nil {
			return nil, false, err
		}
		if name == "members" && !wanted {
			if group, err = private(group); err != nil {
				return nil, false, err
			}
		}
		if out, err = withMember(out, name, group); err != nil {
			return nil, false, err
		}
	}
	return out, changed, nil
}

// private returns a list of members that is not empty: without a member a database would be
// everyone's. Its members are server administrators when the account was the only one.
func private(members []byte) ([]byte, error) {
	empty := true
	for _, name := range []string{"names", "roles"} {
		if list := doc.Lookup(members, name); doc.IsArray(list) {
			if err := doc.EachElement(list, func([]byte) error { empty = false; return nil }); err != nil {
				return nil, err
			}
		}
	}
	if !empty {
		return members, nil
	}
	return withMember(members, "roles", []byte(`["_admin"]`))
}

// withElement returns a list of texts that begins with one, or that has it nowhere, and
// whether that is another list.
func withElement(list []byte, text string, wanted bool) (out []byte, changed bool, err error) {
	out = []byte{'['}
	if wanted {
		out = doc.AppendString(out, text)
	}
	there := false
	if doc.IsArray(list) {
		err = doc.EachElement(list, func(value []byte) error {
			if one, ok := doc.Unquote(value); ok && one == text {
				there = true
				return nil
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, value...)
			return nil
		})
	}
	return append(out, ']'), there != wanted, err
}

// withMember returns an object with a member, at its place if it is there already, else
// at the end.
func withMember(object []byte, name string, value []byte) ([]byte, error) {
	out, placed := []byte{'{'}, false
	put := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(doc.AppendString(out, name), ':')
		out = append(out, value...)
	}
	err := doc.EachMember(object, func(member string, v []byte) error {
		if member != name {
			put(member, v)
		} else if !placed {
			placed = true
			put(name, value)
		}
		return nil
	})
	if !placed {
		put(name, value)
	}
	return append(out, '}'), err
}

package meta

import (
	"divan/storage/doc"
	"divan/storage/fault"
)

// CheckSecurity checks the members of a security object that evaluation reads;
// others may be anything. "readers" counts only when "members" is absent, as on reading.
func CheckSecurity(text []byte) error {
	if len(text) == 0 || text[0] != '{' {
		return fault.New(fault.BadRequest, "Request body must be a JSON object")
	}
	var members, readers, admins []byte
	err := doc.EachMember(text, func(name string, value []byte) error {
		switch name {
		case "admins":
			admins = value
		case "members":
			members = value
		case "readers":
			readers = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if members == nil {
		members = readers
	}
	for _, part := range [][]byte{admins, members} {
		if err := checkNamesAndRoles(part); err != nil {
			return err
		}
	}
	return nil
}

func checkNamesAndRoles(part []byte) error {
	if part == nil {
		return nil
	}
	if part[0] != '{' {
		return fault.New(fault.BadRequest, "admins or members must be a JSON list of strings")
	}
	return doc.EachMember(part, func(name string, value []byte) error {
		if name != "names" && name != "roles" {
			return nil
		}
		refusal := fault.New(fault.BadRequest, name+" must be a JSON list of strings")
		if value[0] != '[' {
			return refusal
		}
		return doc.EachElement(value, func(item []byte) error {
			if item[0] != '"' {
				return refusal
			}
			return nil
		})
	})
}

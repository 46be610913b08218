package core

import (
	"strconv"

	"divan/storage/fault"
)

// Param is one name=value of the query string, decoded.
type Param struct{ Name, Value string }

// Params is a query string, decoded.
type Params []Param

// Value returns the value of a parameter. A name that is given several times has
// its first value, as in CouchDB.
func (p Params) Value(name string) (value string, ok bool) {
	for i := range p {
		if p[i].Name == name {
			return p[i].Value, true
		}
	}
	return "", false
}

// ParseQuorum reads r or w: a number of copies.
func ParseQuorum(p Param) (int, error) {
	n, err := strconv.Atoi(p.Value)
	if err != nil || n < 1 {
		return 0, fault.Newf(fault.BadRequest, "The `%s` value should be a positive integer.", p.Name)
	}
	return n, nil
}

// MostRows is the largest limit that is taken, the largest small integer of
// CouchDB's machine.
const MostRows = 1<<59 - 1

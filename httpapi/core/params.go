package core

import (
	"strconv"
	"strings"

	"divan/storage/fault"
)

// parseQuery splits a query string into decoded pairs, in order; a semicolon
// separates them as well. A malformed escape refuses the request, a name without
// "=" has the empty value.
func (c *Call) parseQuery(raw string) error {
	if raw == "" {
		return nil
	}
	list := c.scratch.params[:0]
	for raw != "" {
		pair := raw
		if end := strings.IndexAny(raw, "&;"); end >= 0 {
			pair, raw = raw[:end], raw[end+1:]
		} else {
			raw = ""
		}
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := Unescape(name, true)
		if err != nil {
			return err
		}
		value, err = Unescape(value, true)
		if err != nil {
			return err
		}
		list = append(list, Param{name, value})
	}
	c.scratch.params, c.Query = list, list
	return nil
}

// ParseQuorum reads r or w: a number of copies.
func ParseQuorum(p Param) (int, error) {
	n, err := strconv.Atoi(p.Value)
	if err != nil || n < 1 {
		return 0, fault.Newf(fault.BadRequest, "The `%s` value should be a positive integer.", p.Name)
	}
	return n, nil
}

// WriteQuorum reads w for writes that have no other options, 0 when it is not
// given.
func (c *Call) WriteQuorum() (int, error) {
	text, ok := c.QueryValue("w")
	if !ok {
		return 0, nil
	}
	return ParseQuorum(Param{"w", text})
}

// MostRows is the largest limit that is taken, the largest small integer of
// CouchDB's machine.
const MostRows = 1<<59 - 1

package httpapi

import (
	"divan/storage/doc"
	"divan/storage/fault"
	"strconv"
	"strings"
)

// parseQuery splits a query string into decoded pairs, in order. A malformed
// escape refuses the request, a name without "=" has the empty value.
func (c *call) parseQuery(raw string) error {
	if raw == "" {
		return nil
	}
	list := c.scratch.params[:0]
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := decode(name, true)
		if err != nil {
			return err
		}
		value, err = decode(value, true)
		if err != nil {
			return err
		}
		list = append(list, param{name, value})
	}
	c.scratch.params, c.query = list, list
	return nil
}

// parseQuorum reads r or w: a number of copies.
func parseQuorum(p param) (int, error) {
	n, err := strconv.Atoi(p.value)
	if err != nil || n < 1 {
		return 0, fault.Newf(fault.BadRequest, "The `%s` value should be a positive integer.", p.name)
	}
	return n, nil
}

// writeQuorum reads w for writes that have no other options, 0 when it is not
// given.
func (c *call) writeQuorum() (int, error) {
	text, ok := c.qs("w")
	if !ok {
		return 0, nil
	}
	return parseQuorum(param{"w", text})
}

// inPartition reports whether documents of that name belong to partitions.
func (c *call) inPartition(id string) bool {
	return c.db.Meta().Partitioned && !doc.IsLocal(id) && !strings.HasPrefix(id, doc.DesignPrefix)
}

// checkPartition refuses an id without a partition where it needs one, for
// reading too.
func (c *call) checkPartition(id string) error {
	if c.inPartition(id) && !strings.Contains(id, ":") {
		return fault.New(fault.IllegalDocID, "Doc id must be of form partition:id")
	}
	return nil
}

// mostRows is the largest limit that is taken, the largest small integer of
// CouchDB's machine and one.
const mostRows = 1 << 59

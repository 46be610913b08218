package httpapi

import (
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

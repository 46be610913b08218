package reshard

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"divan/cluster/meta"
	"divan/httpapi/core"
	"divan/reshard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// candidate is a copy that a request asks to split.
type candidate struct {
	ring.Range
	ring.Copy
}

// outcome is what became of it.
type outcome struct {
	shard, node string
	id          string
	err         error
}

// postJobs answers POST /_reshard/jobs.
func postJobs(c *core.Call) error {
	body, err := object(c)
	if err != nil {
		return err
	}
	db, picked, err := pick(c, body)
	if err != nil {
		return err
	}
	if len(picked) == 0 {
		return missing(c)
	}
	made := 0
	out := make([]outcome, len(picked))
	for i, p := range picked {
		id, err := c.API.Deps.Reshard.Create(c.Request.Context(), db, p.Range, p.Copy)
		out[i] = outcome{db.CopyName(p.Range), p.Node, id, err}
		switch {
		case err == nil:
			made++
		case made == 0 && fault.Is(err, fault.Unavailable):
			return err // nothing can be made now
		}
	}
	status := http.StatusAccepted
	switch made {
	case len(picked):
		status = http.StatusCreated
	case 0:
		status = http.StatusInternalServerError
	}
	return c.SendAppended(status, func(dst []byte) []byte { return appendOutcomes(dst, out) })
}

func appendOutcomes(dst []byte, out []outcome) []byte {
	for i, o := range out {
		dst = append(dst, "[,"[min(i, 1)])
		if o.err == nil {
			dst = doc.AppendString(append(dst, `{"ok":true,"id":`...), o.id)
		} else {
			dst = doc.AppendString(append(dst, `{"error":`...), describe(o.err))
		}
		dst = doc.AppendString(append(dst, `,"node":`...), o.node)
		dst = append(doc.AppendString(append(dst, `,"shard":`...), o.shard), '}')
	}
	return append(dst, ']')
}

// describe returns why a job is not made.
func describe(err error) string {
	for _, known := range []error{reshard.ErrJobExists, reshard.ErrMaxJobs} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if reason := fault.Reason(err); reason != "" {
		return reason
	}
	return err.Error()
}

func bad(reason string) error { return fault.New(fault.BadRequest, reason) }

// given is what a request names; what is not set it does not name.
type given struct {
	node, shard, db string
	ring            *ring.Range
	database        *meta.Database // of db
}

// pick returns the copies that a request asks to split, and their database.
func pick(c *core.Call, body []byte) (*meta.Database, []candidate, error) {
	g, err := read(c, body)
	if err != nil {
		return nil, nil, err
	}
	if kind, _ := doc.Unquote(doc.Lookup(body, "type")); kind != "split" {
		return nil, nil, bad("`job type must be `split`")
	}
	must := c.Config.Reshard
	switch {
	case g.shard == "" && g.db == "":
		return nil, nil, bad("Must specify at least `db` or `shard`")
	case g.shard != "" && g.db != "":
		return nil, nil, bad("`db` and `shard` are mutually exclusive")
	case g.shard != "" && g.ring != nil:
		return nil, nil, bad("`range` and `shard` are mutually exclusive")
	case must.RequireNode && g.node == "": // as CouchDB spells it
		return nil, nil, bad("`node` prameter is required")
	case must.RequireRange && g.ring == nil && g.shard == "":
		return nil, nil, bad("`range` prameter is required")
	}
	if g.shard != "" {
		if err := g.resolve(c.Request.Context(), c.API.Deps.Meta); err != nil || g.database == nil {
			return nil, nil, err
		}
	}
	return g.database, g.candidates(), nil
}

// read checks each member by itself, in CouchDB's order.
func read(c *core.Call, body []byte) (g given, err error) {
	if err := g.readNode(c, doc.Lookup(body, "node")); err != nil {
		return g, err
	}
	if g.shard, err = text(body, "shard"); err != nil {
		return g, err
	}
	if doc.Lookup(body, "shard") != nil && !shardLike(g.shard) {
		return g, bad("`shard` is invalid")
	}
	if g.db, err = text(body, "db"); err != nil {
		return g, err
	}
	if doc.Lookup(body, "db") != nil {
		g.database, err = c.API.Deps.Meta.Require(c.Request.Context(), g.db)
		switch {
		case fault.Is(err, fault.NotFound):
			return g, bad("Invalid `db`")
		case err != nil:
			return g, err
		}
	}
	return g, g.readRange(doc.Lookup(body, "range"))
}

// text returns a member that is a text if it is there.
func text(body []byte, name string) (string, error) {
	value := doc.Lookup(body, name)
	out, ok := doc.Unquote(value)
	if value != nil && !ok {
		return "", bad("Invalid `" + name + "`")
	}
	return out, nil
}

func (g *given) readNode(c *core.Call, value []byte) error {
	if value == nil {
		return nil
	}
	name, ok := doc.Unquote(value)
	if !ok {
		return bad("Invalid `node`")
	}
	if _, member := c.API.Deps.Meta.Node(name); !member {
		return bad("`node` is not a valid node name")
	}
	g.node = name
	return nil
}

func (g *given) readRange(value []byte) error {
	if value == nil {
		return nil
	}
	name, _ := doc.Unquote(value)
	r, err := ring.ParseRange(strings.ToLower(name))
	if err != nil || r.Begin == r.End {
		return bad("Invalid `range`")
	}
	g.ring = &r
	return nil
}

// shardLike reports whether a text begins like the name of a copy.
func shardLike(name string) bool {
	const shape = "shards/00000000-00000000/"
	return len(name) > len(shape) && strings.HasPrefix(name, "shards/") && name[15] == '-' && name[24] == '/'
}

// resolve finds the database and the range of a shard; it leaves them out when no database
// ever gave a copy that name.
func (g *given) resolve(ctx context.Context, m *meta.Meta) error {
	r, name, suffix, ok := ring.ParseCopyName(g.shard)
	if !ok {
		return nil
	}
	db, err := m.Require(ctx, name)
	if err != nil {
		return err
	}
	if db.Suffix == suffix {
		g.database, g.ring = db, &r
	}
	return nil
}

// candidates are the full copies that the request names.
func (g *given) candidates() []candidate {
	var out []candidate
	for _, s := range g.database.Shards {
		if g.ring != nil && *g.ring != s.Range {
			continue
		}
		for _, one := range s.Full() {
			if g.node == "" || g.node == one.Node {
				out = append(out, candidate{s.Range, one})
			}
		}
	}
	return out
}

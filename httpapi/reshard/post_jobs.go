package reshard

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"divan/cluster/meta"
	"divan/httpapi/core"
	"divan/reshard"
	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// candidate is a job that a request asks for.
type candidate struct {
	source      *job.Source
	shard, node string
	err         error // why it cannot be
}

// outcome is the job that was made of a candidate, or why it was not made.
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
	picked, err := pick(c, body)
	if err != nil {
		return err
	}
	if len(picked) == 0 {
		return missing(c)
	}
	if !slices.ContainsFunc(picked, func(p candidate) bool { return p.err == nil }) {
		return picked[0].err
	}
	made := 0
	out := make([]outcome, len(picked))
	for i, p := range picked {
		id, err := "", p.err
		if err == nil {
			id, err = c.API.Deps.Reshard.Create(c.Request.Context(), p.source)
		}
		out[i] = outcome{p.shard, p.node, id, err}
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
	return c.Response.SendAppended(status, func(dst []byte) []byte { return appendOutcomes(dst, out) })
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

// given holds the parameters of a request; those that it does not name are not set.
type given struct {
	kind            job.Type
	node, shard, db string
	ring            *ring.Range
	database        *meta.Database // of db
}

// pick returns the jobs that a request asks for.
func pick(c *core.Call, body []byte) ([]candidate, error) {
	g, err := read(c, body)
	if err != nil {
		return nil, err
	}
	kind, _ := doc.Unquote(doc.Lookup(body, "type"))
	if g.kind = job.Type(kind); g.kind != job.Split && g.kind != job.Merge && g.kind != job.Move {
		return nil, bad("`job type must be `split`") // as CouchDB says it
	}
	must := c.Config.Reshard
	switch {
	case g.shard == "" && g.db == "":
		return nil, bad("Must specify at least `db` or `shard`")
	case g.shard != "" && g.db != "":
		return nil, bad("`db` and `shard` are mutually exclusive")
	case g.shard != "" && g.ring != nil:
		return nil, bad("`range` and `shard` are mutually exclusive")
	case must.RequireNode && g.node == "": // as CouchDB spells it
		return nil, bad("`node` prameter is required")
	case must.RequireRange && g.ring == nil && g.shard == "":
		return nil, bad("`range` prameter is required")
	}
	if g.shard != "" {
		if err := g.resolve(c.Request.Context(), c.API.Deps.Meta); err != nil || g.database == nil {
			return nil, err
		}
	}
	switch g.kind {
	case job.Merge:
		return g.merges()
	case job.Move:
		return g.moves(c, body)
	default:
		return g.copies(reshard.SplitOf), nil
	}
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

// copies returns a job for each full copy that is meant.
func (g *given) copies(source func(*meta.Database, ring.Range, ring.Copy) (*job.Source, error)) []candidate {
	var out []candidate
	for _, s := range g.database.Shards {
		if g.ring != nil && *g.ring != s.Range {
			continue
		}
		for _, one := range s.Full() {
			if g.node == "" || g.node == one.Node {
				of, err := source(g.database, s.Range, one)
				out = append(out, candidate{of, g.database.CopyName(s.Range), one.Node, err})
			}
		}
	}
	return out
}

// moves returns a job for each copy on a node that goes to another one.
func (g *given) moves(c *core.Call, body []byte) ([]candidate, error) {
	target, err := text(body, "target")
	switch _, member := c.API.Deps.Meta.Node(target); {
	case err != nil:
		return nil, err
	case g.node == "":
		return nil, bad("`node` is required: the node that the shard is moved from")
	case target == "":
		return nil, bad("`target` is required: the node that the shard is moved to")
	case !member:
		return nil, bad("`target` is not a valid node name")
	}
	return g.copies(func(db *meta.Database, r ring.Range, one ring.Copy) (*job.Source, error) {
		return reshard.MoveOf(db, r, one, target)
	}), nil
}

// merges returns a job for each node with shards that make up the range.
func (g *given) merges() ([]candidate, error) {
	switch {
	case g.shard != "":
		return nil, bad("`shard` is one: name `db` and the `range` of the shards to merge")
	case g.ring == nil:
		return nil, bad("`range` is required: that of the shards to merge, together")
	}
	var out []candidate
	for _, s := range reshard.MergesOf(g.database, *g.ring, g.node) {
		out = append(out, candidate{source: s, shard: s.Name(), node: s.Node})
	}
	if out == nil {
		return nil, bad("No node has two or more shards that make up `range`")
	}
	return out, nil
}

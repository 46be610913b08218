package node

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	"divan/cluster/meta"
	"divan/httpapi/core"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// mapBody returns the content of a database's shard map as CouchDB keeps it
// (semantics.md section 8.1).
func mapBody(db *meta.Database) []byte {
	out := []byte(`{"shard_suffix":[46`) // a dot
	for i := range len(db.Suffix) {
		out = strconv.AppendUint(append(out, ','), uint64(db.Suffix[i]), 10)
	}
	out = append(out, `],"changelog":[`...)
	byNode := map[string][]string{}
	shards := ring.Visible(db.Shards)
	first := true
	for _, s := range shards {
		for _, node := range s.Nodes() {
			byNode[node] = append(byNode[node], s.String())
			if !first {
				out = append(out, ',')
			}
			first = false
			out = core.AppendStrings(out, []string{"add", s.String(), node})
		}
	}
	out = append(out, `],"by_node":{`...)
	for i, node := range slices.Sorted(maps.Keys(byNode)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = core.AppendStrings(append(doc.AppendString(out, node), ':'), byNode[node])
	}
	out = append(out, `},"by_range":{`...)
	for i, s := range shards {
		if i > 0 {
			out = append(out, ',')
		}
		out = core.AppendStrings(append(doc.AppendString(out, s.String()), ':'), s.Nodes())
	}
	if db.Partitioned {
		return append(out, `},"props":{"partitioned":true}}`...)
	}
	return append(out, `},"props":{}}`...)
}

// getMapDocsInfo answers GET /_node/{name}/_dbs.
func getMapDocsInfo(c *core.Call) error {
	return sendMadeUpInfo(c, "_dbs", c.API.Deps.Meta.Databases().Len())
}

// getMapDocs answers GET /_node/{name}/_dbs/_all_docs.
func getMapDocs(c *core.Call) error {
	dbs := c.API.Deps.Meta.Databases()
	return madeUpRows(c, dbs.Len(), func(row func(string, []byte) error) error {
		for db := range dbs.All() {
			if err := row(db.Name, mapBody(db)); err != nil {
				return err
			}
		}
		return nil
	})
}

// getMapDoc answers GET /_node/{name}/_dbs/{db}.
func getMapDoc(c *core.Call) error {
	db, err := mapOf(c, c.Path[3])
	if err != nil {
		return err
	}
	return sendMadeUp(c, db.Name, mapBody(db))
}

func mapOf(c *core.Call, name string) (*meta.Database, error) {
	db, err := c.API.Deps.Meta.Require(c.Request.Context(), name)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.NotFound, "missing")
	}
	return db, err
}

// putMapDoc answers PUT /_node/{name}/_dbs/{db}. Maps are not edited by hand:
// where CouchDB's tools move a copy that way, another node takes the place of
// the one that holds it. A document that changes nothing is accepted.
func putMapDoc(c *core.Call) error {
	value, err := c.Body.ReadValue()
	if err != nil {
		return err
	}
	db, err := mapOf(c, c.Path[3])
	if err != nil {
		return err
	}
	if !doc.IsObject(value) {
		return fault.New(fault.BadRequest, "Document must be a JSON object")
	}
	now := mapBody(db)
	rev := contentRev(now)
	if given, _ := doc.Unquote(doc.Lookup(value, "_rev")); given != rev {
		return fault.New(fault.Conflict, "Document update conflict.")
	}
	for _, name := range []string{"by_node", "by_range", "shard_suffix", "props"} {
		if string(doc.Lookup(value, name)) != string(doc.Lookup(now, name)) {
			return fault.New(fault.BadRequest, "Shard maps are not edited by hand. To give the copies of a node that is gone for good to a new one: "+
				`PUT /_node/_local/_nodes/{new node} {"replaces":"{old node}"}.`)
		}
	}
	return sendNodeRev(c, http.StatusCreated, db.Name, rev)
}

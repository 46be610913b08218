package listing

import (
	"slices"
	"strconv"
	"strings"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/httpapi/guard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// allDocs, designDocs and localDocs serve GET and POST of /{db}/_all_docs,
// _design_docs and _local_docs (api.md section 11).
func allDocs(c *core.Call) error    { return listDocs(c, docList{space: cluster.AllDocs}) }
func designDocs(c *core.Call) error { return listDocs(c, docList{space: cluster.DesignDocs}) }
func localDocs(c *core.Call) error  { return listDocs(c, docList{space: cluster.LocalDocs}) }

// allDocsQueries and its kin serve POST of …/queries.
func allDocsQueries(c *core.Call) error { return listQueries(c, docList{space: cluster.AllDocs}) }

func designDocsQueries(c *core.Call) error { return listQueries(c, docList{space: cluster.DesignDocs}) }

func localDocsQueries(c *core.Call) error { return listQueries(c, docList{space: cluster.LocalDocs}) }

// partitionDocs serves /{db}/_partition/{name}/_all_docs.
func partitionDocs(c *core.Call) error {
	l, err := partitionList(c)
	if err != nil {
		return err
	}
	defer countPartition(c)
	return listDocs(c, l)
}

// countPartition counts a list of a partition that was answered.
func countPartition(c *core.Call) {
	if status := c.Response.Status; status >= 200 && status < 300 {
		c.API.Stats.Partitions.AllDocs.Inc()
	}
}

// partitionDocsQueries serves POST /{db}/_partition/{name}/_all_docs/queries.
func partitionDocsQueries(c *core.Call) error {
	l, err := partitionList(c)
	if err != nil {
		return err
	}
	defer countPartition(c)
	return listQueries(c, l)
}

// partitionList is the list of the partition in the path.
func partitionList(c *core.Call) (docList, error) {
	if !c.DB.Meta().Partitioned {
		return docList{}, fault.New(fault.BadRequest, "database is not partitioned")
	}
	name := c.Path[2]
	if err := cluster.ValidatePartition(name); err != nil {
		return docList{}, err
	}
	return docList{space: cluster.AllDocs, partition: name}, nil
}

// docList names what is listed: one of the namespaces, perhaps one partition.
type docList struct {
	space     cluster.Namespace
	partition string
}

// prefix returns the common beginning of the ids of the namespace.
func (l docList) prefix() string {
	switch l.space {
	case cluster.DesignDocs:
		return doc.DesignPrefix
	case cluster.LocalDocs:
		return doc.LocalPrefix
	default:
		return ""
	}
}

// listDocs answers one list.
func listDocs(c *core.Call, l docList) error {
	v, inBody, err := Read(c)
	if err != nil {
		return err
	}
	r, err := prepareList(c, l, &v, inBody)
	if err != nil {
		return err
	}
	rows, err := c.DB.AllDocs(c.Request.Context(), r.query)
	if err != nil {
		return err
	}
	defer rows.Close()
	out := c.Stream("")
	if err := r.write(c, out, rows); err != nil {
		return err
	}
	out.Buf = append(out.Buf, '\n')
	return out.Close()
}

// listQueries answers several lists in one request. All queries are checked before the
// first row goes out. The body is read as JSON, no matter which type it declares, unlike
// that of one list (api.md 8.3).
func listQueries(c *core.Call, l docList) error {
	text, err := c.Body.ReadAll(0)
	if err != nil {
		return err
	}
	var queries []*listing
	err = EachQuery(c, text, func(v *Params) error {
		v.singleKey(l)
		q, err := prepareList(c, l, v, true)
		queries = append(queries, q)
		return err
	})
	if err != nil {
		return err
	}
	out := c.Stream("")
	out.Buf = append(out.Buf, `{"results":[`...)
	for i := range queries {
		if i > 0 {
			out.Buf = append(out.Buf, ',')
		}
		out.Buf = append(out.Buf, "\r\n"...)
		rows, err := c.DB.AllDocs(c.Request.Context(), queries[i].query)
		if err != nil {
			return err
		}
		err = queries[i].write(c, out, rows)
		rows.Close()
		if err != nil {
			return err
		}
	}
	out.Buf = append(out.Buf, "\r\n]}\n"...)
	return out.Close()
}

// singleKey treats a list of one key as that key in the queries on design
// documents, as CouchDB does there and nowhere else (golden alldocs/05).
func (v *Params) singleKey(l docList) {
	if l.space == cluster.DesignDocs {
		v.KeysToKey()
	}
}

// listing is one list ready to be read.
type listing struct {
	query  cluster.DocsQuery
	style  docformat.Style
	rights guard.Rights // whose eyes it is for
	docs   bool         // include_docs
	seq    bool         // update_seq
	keys   [][]byte     // with keys: those to be answered, in order, as JSON; the query has those that are strings
}

// prepareList checks the parameters of a list and makes the query of them.
func prepareList(c *core.Call, l docList, v *Params, inBody bool) (*listing, error) {
	if err := checkList(c, l, v); err != nil {
		return nil, err
	}
	r := &listing{
		rights: c.Rights(), docs: v.IncludeDocs, seq: v.UpdateSeq,
		style: docformat.Style{Attachments: v.Attachments, EncodingInfo: v.EncodingInfo},
		query: cluster.DocsQuery{
			Namespace: l.space, InclusiveEnd: v.InclusiveEnd, Descending: v.Descending, Skip: v.Skip, Limit: v.Limit,
			Partition: l.partition, IncludeDocs: v.IncludeDocs, Conflicts: v.Conflicts == Yes,
			UpdateSeq: v.UpdateSeq && l.space != cluster.LocalDocs, Memory: &c.Memory,
		},
	}
	if v.HasPartition {
		r.query.Partition = v.Partition
	}
	system, _ := c.QueryValue("include_system")
	r.query.System = system == "true"
	if v.Keys != nil {
		return r, r.setKeys(c, l, v.Keys, inBody)
	}
	r.query.StartKey, r.query.EndKey = listBound(v.StartKey, v.Descending, true), listBound(v.EndKey, v.Descending, false)
	return r, nil
}

// checkList refuses parameters that do not fit this list.
func checkList(c *core.Call, l docList, v *Params) error {
	if err := v.checkMap(); err != nil {
		return err
	}
	limit := c.Config.Limits.QueryLimit
	if l.partition != "" || v.HasPartition {
		limit = c.Config.Limits.PartitionQueryLimit
	}
	if v.Limit >= 0 && int64(v.Limit) > limit {
		return fault.New(fault.QueryParse, "Limit is too large, must not exceed "+strconv.FormatInt(limit, 10))
	}
	switch {
	case !v.HasPartition:
		return nil
	case !c.DB.Meta().Partitioned:
		return fault.New(fault.QueryParse, "`partition` parameter is not supported on this db")
	case l.partition != "" && l.partition != v.Partition:
		return fault.New(fault.BadRequest, "Conflicting value for `partition` in query string")
	}
	return cluster.ValidatePartition(v.Partition)
}

// listBound makes a bound of a key. Ids are strings: every other JSON value
// comes before all of them, so as a bound it either says nothing or leaves
// nothing.
func listBound(key []byte, descending, start bool) *string {
	if key == nil {
		return nil
	}
	if s, ok := doc.Unquote(key); ok {
		return &s
	}
	if start == descending {
		empty := "" // no id comes before the empty one
		return &empty
	}
	return nil
}

// setKeys takes a list of keys. Skip, limit and direction are applied to it
// here, because keys that are no strings are answered without being looked up.
func (r *listing) setKeys(c *core.Call, l docList, text []byte, inBody bool) error {
	if !doc.IsArray(text) {
		if inBody {
			return fault.New(fault.BadRequest, "`keys` body member must be an array.")
		}
		return fault.New(fault.BadRequest, "`keys` parameter must be an array.")
	}
	r.keys = [][]byte{}
	prefix := l.prefix()
	err := c.Memory.EachElement(text, core.KeySpace, func(value []byte) error {
		// Ids of another namespace are passed over.
		if id, ok := doc.Unquote(value); !ok || strings.HasPrefix(id, prefix) {
			r.keys = append(r.keys, value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	q := &r.query
	if q.Descending {
		slices.Reverse(r.keys)
	}
	r.keys = r.keys[min(q.Skip, len(r.keys)):]
	if q.Limit >= 0 {
		r.keys = r.keys[:min(q.Limit, len(r.keys))]
	}
	q.HasKeys, q.Skip, q.Limit, q.Descending = true, 0, cluster.NoLimit, false
	for _, key := range r.keys {
		if id, ok := doc.Unquote(key); ok {
			q.Keys = append(q.Keys, id)
		}
	}
	return nil
}

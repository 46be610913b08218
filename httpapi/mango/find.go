package mango

import (
	"net/http"
	"strconv"
	"time"

	"divan/cluster/find"
	"divan/httpapi/core"
	"divan/httpapi/stats"
	"divan/shard/query/plan"
	"divan/storage/doc"
	"divan/storage/fault"
)

// parse reads the body of a query.
func (f *Family) parse(c *core.Call) (*plan.Find, error) {
	text, err := body(c)
	if err != nil {
		return nil, err
	}
	inPath, err := partition(c)
	if err != nil {
		return nil, err
	}
	q, err := f.finder.Parse(text)
	if err != nil || inPath == "" {
		return q, err
	}
	if q.Partition != "" && q.Partition != inPath {
		return nil, fault.New(fault.BadRequest, "Conflicting value for `partition` in request body")
	}
	q.Partition = inPath
	return q, nil
}

// explain serves POST /{db}/_explain.
func (f *Family) explain(c *core.Call) error {
	if c.Path[1] == "_partition" {
		c.API.Stats.Partitions.Explain.Inc()
	}
	q, err := f.parse(c)
	if err != nil {
		return err
	}
	answer, err := f.finder.Explain(c.Request.Context(), c.DB, q, nil)
	if err != nil {
		return err
	}
	return c.Response.SendJSON(http.StatusOK, answer)
}

// find serves POST /{db}/_find.
func (f *Family) find(c *core.Call) error {
	c.ForAccount()
	if c.Path[1] == "_partition" {
		c.API.Stats.Partitions.Find.Inc()
	}
	q, err := f.parse(c)
	if err != nil {
		return err
	}
	rows, err := f.finder.Find(c.Request.Context(), c.DB, q, &c.Memory)
	if err != nil {
		return err
	}
	defer rows.Close()
	defer func() { count(&c.API.Stats.Mango, rows.Stats(), time.Now()) }()
	if q.Count {
		return sendCount(c, q, rows)
	}
	out := c.Stream("")
	out.Buf = append(out.Buf, `{"docs":[`...)
	for n := 0; rows.Next(); n++ {
		if n > 0 {
			out.Buf = append(out.Buf, ',')
		}
		out.Buf = append(append(out.Buf, "\r\n"...), rows.Doc()...)
		if err := out.Spill(); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	out.Buf = append(out.Buf, "\r\n]"...)
	if !rows.Empty() {
		out.Buf = append(out.Buf, ",\r\n\"bookmark\": "...)
		out.Buf = appendReport(append(out.Buf, rows.Bookmark()...), q, rows)
	}
	out.Buf = append(out.Buf, "}\n"...)
	return out.Close()
}

// count adds what an answer took to the figures of the node.
func count(m *stats.Mango, s find.Stats, now time.Time) {
	if s.Unindexed {
		m.Unindexed.Inc()
	}
	if s.Ignored {
		m.InvalidIndex.Inc()
	}
	if s.Wasteful {
		m.Wasteful.Inc()
	}
	m.Keys.Add(int(s.Keys))
	m.Docs.Add(int(s.Docs))
	m.QuorumDocs.Add(int(s.QuorumDocs))
	m.Results.Add(int(s.Results))
	m.Took(s.Time, now)
}

// sendCount answers with the number of matches (api.md section 20).
func sendCount(c *core.Call, q *plan.Find, rows *find.Rows) error {
	n, err := rows.Count()
	if err != nil {
		return err
	}
	answer := strconv.AppendInt([]byte(`{"count":`), n, 10)
	return c.Response.SendJSON(http.StatusOK, append(appendReport(answer, q, rows), '}'))
}

// appendReport appends what is told about the way a query was answered.
func appendReport(dst []byte, q *plan.Find, rows *find.Rows) []byte {
	if q.Stats {
		s := rows.Stats()
		dst = append(dst, ",\r\n\"execution_stats\": {\"total_keys_examined\":"...)
		dst = strconv.AppendUint(dst, s.Keys, 10)
		dst = append(dst, `,"total_docs_examined":`...)
		dst = strconv.AppendUint(dst, s.Docs, 10)
		dst = append(dst, `,"total_quorum_docs_examined":`...)
		dst = strconv.AppendUint(dst, s.QuorumDocs, 10)
		dst = append(dst, `,"results_returned":`...)
		dst = strconv.AppendInt(dst, s.Results, 10)
		dst = append(dst, `,"execution_time_ms":`...)
		dst = strconv.AppendFloat(dst, float64(s.Time)/float64(time.Millisecond), 'f', 3, 64)
		dst = append(dst, '}')
	}
	if warning := rows.Warning(); warning != "" {
		dst = append(dst, ",\r\n\"warning\": "...)
		dst = doc.AppendString(dst, warning)
	}
	return dst
}

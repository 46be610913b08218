package replication

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"divan/httpapi/core"
	"divan/replicator"
	"divan/storage/doc"
	"divan/storage/fault"
)

// askTimeout is how long other nodes have to tell what they do. One that does not
// answer in time is left out.
const askTimeout = 5 * time.Second

// others asks all other nodes for what is at a path below /_node/{name}.
func others(c *core.Call, path string) [][]byte {
	return c.API.GetFromOthers(c.Request.Context(), c.User, path, askTimeout)
}

// rowsOf reads what appendRows has written; name is the member that has the id.
func rowsOf(body []byte, name string) []replicator.Row {
	var rows []replicator.Row
	err := doc.EachElement(body, func(value []byte) error {
		id, _ := doc.Unquote(doc.Lookup(value, name))
		state, _ := doc.Unquote(doc.Lookup(value, "state"))
		rows = append(rows, replicator.Row{ID: id, State: state, JSON: value})
		return nil
	})
	if err != nil {
		return nil // of a node that does not know what is meant
	}
	return rows
}

// appendRows appends an array.
func appendRows(dst []byte, rows []replicator.Row) []byte {
	dst = append(dst, '[')
	for i := range rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, '\n'), rows[i].JSON...)
	}
	return append(dst, ']')
}

func sendRows(c *core.Call, rows []replicator.Row) error {
	return c.Response.SendAppended(http.StatusOK, func(dst []byte) []byte { return appendRows(dst, rows) })
}

// sendPage sends rows with their number and the place of the first one.
func sendPage(c *core.Call, total, offset int, name string, rows []replicator.Row) error {
	return c.Response.SendAppended(http.StatusOK, func(dst []byte) []byte {
		dst = strconv.AppendInt(append(dst, `{"total_rows":`...), int64(total), 10)
		dst = strconv.AppendInt(append(dst, `,"offset":`...), int64(offset), 10)
		dst = append(append(append(dst, `,"`...), name...), `":`...)
		return append(appendRows(dst, rows), '}')
	})
}

// defaultJobs is how many jobs are shown without a limit.
const defaultJobs = 100

// getJobs answers GET /_scheduler/jobs: the jobs of all nodes.
func getJobs(c *core.Call) error {
	limit, err := number(c, "limit", defaultJobs)
	if err != nil {
		return err
	}
	skip, err := number(c, "skip", 0)
	if err != nil {
		return err
	}
	rows := c.API.Deps.Replicator.Jobs.All()
	for _, body := range others(c, "/_scheduler/jobs") {
		rows = append(rows, rowsOf(body, "id")...)
	}
	slices.SortFunc(rows, func(a, b replicator.Row) int { return cmp.Compare(a.ID, b.ID) })
	page := rows[min(skip, len(rows)):]
	return sendPage(c, len(rows), skip, "jobs", page[:min(limit, len(page))])
}

// number reads a parameter of _scheduler/jobs.
func number(c *core.Call, name string, unset int) (int, error) {
	text, given := c.QueryValue(name)
	if !given {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, fault.New(fault.QueryParse, name+" must be an integer")
	case n < 0:
		return 0, fault.New(fault.QueryParse, name+" not in range of [0,infinity]")
	}
	return n, nil
}

// getJob answers GET /_scheduler/jobs/{id}.
func getJob(c *core.Call) error {
	id := jobID(c.Path[2])
	if row, ok := c.API.Deps.Replicator.Jobs.Get(id); ok {
		return c.Response.SendJSON(http.StatusOK, row.JSON)
	}
	if found := others(c, "/_scheduler/jobs/"+url.PathEscape(id)); len(found) > 0 {
		return c.Response.SendJSON(http.StatusOK, found[0])
	}
	return errMissing()
}

// jobID undoes what becomes of a plus in a path.
func jobID(segment string) string { return strings.ReplaceAll(segment, " ", "+") }

func errMissing() error { return fault.New(fault.NotFound, "missing") }

// getNodeJobs answers GET /_node/{name}/_scheduler/jobs.
func getNodeJobs(c *core.Call) error { return sendRows(c, c.API.Deps.Replicator.Jobs.All()) }

// getNodeJob answers GET /_node/{name}/_scheduler/jobs/{id}.
func getNodeJob(c *core.Call) error {
	row, ok := c.API.Deps.Replicator.Jobs.Get(jobID(c.Path[4]))
	if !ok {
		return errMissing()
	}
	return c.Response.SendJSON(http.StatusOK, row.JSON)
}

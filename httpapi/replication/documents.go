package replication

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"divan/cluster"
	"divan/httpapi/core"
	"divan/httpapi/listing"
	"divan/replicator"
	"divan/replicator/spec"
	"divan/storage/doc"
	"divan/storage/fault"
)

// defaultDatabase is the one whose documents are shown when none is named.
const defaultDatabase = "_replicator"

// getDocs answers GET /_scheduler/docs, and everything below it: the documents of
// a replicator database, or one of them.
func getDocs(c *core.Call) error {
	db, below, ok := splitPath(c.Path[2:])
	if !ok {
		return fault.New(fault.BadRequest, "Invalid path")
	}
	if len(below) == 1 {
		return getDoc(c, db, below[0])
	}
	return listDocs(c, db)
}

// splitPath finds the name of the replicator database, whose slashes need not be
// escaped, in front of the id of a document.
func splitPath(path []string) (db string, below []string, ok bool) {
	if len(path) == 0 {
		return defaultDatabase, nil, true
	}
	for i := range path {
		if db = strings.Join(path[:i+1], "/"); spec.IsDatabase(db) {
			below = path[i+1:]
			return db, below, len(below) < 2
		}
	}
	return "", nil, false
}

// getDoc answers for one document: the node tells that runs its replication, and
// else the document itself.
func getDoc(c *core.Call, db, id string) error {
	d, err := c.API.Deps.Coordinator.DB(c.Request.Context(), db)
	if err != nil {
		return err
	}
	row, ok := c.API.Deps.Replicator.Documents.Get(db, id)
	if ok {
		return c.Response.SendJSON(http.StatusOK, row.JSON)
	}
	found, err := d.Open(c.Request.Context(), cluster.OpenOptions{ID: id})
	switch {
	case fault.Is(err, fault.NotFound):
		return errMissing()
	case err != nil:
		return err
	}
	row = replicator.Stored(db, id, found.Body)
	if row.State != replicator.Completed && row.State != replicator.Failed {
		if found := others(c, "/_scheduler/docs/"+url.PathEscape(db)+"/"+url.PathEscape(id)); len(found) > 0 {
			return c.Response.SendJSON(http.StatusOK, found[0])
		}
	}
	return c.Response.SendJSON(http.StatusOK, row.JSON)
}

// listDocs answers for the documents of a database in the order of their ids.
func listDocs(c *core.Call, db string) error {
	v, err := listing.ParseQuery(c.Query)
	if err != nil {
		return err
	}
	states, err := wantedStates(c)
	if err != nil {
		return err
	}
	d, err := c.API.Deps.Coordinator.DB(c.Request.Context(), db)
	if err != nil {
		return err
	}
	running := map[string]replicator.Row{}
	for _, row := range c.API.Deps.Replicator.Documents.Of(db) {
		running[row.ID] = row
	}
	for _, body := range others(c, "/_scheduler/docs/"+url.PathEscape(db)) {
		for _, row := range rowsOf(body, "doc_id") {
			running[row.ID] = row
		}
	}
	query, err := docsQuery(&v)
	if err != nil {
		return err
	}
	rows, err := d.AllDocs(c.Request.Context(), query)
	if err != nil {
		return err
	}
	defer rows.Close()
	var out []replicator.Row
	for passed := 0; (v.Limit < 0 || len(out) < v.Limit) && rows.Next(); {
		row := rows.Row()
		if row.Doc == nil || strings.HasPrefix(row.ID, doc.DesignPrefix) {
			continue
		}
		shown := replicator.Stored(db, row.ID, row.Doc.Body)
		if active, ok := running[row.ID]; ok && shown.State == replicator.Initializing {
			shown = active
		}
		if !slices.Contains(states, shown.State) {
			continue
		}
		if passed++; passed > v.Skip {
			out = append(out, shown)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return sendPage(c, int(rows.Total), v.Skip, "docs", out)
}

// docsQuery selects documents by the parameters of a view.
func docsQuery(v *listing.Params) (cluster.DocsQuery, error) {
	q := cluster.DocsQuery{Limit: cluster.NoLimit, Descending: v.Descending, InclusiveEnd: v.InclusiveEnd, IncludeDocs: true}
	text := func(key []byte) *string {
		if s, ok := doc.Unquote(key); ok {
			return &s
		}
		return nil // other values bound nothing: ids are texts
	}
	q.StartKey, q.EndKey = text(v.StartKey), text(v.EndKey)
	if v.Keys == nil {
		return q, nil
	}
	q.HasKeys = true
	return q, doc.EachElement(v.Keys, func(value []byte) error {
		if id, ok := doc.Unquote(value); ok {
			q.Keys = append(q.Keys, id)
		}
		return nil
	})
}

// wantedStates reads the parameter states: names with commas between.
func wantedStates(c *core.Call) ([]string, error) {
	known := replicator.States()
	text, given := c.QueryValue("states")
	if !given {
		return known, nil
	}
	wanted := strings.Split(strings.ToLower(text), ",")
	for i, name := range wanted {
		wanted[i] = strings.TrimSpace(name)
		if !slices.Contains(known, wanted[i]) {
			return nil, fault.New(fault.QueryParse, "States must be one or more of ["+strings.Join(known, ",")+"]")
		}
	}
	return wanted, nil
}

// getNodeDocs answers GET /_node/{name}/_scheduler/docs/{db}: the documents whose
// replications this node runs.
func getNodeDocs(c *core.Call) error {
	return sendRows(c, c.API.Deps.Replicator.Documents.Of(c.Path[4]))
}

// getNodeDoc answers GET /_node/{name}/_scheduler/docs/{db}/{id}.
func getNodeDoc(c *core.Call) error {
	row, ok := c.API.Deps.Replicator.Documents.Get(c.Path[4], c.Path[5])
	if !ok {
		return errMissing()
	}
	return c.Response.SendJSON(http.StatusOK, row.JSON)
}

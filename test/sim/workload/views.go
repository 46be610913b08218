package workload

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"divan/test/sim/history"
)

// DesignDocument has the view that clients ask: of each document its revision and
// the number in its body, by that number.
const DesignDocument = `{"views":{"revs":{"map":"function (doc) { emit(doc.n || 0, doc._rev); }","reduce":"_count"}}}`

// ViewPath is that view of a database.
func ViewPath(db string) string { return "/" + db + "/_design/sim/_view/revs" }

// ViewRow is a row of the view.
type ViewRow struct {
	ID    string `json:"id"`
	Key   int    `json:"key"`
	Value string `json:"value"` // revision
}

// views are reads of the view.
type views struct{ *asker }

// read reads rows of the view, which come in order, and of each document at most
// one; or counts them.
func (c *views) read(ctx context.Context, db string) {
	if c.rng.IntN(4) == 0 {
		var out struct {
			Rows []struct {
				Value int `json:"value"`
			} `json:"rows"`
		}
		r := c.call(ctx, http.MethodGet, ViewPath(db), nil, &out)
		if r.broken == nil && r.status < 500 && (r.status != http.StatusOK || len(out.Rows) > 1) {
			c.unexpected(r)
		}
		return
	}
	q := url.Values{"reduce": {"false"}}
	desc, some := c.rng.IntN(3) == 0, c.rng.IntN(3) == 0
	if desc {
		q.Set("descending", "true")
	}
	if some {
		q.Set("limit", "5")
	}
	var out struct {
		Rows []ViewRow `json:"rows"`
	}
	r := c.call(ctx, http.MethodGet, ViewPath(db)+"?"+q.Encode(), nil, &out)
	if r.broken != nil || r.status >= 500 {
		return
	}
	if r.status != http.StatusOK || some && len(out.Rows) > 5 {
		c.unexpected(r)
		return
	}
	if desc {
		slices.Reverse(out.Rows)
	}
	seen := map[string]bool{}
	for i, row := range out.Rows {
		if i > 0 && (out.Rows[i-1].Key > row.Key || out.Rows[i-1].Key == row.Key && out.Rows[i-1].ID > row.ID) {
			c.wrong("%s through %s at %v: rows out of order at %s", r.path, r.target.Name, r.Call, row.ID)
		}
		if seen[row.ID] && !some { // while the shards are read, one may lag: never of one shard
			c.wrong("%s through %s at %v: two rows of %s", r.path, r.target.Name, r.Call, row.ID)
		}
		seen[row.ID] = true
	}
	c.saw(r, db, out.Rows, !some)
}

// saw notes rows as reads of documents; whole says that they are all there are.
func (c *views) saw(r *request, db string, rows []ViewRow, whole bool) {
	read := history.Read{Span: r.Span, Node: r.target.Name, DB: db, Quorum: quorum, Status: http.StatusOK}
	var reads []history.Read
	missing := map[string]bool{}
	for i := range documents {
		missing[fmt.Sprint("d", i)] = whole
	}
	for _, row := range rows {
		if strings.HasPrefix(row.ID, "_") {
			c.unexpected(r)
			continue
		}
		read.ID, read.Rev, read.Number = row.ID, row.Value, row.Key
		reads = append(reads, read)
		missing[row.ID] = false
	}
	for id, none := range missing {
		if none {
			read.ID, read.Rev, read.Number, read.Status = id, "", 0, http.StatusNotFound
			reads = append(reads, read)
		}
	}
	c.Log.Note(func(h *history.History) { h.Reads = append(h.Reads, reads...) })
}

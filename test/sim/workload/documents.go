package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"divan/test/sim/history"
)

// body is a document as it is sent and received.
type body struct {
	ID          string            `json:"_id,omitempty"`
	Rev         string            `json:"_rev,omitempty"`
	Deleted     bool              `json:"_deleted,omitempty"`
	Revisions   *revisions        `json:"_revisions,omitempty"`
	Conflicts   []string          `json:"_conflicts,omitempty"`
	Attachments map[string]inline `json:"_attachments,omitempty"`
	Number      int               `json:"n,omitempty"`
	Pad         string            `json:"pad,omitempty"`
}

type revisions struct {
	Start int      `json:"start"`
	IDs   []string `json:"ids"`
}

// ancestors returns the revisions behind the first, newest first.
func (r *revisions) ancestors() []string {
	if r == nil {
		return nil
	}
	var out []string
	for i, id := range r.IDs {
		if i > 0 {
			out = append(out, fmt.Sprintf("%d-%s", r.Start-i, id))
		}
	}
	return out
}

// result is a server's answer to one edit.
type result struct {
	OK       bool   `json:"ok"`
	ID       string `json:"id"`
	Rev      string `json:"rev"`
	Accepted bool   `json:"accepted"`
	Error    string `json:"error"`
	Reason   string `json:"reason"`
}

// outcome of one edit among several.
func (r result) outcome() history.Outcome {
	switch {
	case r.Accepted:
		return history.Accepted
	case r.OK || r.Rev != "" && r.Error == "":
		return history.Acked
	case r.Error == "conflict":
		return history.Conflict
	case r.Error == "forbidden" || r.Error == "unauthorized":
		return history.Refused
	}
	return history.Unknown
}

func path(db, id string, q url.Values) string {
	p := "/" + db + "/" + id
	if len(q) > 0 {
		p += "?" + q.Encode()
	}
	return p
}

// edited notes an edit and learns its revision.
func (c *Client) edited(e history.Edit) {
	if e.Outcome.Done() {
		if e.Rev == "" {
			c.wrong("%s/%s: an edit is %v without a revision", e.DB, e.ID, e.Outcome)
		}
		c.learn(e.DB, e.ID, e.Rev)
		switch before, known := c.paths[e.DB+"/"+e.ID+"/"+e.Parent]; {
		case e.Ancestors != nil:
			c.remember(e.DB, e.ID, e.Rev, e.Ancestors)
		case e.Parent == "":
			c.remember(e.DB, e.ID, e.Rev, nil) // perhaps of a document that is made anew: then it is no first one
		case known:
			c.remember(e.DB, e.ID, e.Rev, append([]string{e.Parent}, before...))
		}
		if e.Attachments != nil {
			c.atts[e.DB+"/"+e.ID+"/"+e.Rev] = e.Attachments
		}
	}
	c.Log.Note(func(h *history.History) { h.Edits = append(h.Edits, e) })
}

// put writes one document.
func (c *Client) put(ctx context.Context, db string) { c.write(ctx, db, c.someDoc(), false) }

// remove writes a tombstone, with a body so that it can be told from others,
// or without.
func (c *Client) remove(ctx context.Context, db string) {
	id := c.someDoc()
	if c.rng.IntN(2) == 0 {
		c.write(ctx, db, id, true)
		return
	}
	parent := c.parent(db, id)
	if parent == "" {
		return
	}
	q := url.Values{"rev": {parent}}
	e := history.Edit{DB: db, ID: id, Parent: parent, Quorum: c.copies("w", q), Deleted: true, Attachments: map[string]string{}}
	var res result
	r := c.call(ctx, http.MethodDelete, path(db, id, q), nil, &res)
	e.Span, e.Node, e.Outcome, e.Rev = r.Span, r.target.Name, history.OfStatus(r.status), res.Rev
	c.edited(e)
}

// write puts a document or a tombstone.
func (c *Client) write(ctx context.Context, db, id string, deleted bool) {
	in := body{Rev: c.parent(db, id), Number: c.Log.Number(), Deleted: deleted, Pad: c.pad()}
	q := url.Values{}
	e := history.Edit{DB: db, ID: id, Number: in.Number, Parent: in.Rev, Deleted: deleted, Quorum: c.copies("w", q), Attachments: map[string]string{}}
	var res result
	r := c.call(ctx, http.MethodPut, path(db, id, q), in, &res)
	e.Span, e.Node, e.Outcome, e.Rev = r.Span, r.target.Name, history.OfStatus(r.status), res.Rev
	if e.Outcome == history.Refused {
		c.unexpected(r)
	}
	c.edited(e)
	if e.Outcome == history.Conflict {
		c.readOne(ctx, db, id)
	}
}

// bulk writes several documents.
func (c *Client) bulk(ctx context.Context, db string) {
	var in struct {
		Docs []body `json:"docs"`
		W    int    `json:"w,omitempty"`
	}
	w := quorum
	if c.rng.IntN(4) == 0 {
		in.W = 1 + c.rng.IntN(3)
		w = in.W
	}
	var edits []history.Edit
	for _, i := range c.rng.Perm(12)[:1+c.rng.IntN(8)] {
		id := fmt.Sprint("d", i)
		b := body{ID: id, Rev: c.parent(db, id), Number: c.Log.Number(), Deleted: c.rng.IntN(8) == 0, Pad: c.pad()}
		in.Docs = append(in.Docs, b)
		edits = append(edits, history.Edit{DB: db, ID: id, Number: b.Number, Parent: b.Rev, Deleted: b.Deleted, Quorum: w, Attachments: map[string]string{}})
	}
	r := c.call(ctx, http.MethodPost, "/"+db+"/_bulk_docs", in, nil)
	var out []result
	if r.status == http.StatusCreated || r.status == http.StatusAccepted {
		if err := json.Unmarshal(r.answer, &out); r.broken == nil && (err != nil || len(out) != len(edits)) {
			c.unexpected(r)
		}
	} else if history.OfStatus(r.status) != history.Unknown {
		c.unexpected(r)
	}
	for i, e := range edits {
		e.Span, e.Node = r.Span, r.target.Name
		if i < len(out) {
			e.Outcome, e.Rev = out[i].outcome(), out[i].Rev
		}
		c.edited(e)
	}
}

// replicate writes revisions that were made elsewhere: branches of what this
// client knows, or of nothing. The answer does not tell how many copies have
// them.
func (c *Client) replicate(ctx context.Context, db string) {
	var in struct {
		Docs     []body `json:"docs"`
		NewEdits bool   `json:"new_edits"`
	}
	var edits []history.Edit
	for _, i := range c.rng.Perm(12)[:1+c.rng.IntN(4)] {
		id := fmt.Sprint("d", i)
		revs := &revisions{Start: 2, IDs: []string{c.revID(), c.revID()}}
		parent := c.parent(db, id)
		if before, known := c.paths[db+"/"+id+"/"+parent]; known {
			revs = &revisions{Start: len(before) + 2, IDs: revs.IDs[:1]}
			for _, rev := range append([]string{parent}, before...) {
				_, hash, _ := strings.Cut(rev, "-")
				revs.IDs = append(revs.IDs, hash)
			}
		}
		b := body{ID: id, Rev: fmt.Sprintf("%d-%s", revs.Start, revs.IDs[0]), Revisions: revs, Number: c.Log.Number(), Deleted: c.rng.IntN(10) == 0}
		in.Docs = append(in.Docs, b)
		edits = append(edits, history.Edit{
			DB: db, ID: id, Number: b.Number, Rev: b.Rev, Deleted: b.Deleted, Ancestors: revs.ancestors(), Quorum: 1, Attachments: map[string]string{},
		})
	}
	var out []result
	r := c.call(ctx, http.MethodPost, "/"+db+"/_bulk_docs", in, nil)
	if r.status == http.StatusCreated || r.status == http.StatusAccepted {
		if err := json.Unmarshal(r.answer, &out); r.broken == nil && err != nil {
			c.unexpected(r)
		}
	}
	for _, e := range edits {
		e.Span, e.Node, e.Outcome = r.Span, r.target.Name, history.OfStatus(r.status)
		if i := slices.IndexFunc(out, func(o result) bool { return o.ID == e.ID }); i >= 0 || r.broken != nil {
			e.Outcome = history.Unknown // failures are listed
		}
		c.edited(e)
	}
}

// read reads a document, its winner or all leaves.
func (c *Client) read(ctx context.Context, db string) {
	id := c.someDoc()
	if c.rng.IntN(4) > 0 {
		c.readOne(ctx, db, id)
		return
	}
	q := url.Values{"open_revs": {"all"}, "revs": {"true"}}
	c.copies("r", q)
	var leaves []struct {
		OK *body `json:"ok"`
	}
	r := c.call(ctx, http.MethodGet, path(db, id, q), nil, nil)
	if r.status != http.StatusOK || r.broken != nil || json.Unmarshal(r.answer, &leaves) != nil {
		return
	}
	for _, l := range leaves {
		if l.OK != nil {
			c.Log.Note(func(h *history.History) {
				h.Reads = append(h.Reads, history.Read{Span: r.Span, Node: r.target.Name, DB: db, ID: id, Status: r.status, Rev: l.OK.Rev, Number: l.OK.Number})
			})
			c.learn(db, id, l.OK.Rev)
			c.remember(db, id, l.OK.Rev, l.OK.Revisions.ancestors())
		}
	}
}

// readOne reads the winner.
func (c *Client) readOne(ctx context.Context, db, id string) {
	q := url.Values{"revs": {"true"}, "conflicts": {"true"}}
	read := history.Read{DB: db, ID: id, Quorum: c.copies("r", q)}
	var got body
	r := c.call(ctx, http.MethodGet, path(db, id, q), nil, &got)
	if r.broken != nil || r.status >= 500 {
		return
	}
	if r.status != http.StatusOK && r.status != http.StatusNotFound {
		c.unexpected(r)
		return
	}
	read.Span, read.Node, read.Status, read.Rev, read.Number, read.Ancestors = r.Span, r.target.Name, r.status, got.Rev, got.Number, got.Revisions.ancestors()
	c.Log.Note(func(h *history.History) { h.Reads = append(h.Reads, read) })
	if got.Rev != "" {
		c.learn(db, id, append(got.Conflicts, got.Rev)...)
		c.remember(db, id, got.Rev, read.Ancestors)
	}
}

// readAll reads several documents with one request.
func (c *Client) readAll(ctx context.Context, db string) {
	var in struct {
		Docs []body2 `json:"docs"`
	}
	for _, i := range c.rng.Perm(12)[:1+c.rng.IntN(6)] {
		in.Docs = append(in.Docs, body2{ID: fmt.Sprint("d", i)})
	}
	var out struct {
		Results []struct {
			ID string `json:"id"`
		} `json:"results"`
	}
	r := c.call(ctx, http.MethodPost, "/"+db+"/_bulk_get?revs=true", in, &out)
	if r.broken != nil || r.status >= 500 {
		return
	}
	if r.status != http.StatusOK || len(out.Results) != len(in.Docs) {
		c.unexpected(r)
		return
	}
	for i, got := range out.Results {
		if got.ID != in.Docs[i].ID {
			c.unexpected(r)
		}
	}
}

// body2 names a document.
type body2 struct {
	ID string `json:"id"`
}

// diff asks which revisions are missing.
func (c *Client) diff(ctx context.Context, db string) {
	in := map[string][]string{}
	for key, revs := range c.known {
		if id, ok := strings.CutPrefix(key, db+"/"); ok && len(in) < 5 {
			in[id] = revs
		}
	}
	var out map[string]any
	if r := c.call(ctx, http.MethodPost, "/"+db+"/_revs_diff", in, &out); r.broken == nil && r.status < 500 && r.status != http.StatusOK {
		c.unexpected(r)
	}
}

// list reads all ids, which come in order and once each.
func (c *Client) list(ctx context.Context, db string) {
	var out struct {
		Rows []struct {
			ID string `json:"id"`
		} `json:"rows"`
	}
	r := c.call(ctx, http.MethodGet, "/"+db+"/_all_docs", nil, &out)
	if r.broken != nil || r.status >= 500 {
		return
	}
	if r.status != http.StatusOK {
		c.unexpected(r)
	}
	for i := 1; i < len(out.Rows); i++ {
		if out.Rows[i-1].ID >= out.Rows[i].ID {
			c.wrong("_all_docs of %s through %s at %v: %s before %s", db, r.target.Name, r.Call, out.Rows[i-1].ID, out.Rows[i].ID)
		}
	}
}

// compact starts a compaction.
func (c *Client) compact(ctx context.Context, db string) {
	c.call(ctx, http.MethodPost, "/"+db+"/_compact", struct{}{}, nil)
}

// purge makes documents of its own, and purges them.
func (c *Client) purge(ctx context.Context, db string) {
	id := fmt.Sprintf("p%d-%d", c.id, c.rng.IntN(3))
	revs := c.known[db+"/"+id]
	if len(revs) == 0 || c.rng.IntN(2) == 0 {
		c.write(ctx, db, id, false)
		return
	}
	rev := revs[len(revs)-1]
	var out struct {
		Purged map[string][]string `json:"purged"`
	}
	r := c.call(ctx, http.MethodPost, "/"+db+"/_purge", map[string][]string{id: {rev}}, &out)
	p := history.Purge{Span: r.Span, Node: r.target.Name, DB: db, ID: id, Rev: rev}
	if slices.Contains(out.Purged[id], rev) {
		p.Outcome = history.OfStatus(r.status)
		delete(c.known, db+"/"+id)
	}
	c.Log.Note(func(h *history.History) { h.Purges = append(h.Purges, p) })
}

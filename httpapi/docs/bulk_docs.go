package docs

import (
	"math"
	"net/http"

	"divan/cluster"
	"divan/httpapi/core"
	"divan/replicator/spec"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// bulkDocs serves POST /{db}/_bulk_docs (api.md 8.3).
func bulkDocs(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	body, err := readBulk(c)
	if err != nil {
		return err
	}
	b := &bulk{c: c, docs: body.Docs, replicated: !body.NewEdits}
	if err := b.options(body.Others); err != nil {
		return err
	}
	if err := b.prepare(); err != nil {
		return err
	}
	if b.allOrNothing && !b.replicated { // replications are taken one by one, as CouchDB does
		return b.refuseAll()
	}
	if err := b.store(); err != nil {
		return err
	}
	if err := b.update(); err != nil {
		return err
	}
	return b.answer()
}

// largeBulk is how many bytes a body has that is parsed as it comes.
const largeBulk = 4 << 20

// readBulk reads the documents of a request. In a large body the text of one that
// has no attachments must not have much more bytes than a document may: white
// space and escapes count for nothing there.
func readBulk(c *core.Call) (doc.Bulk, error) {
	text, rest, err := c.Body.ReadSmall(largeBulk)
	switch {
	case err != nil:
		return doc.Bulk{}, err
	case rest == nil:
		return doc.ParseBulk(text, c.Memory.InSteps())
	}
	defer c.Body.End()
	most := c.Config.CouchDB.MaxDocumentSize
	if most > math.MaxInt/maxExpansion {
		most = math.MaxInt / maxExpansion
	}
	space := c.Body.BorrowText()
	defer c.Body.ReturnText(space)
	return doc.ReadBulk(rest, doc.BulkLimits{Document: int(most) * maxExpansion, Space: c.Memory.InSteps(), Text: space})
}

// maxExpansion is how many times as long as its canonical form a document may be.
const maxExpansion = 2

// bulk is one _bulk_docs request. edits and results go together; an edit whose
// result has an error before update is not sent.
type bulk struct {
	c          *core.Call
	docs       []doc.Envelope
	replicated bool
	w          int

	allOrNothing bool // asked for: refused
	edits        []shard.Edit
	results      []shard.EditResult
	refused      int             // results with an error before update
	uploads      map[int]*upload // by the position of their document
}

// options reads w, which in the body counts more than in the query string, and
// all_or_nothing.
func (b *bulk) options(others []doc.Member) error {
	var err error
	for _, p := range b.c.Query {
		if p.Name == "w" && err == nil {
			b.w, err = core.ParseQuorum(p)
		}
	}
	for _, m := range others {
		switch m.Name {
		case "all_or_nothing":
			b.allOrNothing = string(m.Value) == "true"
		case "w":
			text, ok := doc.Unquote(m.Value)
			if !ok {
				text = string(m.Value)
			}
			b.w, err = core.ParseQuorum(core.Param{Name: "w", Value: text})
		}
	}
	return err
}

// prepare makes the edits. A document that cannot be taken refuses the whole
// request, one that this user may not write only itself.
func (b *bulk) prepare() error {
	b.edits = make([]shard.Edit, len(b.docs))
	b.results = make([]shard.EditResult, len(b.docs))
	for i := range b.docs {
		env := &b.docs[i]
		id := env.ID
		if !env.HasID {
			id = b.c.NewID()
			if !b.replicated {
				env.HasRev, env.HasRevisions = false, false
			}
		}
		edit, err := edit(b.c, id, env)
		if err != nil {
			return err
		}
		if b.edits[i], err = finishEdit(edit, b.replicated); err != nil {
			return err
		}
	}
	for i := range b.edits {
		if err := b.c.Rights().Prepare(b.c.Request.Context(), &b.edits[i]); err != nil {
			if spec.IsDatabase(b.c.DB.Name()) {
				return err // one refuses the whole request there (golden replication/10)
			}
			b.results[i].Err = err
			b.refused++
		}
	}
	return nil
}

// refuseAll answers that all_or_nothing cannot be promised, for each document.
func (b *bulk) refuseAll() error {
	out := []byte{'['}
	for i := range b.edits {
		if i > 0 {
			out = append(out, ',')
		}
		out = doc.AppendString(append(out, `{"id":`...), b.edits[i].ID)
		out = append(out, `,"rev":"0-","error":"not_implemented","reason":"all_or_nothing is not supported"}`...)
	}
	return b.c.Response.SendJSON(http.StatusExpectationFailed, append(out, ']'))
}

// store stores the attachments of all documents. They are all checked before
// the first is stored.
func (b *bulk) store() error {
	for i := range b.docs {
		if len(b.docs[i].Atts) == 0 || b.results[i].Err != nil || doc.IsLocal(b.edits[i].ID) {
			continue
		}
		if b.uploads == nil {
			b.uploads = make(map[int]*upload)
		}
		u := newUpload(b.c, b.edits[i].ID, b.replicated)
		if err := u.check(b.docs[i].Atts, false); err != nil {
			return err
		}
		b.uploads[i] = u
	}
	for i, u := range b.uploads {
		atts, err := u.attach(b.docs[i].Atts, nil)
		if err != nil {
			for _, stored := range b.uploads {
				stored.discard()
			}
			return err
		}
		b.edits[i].Atts = atts
	}
	return nil
}

// update writes the edits that were not refused.
func (b *bulk) update() error {
	edits, at := b.edits, []int(nil)
	if b.refused > 0 {
		edits = make([]shard.Edit, 0, len(b.edits)-b.refused)
		for i := range b.edits {
			if b.results[i].Err == nil {
				edits, at = append(edits, b.edits[i]), append(at, i)
			}
		}
	}
	results, err := b.c.DB.Update(b.c.Request.Context(), cluster.UpdateOptions{
		NewEdits: !b.replicated, W: b.w, User: b.c.User,
	}, edits)
	for i := range edits {
		b.c.Rights().Written(edits[i].ID)
	}
	if err != nil && results == nil {
		for _, u := range b.uploads {
			u.settle(err)
		}
		return err
	}
	if err == nil {
		b.c.API.Stats.CountBulk(len(b.edits), b.c.Start)
		countEdits(b.c.API.Stats, edits, results)
	}
	if b.refused == 0 {
		b.results = results
	} else {
		for i, r := range results {
			b.results[at[i]] = r
		}
	}
	for i, u := range b.uploads {
		u.settle(b.results[i].Err)
	}
	return err // with answers: some edits may be done, and keep their content
}

// answer tells the outcomes: of interactive edits each, of replicated edits only the
// failures; the number of copies that have a replicated edit does not count. A stub
// without an attachment refuses the whole request, as in CouchDB, no matter what became of
// the other documents.
func (b *bulk) answer() error {
	status := http.StatusCreated
	for i := range b.results {
		switch err := b.results[i].Err; {
		case err == nil:
			if b.results[i].Accepted && !b.replicated && status == http.StatusCreated {
				status = http.StatusAccepted
			}
		case fault.Is(err, fault.MissingStub):
			return err
		case fault.KindOf(err) == fault.Internal:
			status = http.StatusInternalServerError
		}
	}
	buf := append(make([]byte, 0, 2+len(b.edits)*96), '[')
	for i := range b.results {
		if b.results[i].Err == nil && b.replicated {
			continue
		}
		if len(buf) > 1 {
			buf = append(buf, ',')
		}
		buf = b.appendOutcome(buf, i)
	}
	return b.c.Response.SendJSON(status, append(buf, ']'))
}

// appendOutcome appends the outcome of one edit.
func (b *bulk) appendOutcome(dst []byte, i int) []byte {
	edit, result := &b.edits[i], &b.results[i]
	if result.Err == nil {
		dst = appendWritten(dst, edit.ID, result.Rev)
		if result.Accepted {
			dst = append(dst[:len(dst)-1], `,"accepted":true}`...)
		}
		return dst
	}
	dst = append(dst, `{"id":`...)
	dst = doc.AppendString(dst, edit.ID)
	if b.replicated {
		dst = append(dst, `,"rev":`...)
		dst = edit.Path.Rev().AppendJSON(dst)
	}
	dst = append(dst, ',')
	return append(dst, b.c.Describe(result.Err).AppendJSON(nil)[1:]...)
}

package docs

import (
	"net/http"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// putDocument serves PUT /{db}/{docid} (api.md 9.3).
func putDocument(c *core.Call) error {
	o, err := parseDocOptions(c.Query)
	if err != nil {
		return err
	}
	if err := checkPathID(c); err != nil {
		return err
	}
	var parts *docformat.RelatedReader
	var text []byte
	if contentType := c.Request.Header.Get("Content-Type"); core.MediaType(contentType) == "multipart/related" {
		parts, text, err = docformat.NewRelatedReader(c.Body.Parts(), contentType, c.Body.ReadPart)
	} else {
		text, err = c.Body.ReadDocument()
	}
	if err != nil {
		return err
	}
	env, err := doc.ParseEnvelope(text)
	if err != nil {
		return err
	}
	edit, err := pathEdit(c, &env, &o)
	if err != nil {
		return err
	}
	if err := c.Rights().Prepare(c.Request.Context(), &edit); err != nil {
		return err
	}
	up := newUpload(c, edit.ID, o.replicated)
	if edit.Atts, err = up.attach(env.Atts, parts); err != nil {
		return err
	}
	if parts != nil {
		parts.Drain()
	}
	return write(c, writeJob{edit: edit, options: &o, upload: up, location: true, etag: true})
}

// pathEdit makes the edit of a document whose id is in the path and whose
// revision may be in the body, the query string and If-Match.
func pathEdit(c *core.Call, env *doc.Envelope, o *docOptions) (shard.Edit, error) {
	edit, err := edit(c, c.DocID, env)
	if err != nil {
		return shard.Edit{}, err
	}
	inBody := len(edit.Path.IDs) > 0
	if inBody && o.hasRev && edit.Path.Rev().Compare(o.rev) != 0 {
		return shard.Edit{}, fault.New(fault.BadRequest,
			"Document rev from request body and query string have different values")
	}
	named := *o
	if inBody {
		named.rev, named.hasRev = edit.Path.Rev(), true
	}
	rev, err := requestRev(c, &named)
	if err != nil {
		return shard.Edit{}, err
	}
	if !inBody && !rev.IsZero() {
		edit.Path = doc.Path{Start: rev.Pos, IDs: []string{rev.ID}}
	}
	return finishEdit(edit, o.replicated)
}

// edit makes an edit of a document's body. The revision that the body names is
// in Path; finishEdit puts it where it belongs.
func edit(c *core.Call, id string, env *doc.Envelope) (shard.Edit, error) {
	if err := c.Rights().CheckID(id); err != nil {
		return shard.Edit{}, err
	}
	if err := c.Rights().CheckSize(env.ID, env.Body); err != nil {
		return shard.Edit{}, err
	}
	edit := shard.Edit{ID: id, Deleted: env.Deleted, Body: env.Body, Path: env.Path()}
	return edit, nil
}

// finishEdit turns the revision in Path into the parent of an interactive
// edit; a replicated one must have it.
func finishEdit(edit shard.Edit, replicated bool) (shard.Edit, error) {
	if !replicated {
		edit.Parent, edit.Path = edit.Path.Rev(), doc.Path{}
		return edit, nil
	}
	if len(edit.Path.IDs) == 0 {
		return shard.Edit{}, fault.New(fault.BadRequest,
			"When `new_edits: false`, the document needs `_rev` or `_revisions` specified")
	}
	return edit, nil
}

// checkPathID refuses the names below _local that are none.
func checkPathID(c *core.Call) error {
	if c.DocID == "_local" || c.DocID == doc.LocalPrefix {
		return fault.New(fault.BadRequest, "Invalid _local document id.")
	}
	return nil
}

// writeJob is one edit ready to be written, and how its answer looks.
type writeJob struct {
	edit     shard.Edit
	options  *docOptions
	upload   *upload
	created  bool   // 201 also for a tombstone
	reported bool   // 200 below the write quorum too (attachment DELETE)
	location bool   // Location of the document
	etag     bool   // ETag of the new revision
	part     string // attachment whose Location is answered instead of the document's
}

// write writes one edit and answers {"ok":true,"id":…,"rev":…}.
func write(c *core.Call, job writeJob) error {
	result, err := commit(c, &job.edit, job.upload, cluster.UpdateOptions{
		NewEdits: !job.options.replicated, W: job.options.w, User: c.User, Delayed: job.options.batch,
	})
	if job.options.batch && !fault.Is(err, fault.NoDatabase) && (err == nil || fault.KindOf(err) != fault.Internal) {
		return c.Response.SendJSON(http.StatusAccepted, appendBatched(nil, job.edit.ID))
	}
	if err != nil {
		return err
	}
	return answerWrite(c, &job, result)
}

// answerWrite tells the outcome of an edit that was written.
func answerWrite(c *core.Call, job *writeJob, result shard.EditResult) error {
	rev := result.Rev
	if job.options.replicated {
		rev = job.edit.Path.Rev()
	}
	status := http.StatusCreated
	switch {
	case job.reported:
		status = http.StatusOK
	case result.Accepted:
		status = http.StatusAccepted
	case job.edit.Deleted && !job.created:
		status = http.StatusOK
	}
	h := c.Response.Header()
	if job.etag {
		h["Etag"] = []string{quoteRev(rev)}
	}
	if job.location {
		h["Location"] = []string{locationOf(c, job.edit.ID, job.part)}
	}
	var small [256]byte
	return c.Response.SendJSON(status, appendWritten(small[:0], job.edit.ID, rev))
}

// appendWritten appends the answer to a write.
func appendWritten(dst []byte, id string, rev doc.Rev) []byte {
	dst = append(dst, `{"ok":true,"id":`...)
	dst = doc.AppendString(dst, id)
	dst = append(dst, `,"rev":`...)
	dst = rev.AppendJSON(dst)
	return append(dst, '}')
}

// appendBatched appends the answer to a write that is not waited for.
func appendBatched(dst []byte, id string) []byte {
	dst = append(dst, `{"ok":true,"id":`...)
	dst = doc.AppendString(dst, id)
	return append(dst, '}')
}

// locationOf is the absolute address of a document, or of one of its
// attachments when part is not empty.
func locationOf(c *core.Call, id, part string) string {
	b := make([]byte, 0, 128)
	b = append(b, c.BaseURL()...)
	b = append(b, '/')
	b = core.AppendEscaped(b, c.DB.Name())
	b = append(b, '/')
	b = core.AppendEscaped(b, id)
	if part != "" {
		b = append(b, '/')
		b = core.AppendEscaped(b, part)
	}
	return string(b)
}

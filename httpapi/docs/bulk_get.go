package docs

import (
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// bulkGet serves POST /{db}/_bulk_get (api.md 8.3).
func bulkGet(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	for _, p := range c.Query {
		switch p.Name {
		case "rev", "open_revs", "atts_since", "w", "new_edits":
			return fault.New(fault.BadRequest, `"`+p.Name+`" query parameter is not acceptable`)
		}
	}
	o, err := parseDocOptions(c.Query)
	if err != nil {
		return err
	}
	text, err := c.Body.ReadAll(0)
	if err != nil {
		return err
	}
	items, err := parseBulkGet(c, text)
	if err != nil {
		return err
	}
	// "*/*" and no Accept at all mean JSON here, unlike with open_revs.
	if core.Accepts(c.Request, "application/json") {
		return bulkGetJSON(c, items, &o)
	}
	switch {
	case core.Accepts(c.Request, "multipart/mixed"):
		return bulkGetParts(c, "multipart/mixed", items, &o)
	case core.Accepts(c.Request, "multipart/related"):
		return bulkGetParts(c, "multipart/related", items, &o)
	}
	return bulkGetJSON(c, items, &o)
}

// bulkGetItem is one entry of the request.
type bulkGetItem struct {
	id      string
	idText  []byte // as the client wrote it, null when there is none
	revText []byte // likewise
	rev     doc.Rev
	hasRev  bool
	since   []doc.Rev
	err     error // refusal of this entry alone
}

// itemSpace is about how many bytes an entry takes, its refusal included.
const itemSpace = 256

// parseBulkGet reads the body. What is wrong with one entry is told in its
// place in the answer.
func parseBulkGet(c *core.Call, text []byte) ([]bulkGetItem, error) {
	var docs []byte
	err := doc.EachMember(text, func(name string, value []byte) error {
		if name == "docs" {
			docs = value
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if docs == nil || !doc.IsArray(docs) {
		return nil, fault.New(fault.BadRequest, "Missing JSON list of 'docs'.")
	}
	var items []bulkGetItem
	err = c.Memory.EachElement(docs, itemSpace, func(value []byte) error {
		items = append(items, parseBulkGetItem(value))
		return nil
	})
	return items, err
}

func parseBulkGetItem(value []byte) bulkGetItem {
	it := bulkGetItem{idText: null(), revText: null()}
	if !doc.IsObject(value) {
		it.err = fault.New(fault.BadRequest, "document must be a JSON object")
		return it
	}
	members, hasID := 0, false
	var since []byte
	_ = doc.EachMember(value, func(name string, v []byte) error { // well-formed: a part of what was read
		members++
		switch name {
		case "id":
			it.idText, hasID = v, true
		case "rev":
			it.revText, it.hasRev = v, true
		case "atts_since":
			since = v
		}
		return nil
	})
	switch {
	case members == 0:
		it.err = fault.New(fault.BadRequest, "document must be a JSON object")
	case !hasID:
		it.revText, it.err = null(), fault.New(fault.BadRequest, "document id missed")
	default:
		it.check(since)
	}
	return it
}

func null() []byte { return []byte("null") }

// check interprets the members of an entry.
func (it *bulkGetItem) check(since []byte) {
	id, ok := doc.Unquote(it.idText)
	if !ok {
		it.revText, it.err = null(), fault.New(fault.IllegalDocID, "Document id must be a string")
		return
	}
	it.id = id
	if err := doc.ValidateID(id); err != nil {
		it.revText, it.err = null(), err
		return
	}
	if it.hasRev {
		text, ok := doc.Unquote(it.revText)
		if it.rev, it.err = doc.ParseRev(text); !ok || it.err != nil {
			it.err = fault.New(fault.BadRequest, "Invalid rev format")
			return
		}
	}
	it.readSince(since)
}

// readSince reads atts_since; what is wrong in it is named as the revision of
// the error, as CouchDB does.
func (it *bulkGetItem) readSince(since []byte) {
	if since == nil {
		return
	}
	if !doc.IsArray(since) {
		it.revText = since
		it.err = fault.New(fault.BadRequest, "att_since value must be array of revs.")
		return
	}
	it.err = doc.EachElement(since, func(v []byte) error {
		text, ok := doc.Unquote(v)
		rev, err := doc.ParseRev(text)
		if !ok || err != nil {
			it.revText = v
			return fault.New(fault.BadRequest, "Invalid rev format")
		}
		it.since = append(it.since, rev)
		return nil
	})
}

// appendError appends {"id":…,"rev":…,"error":…,"reason":…} for an entry.
func (it *bulkGetItem) appendError(dst []byte, f core.Failure) []byte {
	dst = append(dst, `{"id":`...)
	dst = append(dst, it.idText...)
	dst = append(dst, `,"rev":`...)
	dst = append(dst, it.revText...)
	dst = append(dst, ',')
	return append(dst, f.AppendJSON(nil)[1:]...)
}

// bulkGetJSON answers {"results":[{"id":…,"docs":[{"ok":…}|{"error":…}]}]}.
func bulkGetJSON(c *core.Call, items []bulkGetItem, o *docOptions) error {
	reader := newBulkGetReader(c, o, items)
	if err := reader.begin(); err != nil {
		return err
	}
	out := c.Stream("")
	out.Buf = append(out.Buf, `{"results":[`...)
	for i := range items {
		if i > 0 {
			out.Buf = append(out.Buf, ',')
		}
		style := o.style()
		if len(items[i].since) > 0 {
			style.Attachments, style.Since = true, items[i].since
		}
		if err := bulkGetEntry(c, out, style, reader, i); err != nil {
			return err
		}
	}
	out.Buf = append(out.Buf, "]}\n"...)
	return out.Close()
}

// bulkGetEntry answers one entry.
func bulkGetEntry(c *core.Call, out *core.Stream, style docformat.Style, reader *bulkGetReader, i int) error {
	it := &reader.items[i]
	out.Buf = append(out.Buf, `{"id":`...)
	out.Buf = append(out.Buf, it.idText...)
	out.Buf = append(out.Buf, `,"docs":[`...)
	results, err := reader.read(i)
	if err != nil {
		if c.Request.Context().Err() != nil {
			return err
		}
		out.Buf = append(it.appendError(append(out.Buf, `{"error":`...), c.Describe(err)), '}')
	}
	for i := range results {
		if i > 0 {
			out.Buf = append(out.Buf, ',')
		}
		if results[i].Doc == nil {
			missing := bulkGetItem{idText: it.idText, revText: results[i].Rev.AppendJSON(nil)}
			out.Buf = append(missing.appendError(append(out.Buf, `{"error":`...), missingFailure()), '}')
			continue
		}
		out.Buf = append(out.Buf, `{"ok":`...)
		if err := out.WriteDoc(c.Request.Context(), results[i].Doc, style); err != nil {
			return err
		}
		out.Buf = append(out.Buf, '}')
	}
	out.Buf = append(out.Buf, "]}"...)
	return out.Spill()
}

func missingFailure() core.Failure { return core.Failure{Name: "not_found", Reason: "missing"} }

// bulkGetParts answers each revision as a part of a multipart body.
func bulkGetParts(c *core.Call, kind string, items []bulkGetItem, o *docOptions) error {
	reader := newBulkGetReader(c, o, items)
	if err := reader.begin(); err != nil {
		return err
	}
	style := o.style()
	style.Attachments, style.Follows, style.EncodingInfo = true, true, true
	parts, err := startParts(c, kind, style)
	if err != nil {
		return err
	}
	for i := range items {
		if err := bulkGetPart(c, parts, reader, i); err != nil {
			return err
		}
	}
	return parts.close()
}

func bulkGetPart(c *core.Call, parts *docParts, reader *bulkGetReader, i int) error {
	it := &reader.items[i]
	parts.style.Since = it.since
	results, err := reader.read(i)
	if err != nil {
		if c.Request.Context().Err() != nil {
			return err
		}
		return parts.json(errorPart, it.appendError(nil, c.Describe(err)))
	}
	for i := range results {
		d := results[i].Doc
		if d == nil {
			text := append(results[i].Rev.AppendJSON([]byte(`{"rev":`)), ',')
			err = parts.json(errorPart, append(text, missingFailure().AppendJSON(nil)[1:]...))
		} else {
			err = parts.doc(d, "X-Doc-Id: "+docformat.HeaderValue(d.ID)+"\r\nX-Rev-Id: "+docformat.HeaderValue(d.Rev.String())+"\r\n")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

package httpapi

import (
	"divan/storage/doc"
	"divan/storage/fault"
)

// bulkGet serves POST /{db}/_bulk_get (api.md 8.3).
func bulkGet(c *call) error {
	if err := c.requireJSON(); err != nil {
		return err
	}
	for _, p := range c.query {
		switch p.name {
		case "rev", "open_revs", "atts_since", "w", "new_edits":
			return fault.New(fault.BadRequest, `"`+p.name+`" query parameter is not acceptable`)
		}
	}
	o, err := parseDocOptions(c.query)
	if err != nil {
		return err
	}
	text, err := c.readBody(0)
	if err != nil {
		return err
	}
	items, err := parseBulkGet(text)
	if err != nil {
		return err
	}
	// "*/*" and no Accept at all mean JSON here, unlike with open_revs.
	if c.accepts("application/json") {
		return c.bulkGetJSON(items, &o)
	}
	switch {
	case c.accepts("multipart/mixed"):
		return c.bulkGetParts("multipart/mixed", items, &o)
	case c.accepts("multipart/related"):
		return c.bulkGetParts("multipart/related", items, &o)
	}
	return c.bulkGetJSON(items, &o)
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

// parseBulkGet reads the body. What is wrong with one entry is told in its
// place in the answer.
func parseBulkGet(text []byte) ([]bulkGetItem, error) {
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
	err = doc.EachElement(docs, func(value []byte) error {
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
func (it *bulkGetItem) appendError(dst []byte, f failure) []byte {
	dst = append(dst, `{"id":`...)
	dst = append(dst, it.idText...)
	dst = append(dst, `,"rev":`...)
	dst = append(dst, it.revText...)
	dst = append(dst, ',')
	return append(dst, f.appendJSON(nil)[1:]...)
}

// bulkGetJSON answers {"results":[{"id":…,"docs":[{"ok":…}|{"error":…}]}]}.
func (c *call) bulkGetJSON(items []bulkGetItem, o *docOptions) error {
	reader := c.newBulkGetReader(o, items)
	if err := reader.begin(); err != nil {
		return err
	}
	out := c.stream("")
	out.buf = append(out.buf, `{"results":[`...)
	for i := range items {
		if i > 0 {
			out.buf = append(out.buf, ',')
		}
		style := o.style()
		if len(items[i].since) > 0 {
			style.attachments, style.since = true, items[i].since
		}
		if err := c.bulkGetEntry(out, style, reader, i); err != nil {
			return err
		}
	}
	out.buf = append(out.buf, "]}\n"...)
	return out.Close()
}

// bulkGetEntry answers one entry.
func (c *call) bulkGetEntry(out *streamWriter, style docStyle, reader *bulkGetReader, i int) error {
	it := &reader.items[i]
	out.buf = append(out.buf, `{"id":`...)
	out.buf = append(out.buf, it.idText...)
	out.buf = append(out.buf, `,"docs":[`...)
	results, err := reader.read(i)
	if err != nil {
		if c.r.Context().Err() != nil {
			return err
		}
		out.buf = append(it.appendError(append(out.buf, `{"error":`...), c.describe(err)), '}')
	}
	for i := range results {
		if i > 0 {
			out.buf = append(out.buf, ',')
		}
		if results[i].Doc == nil {
			missing := bulkGetItem{idText: it.idText, revText: results[i].Rev.AppendJSON(nil)}
			out.buf = append(missing.appendError(append(out.buf, `{"error":`...), missingFailure()), '}')
			continue
		}
		out.buf = append(out.buf, `{"ok":`...)
		if err := out.writeDoc(c.r.Context(), results[i].Doc, style); err != nil {
			return err
		}
		out.buf = append(out.buf, '}')
	}
	out.buf = append(out.buf, "]}"...)
	return out.spill()
}

func missingFailure() failure { return failure{name: "not_found", reason: "missing"} }

// bulkGetParts answers each revision as a part of a multipart body.
func (c *call) bulkGetParts(kind string, items []bulkGetItem, o *docOptions) error {
	reader := c.newBulkGetReader(o, items)
	if err := reader.begin(); err != nil {
		return err
	}
	style := o.style()
	style.attachments, style.follows, style.encoding = true, true, true
	parts, err := c.startParts(kind, style)
	if err != nil {
		return err
	}
	for i := range items {
		if err := c.bulkGetPart(parts, reader, i); err != nil {
			return err
		}
	}
	return parts.close()
}

func (c *call) bulkGetPart(parts *docParts, reader *bulkGetReader, i int) error {
	it := &reader.items[i]
	parts.style.since = it.since
	results, err := reader.read(i)
	if err != nil {
		if c.r.Context().Err() != nil {
			return err
		}
		return parts.json(errorPart, it.appendError(nil, c.describe(err)))
	}
	for i := range results {
		d := results[i].Doc
		if d == nil {
			text := append(results[i].Rev.AppendJSON([]byte(`{"rev":`)), ',')
			err = parts.json(errorPart, append(text, missingFailure().appendJSON(nil)[1:]...))
		} else {
			err = parts.doc(d, "X-Doc-Id: "+headerValue(d.ID)+"\r\nX-Rev-Id: "+headerValue(d.Rev.String())+"\r\n")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

package view

import (
	"bytes"
	"strconv"

	"divan/cluster/docformat"
	"divan/cluster/view"
	"divan/httpapi/core"
	"divan/httpapi/listing"
	"divan/storage/doc"
)

// Rows are the rows of a view one by one, as list functions read them.
type Rows struct {
	c    *core.Call
	a    *answer
	rows *view.Rows
	text bytes.Buffer
}

// Open opens a view with the parameters of the request. Close ends it.
func Open(c *core.Call, ddoc, name string) (*Rows, error) {
	def, err := c.API.Deps.Views.Definition(c.Request.Context(), c.DB, ddoc)
	if err != nil {
		return nil, err
	}
	params, inBody, err := listing.Read(c)
	if err != nil {
		return nil, err
	}
	v, err := find(c, def, place{ddoc: ddoc, view: name}, &params)
	if err != nil {
		return nil, err
	}
	a, err := prepare(c, v, &params, inBody)
	if err != nil {
		return nil, err
	}
	rows, err := v.Query(c.Request.Context(), a.query)
	if err != nil {
		return nil, err
	}
	return &Rows{c: c, a: a, rows: rows}, nil
}

// Head returns what is known before the rows, as a JSON object.
func (r *Rows) Head() []byte {
	dst := []byte{'{'}
	if r.a.counts {
		dst = strconv.AppendInt(append(dst, `"total_rows":`...), r.rows.Total, 10)
		dst = strconv.AppendInt(append(dst, `,"offset":`...), r.rows.Offset, 10)
	}
	if r.a.query.UpdateSeq {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = doc.AppendString(append(dst, `"update_seq":`...), r.rows.UpdateSeq)
	}
	return append(dst, '}')
}

// Row returns the next row, nil behind the last one. It is valid until the following
// call.
func (r *Rows) Row() ([]byte, error) {
	if !r.rows.Next() {
		return nil, r.rows.Err()
	}
	row := r.rows.Row()
	r.text.Reset()
	r.text.Write(r.a.appendRow(nil, row))
	if r.a.query.Docs.Include {
		r.text.WriteString(`,"doc":`)
		if row.Doc == nil || row.Doc.Deleted {
			r.text.WriteString("null")
		} else if err := docformat.NewWriter(&r.text, r.c.DB).WriteDoc(r.c.Request.Context(), row.Doc, r.a.style); err != nil {
			return nil, err
		}
	}
	r.text.WriteByte('}')
	return r.text.Bytes(), nil
}

// Close lets go of the rows.
func (r *Rows) Close() { r.rows.Close() }

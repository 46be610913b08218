package view

import (
	"strconv"

	"divan/cluster/view"
	"divan/httpapi/core"
	"divan/storage/doc"
)

// write writes an answer: what is told before the rows, then these, one per line.
func (a *answer) write(c *core.Call, out *core.Stream, rows *view.Rows) error {
	out.Buf = a.appendPrologue(out.Buf, rows)
	for first := true; rows.Next(); first = false {
		if !first {
			out.Buf = append(out.Buf, ",\r\n"...)
		}
		row := rows.Row()
		out.Buf = a.appendRow(out.Buf, row)
		if a.query.Docs.Include {
			out.Buf = append(out.Buf, `,"doc":`...)
			if row.Doc == nil || row.Doc.Deleted {
				out.Buf = append(out.Buf, "null"...)
			} else if err := out.WriteDoc(c.Request.Context(), row.Doc, a.style); err != nil {
				return err
			}
		}
		out.Buf = append(out.Buf, '}')
		if err := out.Spill(); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	out.Buf = append(out.Buf, "\r\n]}"...)
	return out.Spill()
}

// appendPrologue appends the members before the rows.
func (a *answer) appendPrologue(dst []byte, rows *view.Rows) []byte {
	dst = append(dst, '{')
	if a.counts {
		dst = strconv.AppendInt(append(dst, `"total_rows":`...), rows.Total, 10)
		dst = append(strconv.AppendInt(append(dst, `,"offset":`...), rows.Offset, 10), ',')
	}
	if a.query.UpdateSeq {
		dst = append(doc.AppendString(append(dst, `"update_seq":`...), rows.UpdateSeq), ',')
	}
	return append(dst, "\"rows\":[\r\n"...)
}

// appendRow appends a row up to its document, without the closing brace.
func (a *answer) appendRow(dst []byte, row *view.Row) []byte {
	if row.Overflow != "" {
		dst = append(dst, `{"key":null,"error":"reduce_overflow_error","reason":`...)
		return doc.AppendString(dst, row.Overflow)
	}
	dst = append(dst, '{')
	if !a.query.Reduce {
		dst = append(doc.AppendString(append(dst, `"id":`...), row.ID), ',')
	}
	dst = append(append(dst, `"key":`...), row.Key...)
	return append(append(dst, `,"value":`...), row.Value...)
}

package listing

import (
	"strconv"

	"divan/cluster"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
)

// write writes the list: totals, then the rows, one per line.
func (r *listing) write(c *core.Call, out *core.Stream, rows *cluster.DocRows) error {
	out.Buf = r.appendPrologue(out.Buf, rows)
	var err error
	if r.keys != nil {
		err = r.writeKeys(c, out, rows)
	} else {
		err = r.writeRows(c, out, rows)
	}
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		return err
	}
	out.Buf = append(out.Buf, "\r\n]}"...)
	return out.Spill()
}

// appendPrologue appends the members before the rows.
func (r *listing) appendPrologue(dst []byte, rows *cluster.DocRows) []byte {
	dst = append(dst, `{"total_rows":`...)
	dst = appendCount(dst, rows.Total)
	dst = append(dst, `,"offset":`...)
	dst = appendCount(dst, rows.Offset)
	if r.seq {
		dst = append(dst, `,"update_seq":`...)
		if rows.UpdateSeq == "" || r.keys != nil {
			dst = append(dst, "null"...)
		} else {
			dst = doc.AppendString(dst, rows.UpdateSeq)
		}
	}
	return append(dst, prologueEnd...)
}

// prologueEnd separates the members before the rows from the rows.
const prologueEnd = ",\"rows\":[\r\n"

// missingRow appends the row of a key without a document.
func missingRow(dst, key []byte) []byte {
	return append(append(append(dst, `{"key":`...), key...), `,"error":"not_found"}`...)
}

// appendCount appends a number of rows, null for one that is not known.
func appendCount(dst []byte, n int64) []byte {
	if n < 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, n, 10)
}

// writeRows writes the rows of a range.
func (r *listing) writeRows(c *core.Call, out *core.Stream, rows *cluster.DocRows) error {
	for first := true; rows.Next(); first = false {
		if !first {
			out.Buf = append(out.Buf, ",\r\n"...)
		}
		row := rows.Row()
		out.Buf = appendDocRow(out.Buf, row)
		if r.docs {
			if err := r.writeDoc(c, out, row.Doc); err != nil {
				return err
			}
		}
		out.Buf = append(out.Buf, '}')
		if len(out.Buf) >= core.StreamBuffer {
			if err := out.Spill(); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeKeys writes one row for each key.
func (r *listing) writeKeys(c *core.Call, out *core.Stream, rows *cluster.DocRows) error {
	for i, key := range r.keys {
		if i > 0 {
			out.Buf = append(out.Buf, ",\r\n"...)
		}
		var row *shard.Row
		if key[0] == '"' {
			if !rows.Next() {
				return rows.Err()
			}
			row = rows.Row()
		}
		if row == nil || row.Missing {
			out.Buf = missingRow(out.Buf, key)
		} else {
			out.Buf = appendDocRow(out.Buf, row)
			if r.docs {
				if err := r.writeDoc(c, out, row.Doc); err != nil {
					return err
				}
			}
			out.Buf = append(out.Buf, '}')
		}
		if err := out.Spill(); err != nil {
			return err
		}
	}
	return nil
}

// writeDoc writes of the document of a row what the account may see, null for a
// deleted one.
func (r *listing) writeDoc(c *core.Call, out *core.Stream, d *shard.Doc) error {
	out.Buf = append(out.Buf, `,"doc":`...)
	if d == nil || d.Deleted {
		out.Buf = append(out.Buf, "null"...)
		return nil
	}
	if err := r.rights.Screen(d); err != nil {
		return err
	}
	return out.WriteDoc(c.Request.Context(), d, r.style)
}

// appendDocRow appends a row up to its document, without the closing brace.
func appendDocRow(dst []byte, row *shard.Row) []byte {
	dst = append(dst, `{"id":`...)
	from := len(dst)
	dst = doc.AppendString(dst, row.ID)
	to := len(dst)
	dst = append(dst, `,"key":`...)
	dst = append(dst, dst[from:to]...)
	dst = append(dst, `,"value":{"rev":`...)
	dst = row.Rev.AppendJSON(dst)
	if row.Deleted {
		dst = append(dst, `,"deleted":true`...)
	}
	return append(dst, '}')
}

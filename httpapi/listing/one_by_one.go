package listing

import (
	"bytes"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
)

// Rows are the rows of _all_docs one by one, as list functions read them.
type Rows struct {
	c    *core.Call
	list *listing
	rows *cluster.DocRows
	next int // of list.keys
	text bytes.Buffer
}

// Open opens _all_docs with the parameters of the request. Close ends it.
func Open(c *core.Call) (*Rows, error) {
	v, inBody, err := Read(c)
	if err != nil {
		return nil, err
	}
	l, err := prepareList(c, docList{space: cluster.AllDocs}, &v, inBody)
	if err != nil {
		return nil, err
	}
	rows, err := c.DB.AllDocs(c.Request.Context(), l.query)
	if err != nil {
		return nil, err
	}
	return &Rows{c: c, list: l, rows: rows}, nil
}

// Head returns what is known before the rows, as a JSON object.
func (r *Rows) Head() []byte {
	head := r.list.appendPrologue(nil, r.rows)
	return append(bytes.TrimSuffix(head, []byte(prologueEnd)), '}')
}

// Row returns the next row, nil behind the last one. It is valid until the following
// call.
func (r *Rows) Row() ([]byte, error) {
	r.text.Reset()
	if keys := r.list.keys; keys != nil {
		if r.next == len(keys) {
			return nil, r.rows.Err()
		}
		key := keys[r.next]
		r.next++
		if key[0] != '"' {
			return missingRow(nil, key), nil
		}
		if !r.rows.Next() {
			return nil, r.rows.Err()
		}
		if r.rows.Row().Missing {
			return missingRow(nil, key), nil
		}
	} else if !r.rows.Next() {
		return nil, r.rows.Err()
	}
	return r.row(r.rows.Row())
}

// row makes the text of a row.
func (r *Rows) row(row *shard.Row) ([]byte, error) {
	r.text.Write(appendDocRow(nil, row))
	if r.list.docs {
		r.text.WriteString(`,"doc":`)
		if row.Doc == nil || row.Doc.Deleted {
			r.text.WriteString("null")
		} else if err := r.list.rights.Screen(row.Doc); err != nil {
			return nil, err
		} else if err := docformat.NewWriter(&r.text, r.c.DB).WriteDoc(r.c.Request.Context(), row.Doc, r.list.style); err != nil {
			return nil, err
		}
	}
	r.text.WriteByte('}')
	return r.text.Bytes(), nil
}

// Close lets go of the rows.
func (r *Rows) Close() { r.rows.Close() }

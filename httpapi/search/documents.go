package search

import (
	"divan/cluster/docformat"
	"divan/cluster/window"
	"divan/httpapi/core"
	"divan/httpapi/guard"
	"divan/shard"
	shardsearch "divan/shard/search"
)

// mostDocuments is how many documents are read at a time, at most.
const mostDocuments = 256

// documents gives hits their documents, as they are now.
type documents struct {
	c      *core.Call
	rights guard.Rights
	window window.Window
	rows   []shard.Row
	first  int // the hit of rows[0]
}

func newDocuments(c *core.Call) *documents {
	return &documents{c: c, rights: c.Rights(), window: window.New(mostDocuments, &c.Memory)}
}

// write writes the document of a hit as a member: null when it has gone.
func (d *documents) write(out *core.Stream, hits []shardsearch.Hit, i int) error {
	ctx := d.c.Request.Context()
	if i == 0 || i >= d.first+len(d.rows) {
		var ids []string
		for _, h := range hits[i:min(len(hits), i+d.window.Size())] {
			ids = append(ids, h.ID)
		}
		var err error
		if d.rows, err = d.c.DB.Winners(ctx, ids); err != nil {
			return err
		}
		d.first = i
		held, err := d.window.Hold(len(d.rows), func(k int) int { return d.rows[k].Doc.Size() })
		if err != nil {
			return err
		}
		clear(d.rows[held:])
		d.rows = d.rows[:held]
	}
	out.Buf = append(out.Buf, `,"doc":`...)
	row := &d.rows[i-d.first]
	if row.Doc == nil || row.Deleted || row.Doc.Deleted {
		out.Buf = append(out.Buf, "null"...)
		return nil
	}
	if err := d.rights.Screen(row.Doc); err != nil {
		return err
	}
	return out.WriteDoc(ctx, row.Doc, docformat.Style{})
}

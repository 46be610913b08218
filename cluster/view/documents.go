package view

import (
	"context"
	"fmt"

	"divan/cluster"
	"divan/cluster/window"
	"divan/shard"
	shardview "divan/shard/view"
	"divan/storage/fault"
	"divan/storage/memory"
)

// mostLinked is how many documents that values name are read at a time, at most.
const mostLinked = 512

// documents gives rows their documents: the copy that has the row has the one it
// was made from, others have those that the value names (linked documents).
type documents struct {
	ctx    context.Context // of the request, like the whole answer
	db     *cluster.DB
	window window.Window // of any part
	parts  []*part       // of the answer
	held   memory.Steps  // of the linked documents of all parts
	bytes  int           // that are counted on held
}

// of returns the document of the row at which a part stands, nil when there is
// none.
func (d *documents) of(p *part) (*shard.Doc, error) {
	r := p.row()
	l, named := r.Link()
	switch {
	case !named:
		return r.Doc, nil
	case l.ID == "":
		return nil, nil //nolint:nilnil // CouchDB's answer is null
	case !l.Rev.IsZero():
		return d.revision(l)
	}
	if p.at >= p.looked {
		if err := d.look(p); err != nil {
			return nil, err
		}
	}
	found := p.linked[p.at]
	delete(p.linked, p.at)
	if found != nil {
		d.bytes = max(d.bytes-found.Size(), 0)
		d.held.Reduce(d.bytes)
	}
	return found, nil
}

// giveUp drops the linked documents of all parts but one, which has given all of its own away.
// They are read again when it is their turn. It reports whether there were any.
func (d *documents) giveUp(but *part) bool {
	were := d.bytes > 0
	for _, p := range d.parts {
		if p != but {
			p.linked, p.looked = nil, min(p.looked, p.at)
		}
	}
	d.bytes = 0
	d.held.Reduce(0)
	return were
}

// revision reads one revision of a document.
func (d *documents) revision(l shardview.Link) (*shard.Doc, error) {
	found, err := d.db.Open(d.ctx, cluster.OpenOptions{ID: l.ID, Rev: l.Rev, R: 1})
	switch {
	case fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase):
		return nil, nil //nolint:nilnil // CouchDB's answer is null
	case err != nil:
		return nil, fmt.Errorf("read a linked document: %w", err)
	case found.Deleted:
		return nil, nil //nolint:nilnil // likewise
	}
	return found, nil
}

// look reads the documents that the values of the next rows name, of one window.
func (d *documents) look(p *part) error {
	var ids []string
	var rows []int
	p.looked = p.at
	for ; p.looked < len(p.rows) && len(ids) < d.window.Size(); p.looked++ {
		if l, named := p.rows[p.looked].Link(); named && l.ID != "" && l.Rev.IsZero() {
			ids, rows = append(ids, l.ID), append(rows, p.looked)
		}
	}
	found, err := d.db.Winners(d.ctx, ids)
	if err != nil {
		return fmt.Errorf("read linked documents: %w", err)
	}
	if len(found) < len(ids) {
		p.looked = rows[len(found)]
	}
	for i := range found {
		if one := found[i].Doc; found[i].Deleted || one != nil && one.Deleted {
			found[i].Doc = nil
		}
	}
	size := func(i int) int { return found[i].Doc.Size() }
	_, _ = d.window.Hold(len(found), size) // it counts on no memory
	held, err := window.Fit(&d.held, len(found), size)
	if err != nil && d.giveUp(p) {
		held, err = window.Fit(&d.held, len(found), size)
	}
	if err != nil && len(found) > 0 {
		return err
	}
	if held < len(found) {
		d.window.Shrink(len(found))
		p.looked = rows[held]
	}
	p.linked = make(map[int]*shard.Doc, held)
	for i := range held {
		if one := found[i].Doc; one != nil {
			p.linked[rows[i]] = one
			d.bytes += one.Size()
		}
	}
	return nil
}

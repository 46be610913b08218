package view

import (
	"bytes"
	"context"
	"fmt"

	"divan/cluster"
	"divan/cluster/window"
	"divan/shard"
	shardview "divan/shard/view"
	"divan/storage/doc"
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
	held   memory.Steps  // of the linked documents of all parts
	bytes  int           // that are counted on held
}

// link names the document of a row, as the value of the row does.
type link struct {
	id  string
	rev doc.Rev // zero: the winner
}

// linkOf returns what the value of a row names. named is false when it names
// nothing; id is empty when it names no document that can be.
func linkOf(r *shardview.Row) (l link, named bool) {
	if len(r.Value) == 0 || r.Value[0] != '{' || !bytes.Contains(r.Value, []byte(`"_`)) {
		return l, false
	}
	id, rev := doc.Lookup(r.Value, "_id"), doc.Lookup(r.Value, "_rev")
	if id == nil && rev == nil {
		return l, false
	}
	if l.id = r.ID; id != nil {
		l.id, _ = doc.Unquote(id)
	}
	if text, ok := doc.Unquote(rev); ok {
		var err error
		if l.rev, err = doc.ParseRev(text); err != nil {
			l.id = ""
		}
	}
	return l, true
}

// of returns the document of the row at which a part stands, nil when there is
// none.
func (d *documents) of(p *part) (*shard.Doc, error) {
	r := p.row()
	l, named := linkOf(r)
	switch {
	case !named:
		return r.Doc, nil
	case l.id == "":
		return nil, nil //nolint:nilnil // CouchDB's answer is null
	case !l.rev.IsZero():
		return d.revision(l)
	}
	if p.at >= p.looked {
		if err := d.look(p); err != nil {
			return nil, err
		}
	}
	found := p.linked[p.at]
	delete(p.linked, p.at)
	if found != nil && p.held {
		d.bytes = max(d.bytes-found.Size(), 0)
		d.held.Reduce(d.bytes)
	}
	return found, nil
}

// revision reads one revision of a document.
func (d *documents) revision(l link) (*shard.Doc, error) {
	found, err := d.db.Open(d.ctx, cluster.OpenOptions{ID: l.id, Rev: l.rev, R: 1})
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
		if l, named := linkOf(&p.rows[p.looked]); named && l.id != "" && l.rev.IsZero() {
			ids, rows = append(ids, l.id), append(rows, p.looked)
		}
	}
	found, err := d.db.Winners(d.ctx, ids)
	if err != nil {
		return fmt.Errorf("read linked documents: %w", err)
	}
	bytes := 0
	p.linked = make(map[int]*shard.Doc, len(rows))
	for i := range found {
		if one := found[i].Doc; one != nil && !found[i].Deleted && !one.Deleted {
			p.linked[rows[i]] = one
			bytes += one.Size()
		}
	}
	if err := d.window.Read(len(ids), bytes); err != nil {
		return err
	}
	err = d.held.Add(bytes)
	p.held = err == nil
	switch {
	case p.held:
		d.bytes += bytes
	case len(ids) == 1:
		return err
	default: // how many are read together was not the client's choice
		d.window.Shrink(len(ids))
	}
	return nil
}

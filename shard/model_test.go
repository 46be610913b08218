package shard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"divan/storage/doc"
)

// The model is a copy of a shard as plainly as it can be written: maps, no
// sizes kept, no orders kept, everything worked out anew for each question.
type model struct {
	docs  map[string]*modelDoc
	limit int
	seq   uint64
	purge uint64
}

type modelDoc struct {
	seq   uint64
	nodes map[doc.Rev]modelNode
}

type modelNode struct {
	parent  doc.Rev // zero: a root
	deleted bool
	stored  bool
	body    string
	atts    []modelAtt
}

type modelAtt struct {
	name, content string
	revpos        uint64
}

func (d *modelDoc) clone() *modelDoc { return &modelDoc{seq: d.seq, nodes: maps.Clone(d.nodes)} }

func (m *model) clone() *model {
	c := &model{docs: map[string]*modelDoc{}, limit: m.limit, seq: m.seq, purge: m.purge}
	for id, d := range m.docs {
		c.docs[id] = d.clone()
	}
	return c
}

// leaves in the order of semantics.md section 2.4.
func (d *modelDoc) leaves() []doc.Rev {
	inner := map[doc.Rev]bool{}
	for _, n := range d.nodes {
		inner[n.parent] = true
	}
	var out []doc.Rev
	for r := range d.nodes {
		if !inner[r] {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b doc.Rev) int {
		da, db := d.nodes[a].deleted, d.nodes[b].deleted
		if da != db {
			if da {
				return 1
			}
			return -1
		}
		return b.Compare(a)
	})
	return out
}

func (d *modelDoc) lineage(r doc.Rev) []doc.Rev {
	var out []doc.Rev
	for {
		n, ok := d.nodes[r]
		if !ok {
			return out
		}
		out = append(out, r)
		r = n.parent
	}
}

// merge adds a path and its content. It reports whether anything changed.
func (d *modelDoc) merge(p doc.Path, n modelNode, limit int) bool {
	before := maps.Clone(d.nodes)
	at := func(i int) doc.Rev { return doc.Rev{Pos: p.Start - uint64(i), ID: p.IDs[i]} }
	for i := range p.IDs {
		have, known := d.nodes[at(i)]
		if i == 0 && !have.stored {
			n.parent, n.stored = have.parent, true
			have = n
		}
		if i+1 < len(p.IDs) && have.parent.IsZero() {
			have.parent = at(i + 1)
			if _, ok := d.nodes[at(i+1)]; !ok {
				d.nodes[at(i+1)] = modelNode{}
			}
		}
		d.nodes[at(i)] = have
		if known && i+1 < len(p.IDs) && have.parent != at(i+1) {
			break
		}
	}
	if sameNodes(before, d.nodes) {
		// A purge may have left a path longer than the limit: what changes
		// nothing does not cut it.
		return false
	}
	d.stem(limit)
	return !sameNodes(before, d.nodes)
}

func sameNodes(a, b map[doc.Rev]modelNode) bool {
	return maps.EqualFunc(a, b, func(x, y modelNode) bool {
		return x.parent == y.parent && x.stored == y.stored && x.deleted == y.deleted
	})
}

// stem keeps what the newest limit revisions of some path hold: nodes and the
// links between them.
func (d *modelDoc) stem(limit int) {
	nodes, links := map[doc.Rev]bool{}, map[doc.Rev]bool{}
	for _, leaf := range d.leaves() {
		line := d.lineage(leaf)
		for i, r := range line[:min(limit, len(line))] {
			nodes[r] = true
			if i+1 < limit {
				links[r] = true
			}
		}
	}
	for r, n := range d.nodes {
		switch {
		case !nodes[r]:
			delete(d.nodes, r)
		case !links[r]:
			n.parent = doc.Rev{}
			d.nodes[r] = n
		}
	}
}

func (d *modelDoc) prune(revs []doc.Rev) (purged []doc.Rev) {
	leaves := d.leaves()
	for _, r := range revs {
		if at := slices.Index(leaves, r); at >= 0 {
			purged = append(purged, r)
			leaves = slices.Delete(leaves, at, at+1)
		}
	}
	keep := map[doc.Rev]bool{}
	for _, leaf := range leaves {
		for _, r := range d.lineage(leaf) {
			keep[r] = true
		}
	}
	maps.DeleteFunc(d.nodes, func(r doc.Rev, _ modelNode) bool { return !keep[r] })
	return purged
}

// answer is what the model says to an edit.
type answer struct {
	rev      doc.Rev
	conflict bool
}

// update does the edits of a request. ok is false when a stub is missing:
// nothing is done then.
func (m *model) update(newEdits bool, edits []Edit) (out []answer, ok bool) {
	work := m.clone()
	var order []string
	changed := map[string]bool{}
	for i := range edits {
		e := &edits[i]
		d := work.docs[e.ID]
		if d == nil {
			d = &modelDoc{nodes: map[doc.Rev]modelNode{}}
			work.docs[e.ID] = d
		}
		if !slices.Contains(order, e.ID) {
			order = append(order, e.ID)
		}
		a, did, ok := d.edit(newEdits, e, m.limit)
		if !ok {
			return nil, false
		}
		out = append(out, a)
		changed[e.ID] = changed[e.ID] || did
	}
	work.number(order, changed)
	*m = *work
	return out, true
}

// number gives the changed documents their sequences.
func (m *model) number(order []string, changed map[string]bool) {
	for _, id := range order {
		if changed[id] {
			m.seq++
			m.docs[id].seq = m.seq
		}
		if len(m.docs[id].nodes) == 0 {
			delete(m.docs, id)
		}
	}
}

func (d *modelDoc) edit(newEdits bool, e *Edit, limit int) (a answer, changed, ok bool) {
	n := modelNode{deleted: e.Deleted, body: string(e.Body)}
	path := e.Path
	var base doc.Rev
	if newEdits {
		parent := e.Parent
		leaves := d.leaves()
		switch {
		case len(leaves) == 0 && parent.IsZero():
		case len(leaves) == 0:
			return answer{conflict: true}, false, true
		case d.nodes[leaves[0]].deleted:
			if !parent.IsZero() || e.Deleted {
				return answer{conflict: true}, false, true
			}
			parent = leaves[0]
		case !slices.Contains(leaves, parent):
			return answer{conflict: true}, false, true
		default:
			base = parent
		}
		if n.atts, ok = d.attachments(e, parent.Pos+1, base); !ok {
			return a, false, false
		}
		id := doc.NewRevID(e.Deleted, parent, e.Body, attsOf(e, d, base))
		path = doc.Path{Start: parent.Pos + 1, IDs: []string{id}}
		if !parent.IsZero() {
			path.IDs = append(path.IDs, parent.ID)
		}
	} else if have := d.nodes[path.Rev()]; !have.stored {
		if n.atts, ok = d.attachments(e, path.Start, d.nearest(path)); !ok {
			return a, false, false
		}
	}
	return answer{rev: path.Rev()}, d.merge(path, n, limit), true
}

// nearest is the newest stored ancestor of a path's newest revision.
func (d *modelDoc) nearest(p doc.Path) doc.Rev {
	for i := 1; i < len(p.IDs); i++ {
		r := doc.Rev{Pos: p.Start - uint64(i), ID: p.IDs[i]}
		if _, ok := d.nodes[r]; !ok {
			continue
		}
		for _, up := range d.lineage(r) {
			if d.nodes[up].stored {
				return up
			}
		}
		return doc.Rev{}
	}
	return doc.Rev{}
}

func (d *modelDoc) attachments(e *Edit, pos uint64, base doc.Rev) ([]modelAtt, bool) {
	var out []modelAtt
	for _, a := range e.Atts {
		if !a.Stub {
			at := modelAtt{name: a.Name, content: string(a.Data), revpos: pos}
			if a.HasRevPos {
				at.revpos = a.RevPos
			}
			out = append(out, at)
			continue
		}
		i := slices.IndexFunc(d.nodes[base].atts, func(k modelAtt) bool { return k.name == a.Name })
		if i < 0 || a.HasRevPos && a.RevPos != d.nodes[base].atts[i].revpos {
			return nil, false
		}
		out = append(out, d.nodes[base].atts[i])
	}
	return out, true
}

// attsOf is what enters the revision id.
func attsOf(e *Edit, d *modelDoc, base doc.Rev) []doc.Attachment {
	var out []doc.Attachment
	for _, a := range e.Atts {
		content := string(a.Data)
		if a.Stub {
			i := slices.IndexFunc(d.nodes[base].atts, func(k modelAtt) bool { return k.name == a.Name })
			content = d.nodes[base].atts[i].content
		}
		out = append(out, doc.Attachment{Name: a.Name, ContentType: "x/y", Digest: digest(content)})
	}
	return out
}

// digest stands for the MD5 that the coordinator works out.
func digest(content string) (d [16]byte) {
	copy(d[:], content)
	return d
}

func (m *model) purgeItems(items []PurgeItem) [][]doc.Rev {
	var out [][]doc.Rev
	var order []string
	changed := map[string]bool{}
	for _, it := range items {
		m.purge++
		d := m.docs[it.ID]
		if d == nil {
			d = &modelDoc{nodes: map[doc.Rev]modelNode{}}
			m.docs[it.ID] = d
		}
		if !slices.Contains(order, it.ID) {
			order = append(order, it.ID)
		}
		purged := d.prune(it.Revs)
		changed[it.ID] = changed[it.ID] || len(purged) > 0
		out = append(out, purged)
	}
	m.number(order, changed)
	return out
}

// compact drops the contents of inner revisions.
func (m *model) compact() {
	for _, d := range m.docs {
		leaves := d.leaves()
		for r, n := range d.nodes {
			if !slices.Contains(leaves, r) {
				d.nodes[r] = modelNode{parent: n.parent, deleted: n.deleted}
			}
		}
	}
}

// Questions, answered as text.

func (m *model) ids() []string { return slices.Sorted(maps.Keys(m.docs)) }

func (d *modelDoc) text(r doc.Rev) string {
	n := d.nodes[r]
	text := fmt.Sprintf("%s %s", r, brief(n.body))
	if n.deleted {
		text += " deleted"
	}
	for _, a := range n.atts {
		text += fmt.Sprintf(" %s:%s@%d", a.name, a.content, a.revpos)
	}
	return text
}

func (m *model) rows() string {
	var out []string
	for _, id := range m.ids() {
		d := m.docs[id]
		leaves := d.leaves()
		if d.nodes[leaves[0]].deleted {
			continue
		}
		var conflicts []string
		for _, r := range leaves[1:] {
			if !d.nodes[r].deleted {
				conflicts = append(conflicts, r.String())
			}
		}
		out = append(out, fmt.Sprintf("%s %s %v", id, d.text(leaves[0]), conflicts))
	}
	return strings.Join(out, "\n")
}

func (m *model) feed() string {
	var out []string
	ids := m.ids()
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(m.docs[a].seq, m.docs[b].seq) })
	for _, id := range ids {
		d := m.docs[id]
		var leaves []string
		for _, r := range d.leaves() {
			leaves = append(leaves, r.String())
		}
		text := fmt.Sprintf("%d %s %s", d.seq, id, strings.Join(leaves, ","))
		if d.nodes[d.leaves()[0]].deleted {
			text += " deleted"
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

// counts are live and deleted documents and the external size.
func (m *model) counts() (live, deleted uint64, external int64) {
	for _, d := range m.docs {
		leaves := d.leaves()
		if d.nodes[leaves[0]].deleted {
			deleted++
		} else {
			live++
		}
		for _, r := range leaves {
			external += int64(len(d.nodes[r].body))
			for _, a := range d.nodes[r].atts {
				external += int64(len(a.content))
			}
		}
	}
	return live, deleted, external
}

// brief keeps failures readable.
func brief(body string) string {
	if len(body) > 100 {
		return fmt.Sprintf("%d bytes", len(body))
	}
	return body
}

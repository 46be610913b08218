package shard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/doc"
	"divan/storage/fault"
)

// TestAgainstModel does random requests on a copy and on the model, and asks
// both the same questions.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &run{rt: rt, m: &model{docs: map[string]*modelDoc{}, limit: rapid.IntRange(1, 6).Draw(rt, "limit")}}
		r.ids = []string{"a", "b", "_design/c"}
		r.n = open(t, newFS(), Options{CompileSelector: compileContains})
		r.n.create(CreateOptions{})
		defer func() { r.n.stop() }()
		rt.Repeat(map[string]func(*rapid.T){
			"interactive": func(rt *rapid.T) { r.rt = rt; r.update(true) },
			"replicated":  func(rt *rapid.T) { r.rt = rt; r.update(false) },
			"purge":       func(rt *rapid.T) { r.rt = rt; r.purge() },
			"compact":     func(rt *rapid.T) { r.rt = rt; r.compact() },
			"reopen": func(rt *rapid.T) {
				fs := r.n.fs
				r.n.stop()
				r.n = open(t, fs, Options{CompileSelector: compileContains})
			},
			"": func(rt *rapid.T) { r.rt = rt; r.compare() },
		})
		r.n.check()
	})
}

type run struct {
	rt *rapid.T
	n  *node
	m  *model
	// ids are what the model knows of.
	ids []string
	i   int // makes bodies differ
}

func (r *run) id() string { return rapid.SampledFrom(r.ids).Draw(r.rt, "id") }

// known picks a revision of a document, zero when it has none.
func (r *run) known(id string) doc.Rev {
	d := r.m.docs[id]
	if d == nil {
		return doc.Rev{}
	}
	revs := make([]doc.Rev, 0, len(d.nodes))
	for rev := range d.nodes {
		revs = append(revs, rev)
	}
	slices.SortFunc(revs, doc.Rev.Compare)
	if rapid.Bool().Draw(r.rt, "a leaf") {
		revs = d.leaves()
	}
	return rapid.SampledFrom(revs).Draw(r.rt, "rev")
}

func (r *run) edit(newEdits bool) Edit {
	r.i++
	e := Edit{ID: r.id(), Deleted: rapid.IntRange(0, 3).Draw(r.rt, "deleted") == 0, Body: []byte(fmt.Sprintf(`{"i":%d}`, r.i))}
	if rapid.IntRange(0, 3).Draw(r.rt, "large") == 0 {
		e.Body = body(doc.InlineLimit + r.i)
	}
	for _, name := range []string{"x", "y"} {
		switch rapid.IntRange(0, 5).Draw(r.rt, "att "+name) {
		case 0:
			text := fmt.Sprintf("content %d", r.i)
			e.Atts = append(e.Atts, EditAttachment{
				Attachment: doc.Attachment{
					Name: name, ContentType: "x/y", Digest: digest(text), Length: int64(len(text)), StoredLength: int64(len(text)), RevPos: 2,
				},
				Data: []byte(text), HasRevPos: rapid.Bool().Draw(r.rt, "has revpos"),
			})
		case 1:
			e.Atts = append(e.Atts, EditAttachment{Attachment: doc.Attachment{Name: name}, Stub: true})
		}
	}
	if newEdits {
		if rapid.IntRange(0, 4).Draw(r.rt, "named") > 0 {
			e.Parent = r.known(e.ID)
		}
		return e
	}
	e.Path = r.path(e.ID)
	return e
}

// path makes a path on top of a known revision or of nothing. The name of a
// revision says what its ancestors are, as hashes do.
func (r *run) path(id string) doc.Path {
	var line []doc.Rev // newest first
	if base := r.known(id); !base.IsZero() && rapid.IntRange(0, 4).Draw(r.rt, "base") > 0 {
		line = r.m.docs[id].lineage(base)
	}
	for range rapid.IntRange(0, 3).Draw(r.rt, "longer") {
		next := doc.Rev{Pos: 1, ID: rapid.SampledFrom([]string{"p", "q"}).Draw(r.rt, "name")}
		if len(line) > 0 {
			next.Pos = line[0].Pos + 1
			next.ID += fmt.Sprintf("%.3x", line[0].ID)
		}
		line = slices.Insert(line, 0, next)
	}
	if len(line) == 0 {
		line = []doc.Rev{{Pos: 1, ID: "r"}}
	}
	p := doc.Path{Start: line[0].Pos}
	for _, rev := range line[:rapid.IntRange(1, len(line)).Draw(r.rt, "named ancestors")] {
		p.IDs = append(p.IDs, rev.ID)
	}
	return p
}

func (r *run) update(newEdits bool) {
	edits := make([]Edit, rapid.IntRange(1, manyStates+4).Draw(r.rt, "edits"))
	for i := range edits {
		edits[i] = r.edit(newEdits)
	}
	got, err := r.n.Decide(context.Background(), DecideRequest{
		Insist: true,
		Copy:   copyName, NewEdits: newEdits, Edits: edits, Limits: Limits{Revs: r.m.limit},
	})
	want, ok := r.m.update(newEdits, edits)
	if !ok {
		if !fault.Is(err, fault.MissingStub) {
			r.rt.Fatalf("a stub is missing, but: %v", err)
		}
		return
	}
	if err != nil {
		r.rt.Fatalf("update: %v", err)
	}
	for i := range edits {
		if want[i].conflict != fault.Is(got[i].Err, fault.Conflict) || !want[i].conflict && got[i].Err != nil {
			r.rt.Fatalf("edit %d of %q on %s: conflict %v, but %v", i, edits[i].ID, edits[i].Parent, want[i].conflict, got[i].Err)
		}
		if got[i].Err == nil && got[i].Rev != want[i].rev {
			r.rt.Fatalf("edit %d of %q: %s, want %s", i, edits[i].ID, got[i].Rev, want[i].rev)
		}
	}
}

func (r *run) purge() {
	items := make([]PurgeItem, rapid.IntRange(1, 2).Draw(r.rt, "items"))
	for i := range items {
		items[i].ID = r.id()
		for range rapid.IntRange(0, 3).Draw(r.rt, "revs") {
			items[i].Revs = append(items[i].Revs, r.known(items[i].ID))
		}
	}
	got, err := r.n.Purge(context.Background(), copyName, items)
	if err != nil {
		r.rt.Fatalf("purge: %v", err)
	}
	for i, want := range r.m.purgeItems(items) {
		if !slices.Equal(got[i].Purged, want) {
			r.rt.Fatalf("purged %v of %q, want %v", got[i].Purged, items[i].ID, want)
		}
	}
}

func (r *run) compact() {
	if err := r.n.compactNow(Limits{}); err != nil {
		r.rt.Fatalf("compact: %v", err)
	}
	r.m.compact()
}

func (r *run) equal(what, got, want string) {
	if got != want {
		r.rt.Fatalf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

// text is a revision as the model prints it, with its attachments read.
func (r *run) text(d *Doc) string {
	text := d.Rev.String() + " " + brief(string(d.Body))
	if d.Deleted {
		text += " deleted"
	}
	for _, a := range d.Atts {
		text += fmt.Sprintf(" %s:%s@%d", a.Name, r.n.read(d.ID, a.Key), a.RevPos)
	}
	return text
}

func (r *run) compare() {
	live, deleted, external := r.m.counts()
	if got := r.n.info(); got.Live != live || got.Deleted != deleted || got.Seq != r.m.seq || got.PurgeSeq != r.m.purge || got.External != external {
		r.rt.Fatalf("info %+v, want %d %d %d %d %d", got, live, deleted, r.m.seq, r.m.purge, external)
	}
	var rows []string
	for _, row := range r.n.rows(DocsRequest{IncludeDocs: true, Conflicts: true}) {
		var conflicts []string
		for _, c := range row.Doc.Conflicts {
			conflicts = append(conflicts, c.String())
		}
		rows = append(rows, fmt.Sprintf("%s %s %v", row.ID, r.text(row.Doc), conflicts))
	}
	r.equal("rows", strings.Join(rows, "\n"), r.m.rows())
	r.equal("feed", strings.Join(r.n.feed(ChangesRequest{AllLeaves: true}), "\n"), r.m.feed())
	for _, id := range r.m.ids() {
		r.compareDoc(id, r.m.docs[id])
	}
	r.compareCounts()
}

func (r *run) compareDoc(id string, d *modelDoc) {
	leaves := d.leaves()
	all, err := r.n.OpenRevs(context.Background(), OpenRevsRequest{Copy: copyName, ID: id, All: true, WithPath: true})
	if err != nil {
		r.rt.Fatalf("open_revs of %q: %v", id, err)
	}
	var got, want []string
	for i := range all {
		got = append(got, r.text(all[i].Doc)+fmt.Sprint(pathOf(all[i].Doc.Revisions)))
		want = append(want, d.text(leaves[i])+fmt.Sprint(d.lineage(leaves[i])))
	}
	r.equal("leaves of "+id, strings.Join(got, "\n"), strings.Join(want, "\n"))
	for rev, n := range d.nodes {
		text, err := r.n.get(OpenRequest{ID: id, Rev: rev})
		switch {
		case n.stored && err == nil:
			r.equal("revision", r.text(text), d.text(rev))
		case n.stored || !fault.Is(err, fault.NotFound):
			r.rt.Fatalf("%s of %q: stored %v, but %v", rev, id, n.stored, err)
		}
	}
	w, err := r.n.get(OpenRequest{ID: id, AllowDeleted: true, RevsInfo: true})
	if err != nil {
		r.rt.Fatalf("%q: %v", id, err)
	}
	for i, rev := range d.lineage(leaves[0]) {
		want := StatusMissing
		if n := d.nodes[rev]; n.stored {
			want = StatusAvailable
			if n.deleted {
				want = StatusDeleted
			}
		}
		if w.RevsInfo[i].Rev != rev || w.RevsInfo[i].Status != want {
			r.rt.Fatalf("revs_info of %q: %v, %s is %s", id, w.RevsInfo, rev, want)
		}
	}
}

func pathOf(p doc.Path) []doc.Rev {
	var out []doc.Rev
	for i, id := range p.IDs {
		out = append(out, doc.Rev{Pos: p.Start - uint64(i), ID: id})
	}
	return out
}

// compareCounts asks for offset and pending, which the shard does not count one
// by one.
func (r *run) compareCounts() {
	lo := rapid.SampledFrom([]string{"", "_design/c", "a", "ab", "b", "c"}).Draw(r.rt, "lo")
	s, err := r.n.AllDocs(context.Background(), DocsRequest{Copy: copyName, Lo: lo})
	if err != nil {
		r.rt.Fatal(err)
	}
	before := uint64(0)
	for _, id := range r.m.ids() {
		if d := r.m.docs[id]; id < lo && !d.nodes[d.leaves()[0]].deleted {
			before++
		}
	}
	if s.Before != before {
		r.rt.Fatalf("%d documents before %q, want %d", s.Before, lo, before)
	}
	s.Close()
	after := rapid.Uint64Range(0, r.m.seq+1).Draw(r.rt, "after")
	c, err := r.n.Changes(context.Background(), ChangesRequest{Copy: copyName})
	if err != nil {
		r.rt.Fatal(err)
	}
	defer c.Close()
	pending := uint64(0)
	for _, d := range r.m.docs {
		if d.seq > after {
			pending++
		}
	}
	if got, err := c.Pending(after); err != nil || got != pending {
		r.rt.Fatalf("%d changes after %d, want %d (%v)", got, after, pending, err)
	}
}

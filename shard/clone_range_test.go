package shard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/shard/ring"
	"divan/storage"
	"divan/storage/doc"
)

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// halves are the two halves of the ring, and the copies that hold them.
var halves = []CloneOptions{
	{Source: copyName, Target: "shards/00000000-7fffffff/db.1763600000", Range: ring.Range{End: 1<<31 - 1}},
	{Source: copyName, Target: "shards/80000000-ffffffff/db.1763600000", Range: ring.Range{Begin: 1 << 31, End: 1<<32 - 1}},
}

func (n *node) createHalves(o CreateOptions) {
	n.t.Helper()
	for i := range halves {
		if err := n.Copies.Create(context.Background(), halves[i].Target, o); err != nil {
			n.t.Fatal(err)
		}
	}
}

// cloneHalves clones both halves in steps of so many bytes.
func (n *node) cloneHalves(t failer, stepBytes int) {
	t.Helper()
	for _, o := range halves {
		o.stepBytes = stepBytes
		o.Partitioned = n.partitioned(t)
		upto, err := n.Clones.Range(context.Background(), o)
		if err != nil {
			t.Fatalf("clone: %v", err)
		}
		if want := n.info().Seq; upto != want {
			t.Fatalf("cloned up to %d, want %d", upto, want)
		}
	}
}

// acquire gives the store of a copy to fn.
func (n *node) acquire(t failer, name string, fn func(s *storage.Store)) {
	t.Helper()
	s, err := n.engine.Acquire(name)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	defer n.engine.Release(s)
	fn(s)
}

func (n *node) partitioned(t failer) (yes bool) {
	n.acquire(t, copyName, func(s *storage.Store) { yes = s.Partitioned() })
	return yes
}

// feedOf lists all changes of a copy as text.
func (n *node) feedOf(t failer, name string) (rows []string) {
	t.Helper()
	n.acquire(t, name, func(s *storage.Store) {
		snap, err := s.Snapshot()
		if err != nil {
			t.Fatalf("snapshot: %v", err)
		}
		defer func() { _ = snap.Close() }()
		it, err := snap.Changes(storage.SeqRange{})
		if err != nil {
			t.Fatalf("changes: %v", err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			c := it.Change()
			rows = append(rows, fmt.Sprintf("%08d %s %v %v", c.Seq, c.ID, c.Deleted, c.Leaves))
		}
		if err := it.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		if counted, err := snap.CountChanges(0); err != nil || counted != uint64(len(rows)) {
			t.Fatalf("%s: %d changes, %d counted, %v", name, len(rows), counted, err)
		}
	})
	return rows
}

func (n *node) purgesOf(t failer, name string, after uint64) (out []string) {
	t.Helper()
	log, err := n.Purges(context.Background(), name, after)
	if err != nil {
		t.Fatalf("purges of %s: %v", name, err)
	}
	for _, p := range log {
		out = append(out, fmt.Sprintf("%08d %+v", p.Seq, p))
	}
	return out
}

// compareHalves fails unless the two halves hold together what the source holds, and
// each what it should.
func (n *node) compareHalves(t failer) {
	t.Helper()
	source := n.info()
	var feed, purges []string
	after := uint64(0)
	n.acquire(t, copyName, func(s *storage.Store) { after = s.Counters().PurgeTrimmed })
	for _, o := range halves {
		info, err := n.Info(context.Background(), o.Target)
		if err != nil || info.Seq != source.Seq || info.PurgeSeq != source.PurgeSeq {
			t.Fatalf("%s is at %d and %d, the source at %d and %d: %v", o.Target, info.Seq, info.PurgeSeq, source.Seq, source.PurgeSeq, err)
		}
		source.Live -= info.Live
		source.Deleted -= info.Deleted
		source.External -= info.External
		source.Active -= info.Active
		feed = append(feed, n.feedOf(t, o.Target)...)
		purges = append(purges, n.purgesOf(t, o.Target, after)...)
		n.acquire(t, o.Target, func(s *storage.Store) {
			n.compareOrigin(t, s)
			if err := s.Check(context.Background(), func(p string) { t.Fatalf("check of %s: %s", o.Target, p) }); err != nil {
				t.Fatalf("check: %v", err)
			}
		})
		n.compareDocs(t, o)
	}
	if source.Live != 0 || source.Deleted != 0 || source.External != 0 || source.Active != 0 {
		t.Fatalf("the source counts more: %+v", source)
	}
	slices.Sort(feed)
	slices.Sort(purges)
	if want := n.feedOf(t, copyName); !slices.Equal(feed, want) {
		t.Fatalf("changes of the halves:\n%s\nwant:\n%s", strings.Join(feed, "\n"), strings.Join(want, "\n"))
	}
	if want := n.purgesOf(t, copyName, after); !slices.Equal(purges, want) {
		t.Fatalf("purges of the halves:\n%s\nwant:\n%s", strings.Join(purges, "\n"), strings.Join(want, "\n"))
	}
}

func (n *node) compareOrigin(t failer, target *storage.Store) {
	t.Helper()
	n.acquire(t, copyName, func(s *storage.Store) {
		if s.Counters().Seq == 0 && s.Counters().PurgeSeq == 0 {
			return
		}
		want := append([]storage.Origin{{UUID: s.UUID(), Upto: s.Counters().Seq}}, s.Origins()...)
		if got := target.Origins(); !slices.Equal(got, want) {
			t.Fatalf("origins are %v, want %v", got, want)
		}
	})
}

// compareDocs compares the documents of a half with what the source holds there.
func (n *node) compareDocs(t failer, o CloneOptions) {
	t.Helper()
	n.acquire(t, o.Target, func(target *storage.Store) {
		n.acquire(t, copyName, func(source *storage.Store) {
			snap, err := target.Snapshot()
			if err != nil {
				t.Fatalf("snapshot: %v", err)
			}
			defer func() { _ = snap.Close() }()
			it, err := snap.Docs(storage.Range{})
			if err != nil {
				t.Fatalf("docs: %v", err)
			}
			for ok := it.First(); ok; ok = it.Next() {
				id := string(it.ID())
				if !o.Range.Contains(ring.Hash(id, source.Partitioned())) {
					t.Fatalf("%q is in %s", id, o.Target)
				}
				n.compareDoc(t, source, target, id)
			}
			if err := it.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
		})
	})
}

func (n *node) compareDoc(t failer, source, target *storage.Store, id string) {
	t.Helper()
	want, found, err := source.Reader().Record(id)
	if err != nil || !found {
		t.Fatalf("%q in the source: %v %v", id, found, err)
	}
	got, _, err := target.Reader().Record(id)
	if err != nil {
		t.Fatalf("%q: %v", id, err)
	}
	for _, node := range want.Tree.Nodes() {
		has, leaf, _ := got.Tree.Find(node.Rev)
		if !node.Stored && has.Stored && !leaf {
			// Compaction has dropped it in the source since.
			has.Stored, has.External, has.Active = false, 0, 0
		}
		if has != node {
			t.Fatalf("%q: %+v, want %+v", id, has, node)
		}
		if !node.Stored {
			continue
		}
		a, b := storedRevision(t, source, &want, node.Rev), storedRevision(t, target, &got, node.Rev)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%q %s: %+v, want %+v", id, node.Rev, b, a)
		}
		for i := range a.Atts {
			if x, y := contentOf(t, source, id, a.Atts[i].Key), contentOf(t, target, id, a.Atts[i].Key); !bytes.Equal(x, y) {
				t.Fatalf("%q %s: %s has %d bytes, want %d", id, node.Rev, a.Atts[i].Name, len(y), len(x))
			}
		}
	}
	if got.Tree.Len() != want.Tree.Len() || !bytes.Equal(got.Inline, want.Inline) {
		t.Fatalf("%q: %+v, want %+v", id, got, want)
	}
}

func storedRevision(t failer, s *storage.Store, rec *doc.Record, r doc.Rev) doc.Revision {
	t.Helper()
	if rec.Winner == r && rec.Inline != nil {
		v, err := doc.DecodeRevision(rec.Inline)
		if err != nil {
			t.Fatalf("%v", err)
		}
		return v
	}
	v, ok, err := s.Reader().Revision(rec.ID, r)
	if err != nil || !ok {
		t.Fatalf("%q %s in %s: %v %v", rec.ID, r, s.Name(), ok, err)
	}
	return v
}

func contentOf(t failer, s *storage.Store, id string, key [16]byte) []byte {
	t.Helper()
	r, err := s.OpenAttachment(id, key, 0, -1)
	if err != nil {
		t.Fatalf("content of %q in %s: %v", id, s.Name(), err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("content of %q: %v", id, err)
	}
	if err := r.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return b
}

var cloneIDs = []string{"a", "b", "c", "d", "e", "f", "_design/c", "p:x", "p:y", "q:x", "q\x00y"}

// attachLarge edits a document with content that comes as a stream.
func (r *run) attachLarge() {
	ctx := context.Background()
	id := rapid.SampledFrom([]string{"large1", "large2", "large4", "p:large"}).Draw(r.rt, "large id")
	size := rapid.SampledFrom([]int{0, 1, 70 << 10, 300 << 10, 1<<20 + 7}).Draw(r.rt, "size")
	key := newKey()
	w, err := r.n.Attachments.Put(ctx, copyName, id, key)
	if err != nil {
		r.rt.Fatalf("put attachment: %v", err)
	}
	r.i++
	if _, err = w.Write(bytes.Repeat([]byte{byte(r.i), 1, 2}, size/3+1)[:size]); err == nil {
		err = w.Close()
	}
	if err != nil {
		r.rt.Fatalf("put attachment: %v", err)
	}
	e := Edit{ID: id, Body: fmt.Appendf(nil, `{"i":%d}`, r.i)}
	if d, err := r.n.get(OpenRequest{ID: id}); err == nil {
		e.Parent = d.Rev
		for _, a := range d.Atts {
			if rapid.Bool().Draw(r.rt, "keep") {
				e.Atts = append(e.Atts, EditAttachment{Attachment: doc.Attachment{Name: a.Name}, Stub: true})
			}
		}
	}
	e.Atts = append(e.Atts, EditAttachment{Attachment: doc.Attachment{Name: fmt.Sprint(r.i), Key: key, Length: int64(size), StoredLength: int64(size)}})
	if size == 0 {
		e.Atts = e.Atts[:len(e.Atts)-1] // no edit refers to such
	}
	r.n.must(r.n.edits(true, e)[0])
}

// purgeAll removes a document with all that it has.
func (r *run) purgeDoc() {
	id := r.id()
	d := r.m.docs[id]
	if d == nil {
		return
	}
	items := []PurgeItem{{ID: id, Revs: d.leaves()}}
	if _, err := r.n.Purge(context.Background(), copyName, items); err != nil {
		r.rt.Fatalf("purge: %v", err)
	}
	r.m.purgeItems(items)
}

// TestCloneRange does random requests, clones now and then, and compares.
func TestCloneRange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &run{rt: rt, m: &model{docs: map[string]*modelDoc{}, limit: rapid.IntRange(1, 6).Draw(rt, "limit")}, ids: cloneIDs}
		r.n = open(t, newFS(), Options{})
		partitioned := rapid.Bool().Draw(rt, "partitioned")
		r.n.create(CreateOptions{Partitioned: partitioned})
		r.n.createHalves(CreateOptions{Partitioned: partitioned})
		defer func() { r.n.stop() }()
		clone := func() {
			r.n.cloneHalves(r.rt, rapid.SampledFrom([]int{1, 300, 5000, 0}).Draw(r.rt, "step"))
			r.n.compareHalves(r.rt)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"interactive": func(rt *rapid.T) { r.rt = rt; r.update(true) },
			"replicated":  func(rt *rapid.T) { r.rt = rt; r.update(false) },
			"large":       func(rt *rapid.T) { r.rt = rt; r.attachLarge() },
			"purge":       func(rt *rapid.T) { r.rt = rt; r.purge() },
			"purge all":   func(rt *rapid.T) { r.rt = rt; r.purgeDoc() },
			"compact": func(rt *rapid.T) {
				r.rt = rt
				if err := r.n.compactNow(Limits{PurgedInfos: rapid.IntRange(1, 4).Draw(rt, "purges")}); err != nil {
					rt.Fatalf("compact: %v", err)
				}
				r.m.compact()
			},
			"clone": func(rt *rapid.T) { r.rt = rt; clone() },
			"reopen": func(*rapid.T) {
				fs := r.n.fs
				r.n.stop()
				r.n = open(t, fs, Options{})
			},
		})
		r.rt = rt
		clone()
	})
}

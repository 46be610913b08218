package shard

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"divan/shard/export"
	"divan/shard/ring"
	"divan/storage"
	"divan/storage/archive"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/storagetest"
)

// backup is what was exported of a copy.
type backup struct {
	packs map[archive.Name][]byte
	shard archive.Shard
}

var everything = archive.Range{End: 1<<32 - 1}

// export writes the copy behind what was exported of it before.
func (n *node) export(t failer, b *backup) {
	t.Helper()
	if b.packs == nil {
		b.packs = map[archive.Name][]byte{}
	}
	if err := n.exportTo(t, b, &bytes.Buffer{}); err != nil {
		t.Fatalf("export: %v", err)
	}
}

// exportTo is export by way of a writer, whose bytes are the pack's.
func (n *node) exportTo(t failer, b *backup, to interface {
	io.Writer
	Bytes() []byte
},
) (err error) {
	var out *export.Written
	var since archive.Position
	if len(b.shard.Chain) > 0 {
		since = b.shard.Position()
	}
	measure := archive.NewMeasure(to)
	pack := archive.NewPackWriter(measure)
	n.acquire(t, copyName, func(s *storage.Store) {
		snap, e2 := s.Snapshot()
		if e2 != nil {
			t.Fatalf("snapshot: %v", e2)
		}
		defer func() { _ = snap.Close() }()
		out, err = export.Write(context.Background(), export.WriteOptions{Source: snap, Pack: pack, Range: everything, Since: since})
	})
	if err == nil {
		err = pack.Close()
	}
	if err != nil {
		return err
	}
	var id archive.UUID
	binary.BigEndian.PutUint64(id[:], uint64(len(b.packs)))
	object := measure.Object(archive.PackName(id))
	b.packs[object.Name] = to.Bytes()
	refs := func(entries []archive.Entry) (refs []archive.Ref) {
		for _, e := range entries {
			refs = append(refs, archive.Ref{Pack: &object, Kind: e.Kind, Extent: e.Extent})
		}
		return refs
	}
	b.shard.Range, b.shard.Copy, b.shard.Totals, b.shard.Locals = everything, out.Upto.Copy, out.Totals, refs(out.Locals)
	b.shard.Chain = append(b.shard.Chain, archive.Step{Range: everything, Upto: out.Upto, Refs: refs(out.Step)})
	return nil
}

func (b *backup) open(pack archive.Name) (io.ReaderAt, error) {
	return bytes.NewReader(b.packs[pack]), nil
}

// restore fills a new copy.
func (n *node) restore(t failer, b *backup, o *CloneOptions) error {
	t.Helper()
	ctx := context.Background()
	if n.Copies.Has(o.Target) {
		if err := n.Copies.Drop(ctx, o.Target); err != nil {
			t.Fatalf("drop: %v", err)
		}
	}
	co := CreateOptions{Partitioned: n.partitioned(t), ID: uint64(len(b.packs) % 2)}
	if err := n.Copies.Create(ctx, o.Target, co); err != nil {
		t.Fatalf("create: %v", err)
	}
	o.Partitioned = co.Partitioned
	return n.restoreInto(t, b, o)
}

// restoreInto fills a copy that is there.
func (n *node) restoreInto(t failer, b *backup, o *CloneOptions) (err error) {
	t.Helper()
	ro := export.ReadOptions{Shard: &b.shard, Open: b.open, Belongs: o.belongs}
	if o.Range == whole.Range {
		ro.Belongs = nil
	}
	n.acquire(t, o.Target, func(s *storage.Store) {
		ro.Target = s
		var f *storage.Filling
		if f, err = export.Read(context.Background(), ro); err != nil {
			return
		}
		if err = f.Ingest(); err != nil {
			err = errors.Join(err, f.Discard())
		}
	})
	return err
}

// whole is a copy of all.
var whole = CloneOptions{Source: copyName, Target: "shards/00000000-ffffffff/restored.1763600000", Range: ring.Range{End: 1<<32 - 1}}

// restoreAll restores the copy as a whole and its halves, and compares them with the source.
func (n *node) restoreAll(t failer, b *backup) {
	t.Helper()
	for _, o := range []CloneOptions{halves[0], halves[1], whole} {
		if err := n.restore(t, b, &o); err != nil {
			t.Fatalf("restore %s: %v", o.Target, err)
		}
		belongs := func(id string) bool { return o.belongs(id) }
		if got, want := n.localsOf(o.Target, belongs), n.localsOf(copyName, belongs); got != want {
			t.Fatalf("local documents of %s:\n%s\nwant:\n%s", o.Target, got, want)
		}
	}
	n.compareHalves(t)
	want, after := n.info(), uint64(0)
	n.acquire(t, copyName, func(s *storage.Store) { after = s.Counters().PurgeTrimmed })
	n.acquire(t, whole.Target, func(s *storage.Store) {
		n.compareOrigin(t, s)
		if err := s.Check(context.Background(), func(p string) { t.Fatalf("check: %s", p) }); err != nil {
			t.Fatalf("check: %v", err)
		}
		if c := s.Counters(); c.Seq != want.Seq || c.PurgeSeq != want.PurgeSeq || c.Live != want.Live || c.Deleted != want.Deleted || c.Active != want.Active {
			t.Fatalf("%+v, want %+v", c, want)
		}
	})
	if got, want := n.feedOf(t, whole.Target), n.feedOf(t, copyName); !slices.Equal(got, want) {
		t.Fatalf("changes are %q, want %q", got, want)
	}
	if got, want := n.purgesOf(t, whole.Target, after), n.purgesOf(t, copyName, after); !slices.Equal(got, want) {
		t.Fatalf("purges are %q, want %q", got, want)
	}
	n.compareDocs(t, whole)
}

// TestExport does random requests, exports now and then, restores and compares.
func TestExport(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &run{rt: rt, m: &model{docs: map[string]*modelDoc{}, limit: rapid.IntRange(1, 6).Draw(rt, "limit")}, ids: cloneIDs}
		r.n = open(t, newFS(), Options{})
		r.n.create(CreateOptions{Partitioned: rapid.Bool().Draw(rt, "partitioned"), ID: rapid.Uint64Range(0, 1).Draw(rt, "small")})
		defer func() { r.n.stop() }()
		var b backup
		export := func() {
			trimmed := uint64(0)
			r.n.acquire(r.rt, copyName, func(s *storage.Store) { trimmed = s.Counters().PurgeTrimmed })
			if len(b.shard.Chain) > 0 && trimmed > b.shard.Position().PurgeSeq {
				b = backup{} // archive.NewBase says so
			}
			r.n.export(r.rt, &b)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"interactive": func(rt *rapid.T) { r.rt = rt; r.update(true) },
			"replicated":  func(rt *rapid.T) { r.rt = rt; r.update(false) },
			"large":       func(rt *rapid.T) { r.rt = rt; r.attachLarge() },
			"purge":       func(rt *rapid.T) { r.rt = rt; r.purge() },
			"purge all":   func(rt *rapid.T) { r.rt = rt; r.purgeDoc() },
			"local":       func(rt *rapid.T) { r.rt = rt; r.putLocal() },
			"compact": func(rt *rapid.T) {
				r.rt = rt
				if err := r.n.compactNow(Limits{PurgedInfos: rapid.IntRange(1, 4).Draw(rt, "purges")}); err != nil {
					rt.Fatalf("compact: %v", err)
				}
				r.m.compact()
			},
			"export":  func(rt *rapid.T) { r.rt = rt; export() },
			"restore": func(rt *rapid.T) { r.rt = rt; export(); r.n.restoreAll(r.rt, &b) },
			"reopen": func(*rapid.T) {
				fs := r.n.fs
				r.n.stop()
				r.n = open(t, fs, Options{})
			},
		})
		r.rt = rt
		export()
		r.n.restoreAll(r.rt, &b)
	})
}

// putLocal changes a local document, or deletes it.
func (r *run) putLocal() {
	id := rapid.SampledFrom([]string{"_local/a", "_local/b", "_local/c", "_local/shard-sync-x"}).Draw(r.rt, "local")
	text := rapid.SampledFrom([]string{"", `{"a":1}`, `{"b":2}`}).Draw(r.rt, "text")
	r.n.acquire(r.rt, copyName, func(s *storage.Store) {
		err := r.n.states.submit(context.Background(), s, &exclusive{edits: true, fn: func(b *storage.Batch) error {
			if text == "" {
				b.DeleteLocal(id)
			} else {
				b.PutLocal(id, []byte(text))
			}
			return nil
		}}, false)
		if err != nil {
			r.rt.Fatalf("local document: %v", err)
		}
	})
}

// change makes some of everything in the copy.
func (n *node) change(tb testing.TB, rng *rand.Rand) {
	tb.Helper()
	if err := n.scatter(context.Background(), rng, 30); err != nil {
		tb.Fatal(err)
	}
	n.edits(true, make1000(4)...)
	for range 5 {
		n.putLocal(context.Background(), copyName, fmt.Sprint("_local/", rng.Uint64()), rev(tb, ""), `{"a":1}`)
	}
}

// failingWriter fails at one call.
type failingWriter struct {
	bytes.Buffer
	left int
}

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left--; w.left == 0 {
		return 0, io.ErrClosedPipe
	}
	return w.Buffer.Write(b)
}

// Each write of a pack fails in turn: the export says so. What was exported before is not touched.
func TestExportFails(t *testing.T) {
	n, rng := start(t, Options{}), rand.New(rand.NewPCG(5, 6))
	n.edit("_design/d", "", `{"views":{}}`)
	b := backup{packs: map[archive.Name][]byte{}}
	every := int(stride(11))
	for range 3 {
		n.change(t, rng)
		for left := 1 + rand.IntN(every); ; left += every {
			w := &failingWriter{left: left}
			err := n.exportTo(t, &b, w)
			if (err == nil) != (w.left > 0) {
				t.Fatalf("write %d: %v", left, err)
			}
			if err == nil {
				t.Logf("%d writes", left-w.left)
				break
			}
		}
	}
	n.restoreAll(t, &b)
}

// A bit of a pack is flipped, or the pack is cut: what reads it says so, and nothing is visible.
func TestRestoreDamaged(t *testing.T) {
	n, rng := start(t, Options{}), rand.New(rand.NewPCG(3, 4))
	var b backup
	for range 3 {
		n.change(t, rng)
		n.export(t, &b)
	}
	read := func(name archive.Name, pack []byte) error {
		good := b.packs[name]
		b.packs[name] = pack
		defer func() { b.packs[name] = good }()
		p, err := archive.OpenPack(bytes.NewReader(pack), int64(len(pack)))
		if err != nil {
			return err
		}
		for _, err := range p.All() {
			if err != nil {
				return err
			}
		}
		return n.restore(t, &b, &whole)
	}
	for i := range 300 / int(stride(10)) {
		name := b.shard.Chain[i%3].Refs[0].Pack.Name
		bad := slices.Clone(b.packs[name])
		if at := rng.IntN(len(bad)); rng.IntN(5) == 0 {
			bad = bad[:at]
		} else {
			bad[at] ^= 1 << rng.IntN(8)
		}
		if err := read(name, bad); !fault.Is(err, fault.Corruption) {
			t.Fatalf("%v", err)
		}
		n.restoredNothing(t)
	}
	// A step that ends elsewhere, the totals of another one, an entry of another kind, one that is cut.
	for i, spoil := range []func(s *archive.Shard){
		func(s *archive.Shard) { s.Chain[1].Upto.Seq++ },
		func(s *archive.Shard) { s.Chain = slices.Delete(s.Chain, 1, 2) },
		func(s *archive.Shard) { s.Chain[1], s.Chain[2] = s.Chain[2], s.Chain[1] },
		func(s *archive.Shard) { s.Chain = s.Chain[1:] },
		func(s *archive.Shard) { s.Chain = s.Chain[:2] },
		func(s *archive.Shard) { s.Totals.Live++ },
		func(s *archive.Shard) { s.Locals = s.Chain[0].Refs },
		func(s *archive.Shard) { s.Chain[0].Refs[0].Length-- },
		func(s *archive.Shard) { s.Chain[0].Refs = s.Chain[0].Refs[:0] },
		func(s *archive.Shard) { s.Chain[0].Refs = s.Locals },
	} {
		shard := b.shard
		b.shard.Chain = slices.Clone(shard.Chain)
		b.shard.Chain[0].Refs = slices.Clone(shard.Chain[0].Refs)
		spoil(&b.shard)
		if err := n.restore(t, &b, &whole); err == nil {
			t.Fatalf("spoilt in way %d, and restored", i)
		}
		n.restoredNothing(t)
		b.shard = shard
	}
	n.restoreAll(t, &b)
}

// An increment is larger than what is sorted at once: changes and purges come in several tables.
func TestExportManyChanges(t *testing.T) {
	n := start(t, Options{})
	n.edit("first", "", "{}")
	var b backup
	n.export(t, &b)
	var purges []PurgeItem
	for i := range 9 {
		edits := make([]Edit, 1000)
		for k := range edits {
			edits[k] = Edit{ID: fmt.Sprint("doc", k, "-", i), Body: []byte("{}")}
		}
		for k, r := range n.edits(true, edits...) {
			purges = append(purges, PurgeItem{ID: edits[k].ID, Revs: []doc.Rev{r.Rev}})
		}
	}
	n.export(t, &b)
	if refs := b.shard.Chain[1].Refs; len(refs) < 3 {
		t.Fatalf("%d tables", len(refs))
	}
	n.restoreAll(t, &b)
	for some := range slices.Chunk(purges[:len(purges)-100], 100) {
		if _, err := n.Purge(context.Background(), copyName, some); err != nil {
			t.Fatal(err)
		}
	}
	n.export(t, &b)
	if refs := b.shard.Chain[2].Refs; len(refs) < 3 {
		t.Fatalf("%d tables", len(refs))
	}
	n.restoreAll(t, &b)
}

// Exports and restores ask before they go on; a refusal ends them, and leaves nothing.
func TestExportAsks(t *testing.T) {
	n, refused := start(t, Options{}), errors.New("not now")
	n.change(t, rand.New(rand.NewPCG(7, 8)))
	var b backup
	n.export(t, &b)
	asked := 0
	pace := func(_ context.Context, bytes int) error {
		if asked += bytes; asked > 1<<20 {
			return refused
		}
		return nil
	}
	n.acquire(t, copyName, func(s *storage.Store) {
		snap, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = snap.Close() }()
		_, err = export.Write(context.Background(), export.WriteOptions{
			Source: snap, Pack: archive.NewPackWriter(io.Discard), Range: everything, Pace: pace,
		})
		if !errors.Is(err, refused) {
			t.Fatal(err)
		}
	})
	if err := n.restore(t, &b, &whole); err != nil { // makes the copy
		t.Fatal(err)
	}
	if err := n.Copies.Drop(context.Background(), whole.Target); err != nil {
		t.Fatal(err)
	}
	if err := n.Copies.Create(context.Background(), whole.Target, CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.acquire(t, whole.Target, func(s *storage.Store) {
		asked = 0
		_, err := export.Read(context.Background(), export.ReadOptions{Target: s, Shard: &b.shard, Open: b.open, Pace: pace})
		if !errors.Is(err, refused) {
			t.Fatal(err)
		}
	})
	n.restoredNothing(t)
}

// Each operation of the disk fails in turn while a copy is restored: the restore says so, unless it
// does not matter. The copy is empty then or has all, and can be restored.
func TestRestoreFails(t *testing.T) {
	base := storagetest.NewCrashFS()
	n, rng := open(t, base, Options{}), rand.New(rand.NewPCG(3, 4))
	n.create(CreateOptions{})
	var b backup
	for range 2 {
		if err := n.scatter(context.Background(), rng, 4); err != nil {
			t.Fatal(err)
		}
		n.export(t, &b)
	}
	if err := n.Copies.Create(context.Background(), whole.Target, CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.stop()
	failed, every := 0, stride(8)
	for k := 1 + rand.Int64N(every); ; k += every {
		var count, off atomic.Int64
		disk := base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
		n := open(t, errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if !strings.Contains(op.Path, whole.Target) && !strings.Contains(op.Path, "/staging/") || op.Kind.ReadOrWrite() == errorfs.OpIsRead {
				return nil
			}
			if off.Load() == 0 && count.Add(1) == k {
				return syscall.EIO
			}
			return nil
		})), Options{})
		err := n.restoreInto(t, &b, &whole)
		off.Store(1)
		_ = n.Close()        // a store that has failed says so
		_ = n.engine.Close() // again
		n = open(t, disk, Options{})
		empty := false
		n.acquire(t, whole.Target, func(s *storage.Store) { empty = s.Counters() == storage.Counters{} })
		if err == nil && empty {
			t.Fatalf("operation %d: nothing is there", k)
		}
		if err != nil {
			failed++
		}
		if empty {
			if err := n.restoreInto(t, &b, &whole); err != nil {
				t.Fatalf("operation %d: %v", k, err)
			}
		}
		n.compareDocs(t, whole)
		n.check()
		n.stop()
		if count.Load() < k {
			t.Logf("%d operations", count.Load())
			break
		}
	}
	if failed*int(every) < 10 {
		t.Errorf("only %d operations failed", failed)
	}
}

// restoredNothing fails unless a restore has left nothing.
func (n *node) restoredNothing(t failer) {
	t.Helper()
	n.acquire(t, whole.Target, func(s *storage.Store) {
		if s.Counters() != (storage.Counters{}) || len(s.Origins()) > 0 {
			t.Fatalf("%+v, origins %v", s.Counters(), s.Origins())
		}
	})
	list := func(dir string) []string {
		files, err := n.fs.List(dir)
		if err != nil {
			t.Fatalf("%v", err)
		}
		return files
	}
	if files := list("/data/" + whole.Target); slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, ".upload") }) {
		t.Fatalf("left behind: %q", files)
	}
	for _, dropped := range list("/data/staging") { // earlier targets are there, scratch directories are not
		if files := list("/data/staging/" + dropped); !slices.ContainsFunc(files, identity.Is) {
			t.Fatalf("left in %s: %q", dropped, files)
		}
	}
}

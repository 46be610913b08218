package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap/zapcore"
	"pgregory.net/rapid"

	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/keyspace"
)

const zapErrorLevel = zapcore.FatalLevel // failures that a test provokes are not shown

// borderIDs are ids of every kind: some open a top-level block, some a low one,
// most none; some hold bytes that keys escape.
func borderIDs() []string {
	var top, low, plain []string
	for i := 0; len(top) < 12 || len(low) < 40 || len(plain) < 80; i++ {
		id := fmt.Sprintf("k%06d", i*7919%1000000)
		switch h := keyspace.BorderHash(id); {
		case h&keyspace.TopMask == 0 && len(top) < 12:
			top = append(top, id)
		case h&keyspace.TopMask != 0 && h&keyspace.LowMask == 0 && len(low) < 40:
			low = append(low, id)
		case h&keyspace.LowMask != 0 && len(plain) < 80:
			plain = append(plain, id)
		}
	}
	ids := slices.Concat(top, low, plain, []string{"a\x00b", "a\x00", "\x00", "\xff\xff", "_design/x", "_design/y"})
	return ids
}

// machine drives a store and a model with the same operations.
type machine struct {
	t         *rapid.T
	fs        vfs.FS
	e         *Engine
	s         *Store
	w         *edits
	locals    map[string]string
	purges    []Purge
	lastPurge uint64
	conts     map[string][]byte // content key → bytes, of all that must be readable
	ids       []string
	nkey      byte
	stop      func()
}

func (m *machine) open() {
	m.e, m.stop = mustEngine(m.t, m.fs)
	s, err := m.e.Acquire(testStore)
	if err != nil {
		m.t.Fatalf("Acquire: %v", err)
	}
	m.s = s
}

func mustEngine(t *rapid.T, fs vfs.FS) (*Engine, func()) {
	e, err := NewEngine(Options{Dir: "data", FS: fs})
	if err != nil {
		t.Fatalf("NewEngine: %v", err)
	}
	return e, func() {
		if err := e.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}

func (m *machine) reopen() {
	m.e.Release(m.s)
	m.stop()
	m.open()
}

func (m *machine) id() string { return rapid.SampledFrom(m.ids).Draw(m.t, "id") }

// batch writes some edits as one batch.
func (m *machine) batch() {
	b := m.s.NewBatch()
	for range rapid.IntRange(1, 12).Draw(m.t, "edits") {
		m.edit(b)
	}
	commit(m.t, b)
}

func (m *machine) edit(b *Batch) {
	id := m.id()
	rec := m.w.recs[id]
	switch kind := rapid.IntRange(0, 9).Draw(m.t, "kind"); {
	case kind == 0 && rec != nil:
		m.forget(id)
		m.w.purge(b, id)
		m.lastPurge++
		p := Purge{Seq: m.lastPurge, ID: id, Revs: []doc.Rev{rec.Winner}}
		if m.lastPurge%2 == 0 {
			p.Paths = []doc.Path{rec.Tree.Path(rec.Winner, 0)}
		}
		p.UUID[0] = byte(p.Seq)
		b.PutPurge(p)
		m.purges = append(m.purges, p)
	case kind == 1:
		text := fmt.Sprintf("local %d", rapid.IntRange(0, 99).Draw(m.t, "n"))
		b.PutLocal("_local/"+id, []byte(text))
		m.locals["_local/"+id] = text
	case kind == 2:
		b.DeleteLocal("_local/" + id)
		delete(m.locals, "_local/"+id)
	case kind == 3 && len(m.purges) > 0:
		p := rapid.SampledFrom(m.purges).Draw(m.t, "trim")
		b.TrimPurges(p.Seq)
		m.purges = slices.DeleteFunc(m.purges, func(q Purge) bool { return q.Seq <= p.Seq })
	default:
		m.putDoc(b, id, kind)
	}
}

func (m *machine) putDoc(b *Batch, id string, kind int) {
	ed := edit{id: id, deleted: kind == 4, root: kind == 5}
	size := rapid.SampledFrom([]int{3, 200, 3000}).Draw(m.t, "size")
	ed.body = fmt.Appendf(nil, `{"n":%d,"x":"%s"}`, m.w.seq, strings.Repeat("y", size))
	if kind == 6 {
		data := bytes.Repeat([]byte{byte(m.w.seq)}, size)
		key := m.contentKey()
		b.PutAttachment(id, key, data)
		ed.atts = []doc.Attachment{{Name: "a", Key: key, Length: int64(size), StoredLength: int64(size)}}
		m.conts[id+string(key[:])] = data
	}
	m.w.put(b, ed)
}

func (m *machine) contentKey() (key keyspace.ContentKey) {
	m.nkey++
	key[0], key[1] = m.nkey, byte(m.w.seq)
	return key
}

// forget drops the contents of a document from the model.
func (m *machine) forget(id string) {
	for k := range m.conts {
		if strings.HasPrefix(k, id) && len(k) == len(id)+16 {
			delete(m.conts, k)
		}
	}
}

// upload streams a content and lets a document refer to it, or gives it up.
func (m *machine) upload() {
	id, key := m.id(), m.contentKey()
	data := bytes.Repeat([]byte{m.nkey, 1, 2}, rapid.SampledFrom([]int{0, 1000, keyspace.ChunkSize / 3, keyspace.ChunkSize, 3 * keyspace.ChunkSize}).Draw(m.t, "bytes"))
	w, err := m.s.NewAttachment(id, key)
	if err != nil {
		m.t.Fatalf("NewAttachment: %v", err)
	}
	for rest := data; len(rest) > 0; {
		n := min(len(rest), rapid.SampledFrom([]int{1000, keyspace.ChunkSize, keyspace.ChunkSize + 17}).Draw(m.t, "write"))
		if _, err := w.Write(rest[:n]); err != nil {
			m.t.Fatalf("Write: %v", err)
		}
		rest = rest[n:]
	}
	if rapid.IntRange(0, 3).Draw(m.t, "abort") == 0 {
		if err := w.Abort(); err != nil {
			m.t.Fatalf("Abort: %v", err)
		}
		return
	}
	if err := w.Close(); err != nil {
		m.t.Fatalf("Close: %v", err)
	}
	if rapid.Bool().Draw(m.t, "reopen between") {
		m.e.Release(m.s)
		_ = m.e.cache.closeIdle(0)
		s, err := m.e.Acquire(testStore)
		if err != nil {
			m.t.Fatalf("Acquire: %v", err)
		}
		m.s = s
	}
	b := m.s.NewBatch()
	if rapid.IntRange(0, 3).Draw(m.t, "give up") == 0 {
		b.DeleteAttachment(id, key)
	} else {
		n := int64(len(data))
		m.w.put(b, edit{id: id, atts: []doc.Attachment{{Name: "big", Key: key, Length: n, StoredLength: n}}})
		m.conts[id+string(key[:])] = data
	}
	commit(m.t, b)
}

// compact runs the store's compaction with this goroutine as the writer.
func (m *machine) compact() {
	keep := rapid.Uint64Range(0, 3).Draw(m.t, "keep")
	err := m.s.Compact(context.Background(), CompactOptions{
		PurgesToTrim: allButNewest(m.s, keep),
		Write: func(_ context.Context, fn func(*Batch) error) error {
			b := m.s.NewBatch()
			if err := fn(b); err != nil {
				b.Discard()
				return err
			}
			commit(m.t, b)
			return nil
		},
	})
	if err != nil {
		m.t.Fatalf("Compact: %v", err)
	}
	if seq := m.s.Counters().PurgeSeq; seq > keep {
		m.purges = slices.DeleteFunc(m.purges, func(q Purge) bool { return q.Seq <= seq-keep })
	}
	// Inner revisions have lost their bodies, and with them their attachments.
	m.w.load(m.t, m.s)
	used := map[string]bool{}
	for id, rec := range m.w.recs {
		for _, n := range rec.Tree.Nodes() {
			if _, leaf, _ := rec.Tree.Find(n.Rev); !leaf && n.Stored {
				m.t.Fatalf("%q: inner revision %v kept its body", id, n.Rev)
			}
		}
		for _, n := range rec.Tree.Leaves() {
			for _, a := range m.revision(rec, n.Rev).Atts {
				used[id+string(a.Key[:])] = true
			}
		}
	}
	for k := range m.conts {
		if !used[k] {
			m.absent(k)
			delete(m.conts, k)
		}
	}
}

func (m *machine) absent(k string) {
	id, key := k[:len(k)-16], keyspace.ContentKey([]byte(k[len(k)-16:]))
	r, err := m.s.OpenAttachment(id, key, 0, -1)
	if err == nil {
		_ = r.Close()
		m.t.Fatalf("attachment %q of %q is still there", key, id)
	}
}

func (m *machine) revision(rec *doc.Record, rev doc.Rev) doc.Revision {
	if rev == rec.Winner && rec.Inline != nil {
		v, err := doc.DecodeRevision(rec.Inline)
		if err != nil {
			m.t.Fatalf("DecodeRevision: %v", err)
		}
		return v
	}
	v, ok, err := m.s.Reader().Revision(rec.ID, rev)
	if err != nil || !ok {
		m.t.Fatalf("Revision(%q, %v) = %v, %v", rec.ID, rev, ok, err)
	}
	return v
}

// verify compares everything that can be read with the model.
func (m *machine) verify() {
	checkStore(m.t, m.s)
	snap, err := m.s.Snapshot()
	if err != nil {
		m.t.Fatalf("Snapshot: %v", err)
	}
	defer func() {
		if err := snap.Close(); err != nil {
			m.t.Fatalf("Close: %v", err)
		}
	}()
	var want Counters
	for _, rec := range m.w.recs {
		s := format.RecordSums(rec)
		want.Live += uint64(s.Live)
		want.Deleted += uint64(s.Deleted)
		want.External += s.External
		want.Active += s.Active
	}
	want.Seq, want.PurgeSeq, want.PurgeTrimmed = m.w.seq, m.lastPurge, snap.Counters().PurgeTrimmed
	if got := snap.Counters(); got != want {
		m.t.Fatalf("counters are %+v, want %+v", got, want)
	}
	m.verifyDocs(snap)
	m.verifyChanges(snap)
	m.verifyLocals(snap)
	m.verifyPurges()
	for k, data := range m.conts {
		m.verifyContent(k, data)
	}
}

func (m *machine) verifyDocs(snap *Snapshot) {
	lo, hi := "", ""
	if rapid.Bool().Draw(m.t, "bounded") {
		lo, hi = m.id(), m.id()
	}
	desc := rapid.Bool().Draw(m.t, "desc")
	var want []string
	var sums Sums
	for id, rec := range m.w.recs {
		if id >= lo && (hi == "" || id < hi) {
			want = append(want, id)
			sums.Add(format.RecordSums(rec))
		}
	}
	slices.Sort(want)
	if desc {
		slices.Reverse(want)
	}
	it, err := snap.Docs(Range{Lo: lo, Hi: hi, Desc: desc})
	if err != nil {
		m.t.Fatalf("Docs: %v", err)
	}
	var got []string
	for ok := it.First(); ok; ok = it.Next() {
		got = append(got, string(it.ID()))
		if rec := m.w.recs[string(it.ID())]; rec == nil || it.Head().Seq != rec.Seq || it.Head().Winner != rec.Winner || !bytes.Equal(it.Head().Inline, rec.Inline) {
			m.t.Fatalf("row %q is not the record", it.ID())
		}
	}
	if err := it.Close(); err != nil {
		m.t.Fatalf("Docs: %v", err)
	}
	if !slices.Equal(got, want) {
		m.t.Fatalf("docs in [%q, %q) are %q, want %q", lo, hi, got, want)
	}
	if !m.s.id.Partitioned {
		sums.External, sums.Active = 0, 0
	}
	if have, err := snap.Sums(lo, hi); err != nil || have != sums {
		m.t.Fatalf("Sums(%q, %q) = %+v, %v, want %+v", lo, hi, have, err, sums)
	}
	before := m.id()
	n := uint64(0)
	for id, rec := range m.w.recs {
		if id < before && !rec.Deleted {
			n++
		}
	}
	if have, err := snap.CountDocs(before); err != nil || have != n {
		m.t.Fatalf("CountDocs(%q) = %d, %v, want %d", before, have, err, n)
	}
	var h doc.Head
	ok, err := m.s.Reader().Head(before, &h)
	if rec := m.w.recs[before]; err != nil || ok != (rec != nil) || ok && h.Seq != rec.Seq {
		m.t.Fatalf("Head(%q) = %v, %v", before, ok, err)
	}
}

func (m *machine) verifyChanges(snap *Snapshot) {
	after := rapid.Uint64Range(0, m.w.seq+1).Draw(m.t, "after")
	bySeq := map[uint64]*doc.Record{}
	var want []uint64
	for _, rec := range m.w.recs {
		bySeq[rec.Seq] = rec
		if rec.Seq > after {
			want = append(want, rec.Seq)
		}
	}
	slices.Sort(want)
	it, err := snap.Changes(SeqRange{After: after})
	if err != nil {
		m.t.Fatalf("Changes: %v", err)
	}
	var got []uint64
	for ok := it.First(); ok; ok = it.Next() {
		c := it.Change()
		got = append(got, c.Seq)
		rec := bySeq[c.Seq]
		if rec == nil || rec.ID != string(c.ID) || c.Deleted != rec.Deleted || c.Leaves[0].Rev != rec.Winner || len(c.Leaves) != len(rec.Tree.Leaves()) {
			m.t.Fatalf("change %d is %+v, the record %+v", c.Seq, c, rec)
		}
	}
	if err := it.Close(); err != nil {
		m.t.Fatalf("Changes: %v", err)
	}
	if !slices.Equal(got, want) {
		m.t.Fatalf("changes after %d are %v, want %v", after, got, want)
	}
	if n, err := snap.CountChanges(after); err != nil || n != uint64(len(want)) {
		m.t.Fatalf("CountChanges(%d) = %d, %v, want %d", after, n, err, len(want))
	}
}

func (m *machine) verifyLocals(snap *Snapshot) {
	it, err := snap.Locals(Range{})
	if err != nil {
		m.t.Fatalf("Locals: %v", err)
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
		if m.locals[string(it.ID())] != string(it.Value()) {
			m.t.Fatalf("local %q is %q", it.ID(), it.Value())
		}
	}
	if err := it.Close(); err != nil || n != len(m.locals) {
		m.t.Fatalf("%d locals, want %d; %v", n, len(m.locals), err)
	}
}

func (m *machine) verifyPurges() {
	it, err := m.s.Purges(0)
	if err != nil {
		m.t.Fatalf("Purges: %v", err)
	}
	var got []Purge
	for ok := it.First(); ok; ok = it.Next() {
		got = append(got, it.Purge())
	}
	if err := it.Close(); err != nil {
		m.t.Fatalf("Purges: %v", err)
	}
	if fmt.Sprint(got) != fmt.Sprint(m.purges) {
		m.t.Fatalf("purges are %v, want %v", got, m.purges)
	}
}

func (m *machine) verifyContent(k string, data []byte) {
	id, key := k[:len(k)-16], keyspace.ContentKey([]byte(k[len(k)-16:]))
	off := rapid.IntRange(0, len(data)).Draw(m.t, "offset")
	n := rapid.IntRange(0, len(data)-off).Draw(m.t, "length")
	r, err := m.s.OpenAttachment(id, key, int64(off), int64(n))
	if err != nil {
		m.t.Fatalf("OpenAttachment: %v", err)
	}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, data[off:off+n]) {
		m.t.Fatalf("attachment at %d: %d of %d bytes, %v", off, len(got), n, err)
	}
	if err := r.Close(); err != nil {
		m.t.Fatalf("Close: %v", err)
	}
}

// TestModel: after any operations on a store, it reads as the model says, and
// Check finds nothing.
func TestModel(t *testing.T) {
	ids := borderIDs()
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			t: t, fs: vfs.NewMem(), w: newEdits(), ids: ids,
			locals: map[string]string{}, conts: map[string][]byte{},
		}
		e, stop := mustEngine(t, m.fs)
		if err := e.Create(testStore, CreateOptions{Small: rapid.Bool().Draw(t, "small"), Partitioned: rapid.Bool().Draw(t, "partitioned")}); err != nil {
			t.Fatalf("Create: %v", err)
		}
		stop()
		m.open()
		defer func() {
			m.e.Release(m.s)
			m.stop()
		}()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				m.reopen()
			case 1:
				m.upload()
			case 2:
				m.compact()
			default:
				m.batch()
			}
		}
		m.verify()
		m.reopen()
		m.verify()
	})
}

package postings_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"divan/shard/search/postings"
	"divan/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const copyName = "shards/00000000-ffffffff/db.1763600000"

// opened is an index, on an engine of its own.
type opened struct {
	e     *storage.Engine
	s     *storage.Store
	x     *storage.Index
	close func()
}

func open(t *testing.T, fs vfs.FS) *opened {
	t.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: "data", FS: fs, CacheBytes: 8 << 20, JoinIndex: postings.Join})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	o := &opened{e: e}
	if o.s, err = e.Acquire(copyName); err != nil {
		must(t, e.Create(copyName, storage.CreateOptions{}))
		o.s, err = e.Acquire(copyName)
	}
	must(t, err)
	o.x, err = e.Indexes().Acquire(o.s, "abc")
	must(t, err)
	o.close = func() {
		e.Indexes().Release(o.x)
		e.Release(o.s)
		must(t, e.Close())
		cancel()
		running.Wait()
	}
	return o
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// document is what the index should have of one; everything as text.
type document struct {
	terms  map[string][]uint32 // field and term, positions
	values map[string][]string // column and field, values
	stored string
}

var fieldNames = [...]string{"", "a", "ab", "b"}

// draw makes a document and gives it to an inverter.
func draw(r *rapid.T, v *postings.Inverter) document {
	d := document{terms: map[string][]uint32{}, values: map[string][]string{}}
	greatest, lengths := map[string]string{}, map[string]uint32{}
	field := rapid.SampledFrom(fieldNames[:])
	for position := range rapid.IntRange(0, 12).Draw(r, "terms") {
		f, term := field.Draw(r, "field"), rapid.SampledFrom([]string{"x", "xy", "y", "\xff", ""}).Draw(r, "term")
		v.Term(f, []byte(term), position*100)
		d.terms[f+" "+term] = append(d.terms[f+" "+term], uint32(position*100))
		greatest[f] = max(greatest[f], term)
		lengths[f]++
	}
	for f, n := range lengths {
		d.values["s "+f] = []string{greatest[f]}
		d.values["l "+f] = []string{string([]byte{postings.LengthByte(float64(n))})}
	}
	for range rapid.IntRange(0, 3).Draw(r, "values") {
		f, n := field.Draw(r, "field"), rapid.Float64().Draw(r, "number")
		v.Number(f, n)
		v.Facet(f, fmt.Sprint(n))
		v.Store(f, fmt.Append(nil, n))
		d.values["n "+f] = append(d.values["n "+f], fmt.Sprint(n))
		d.values["f "+f] = append(d.values["f "+f], fmt.Sprint(n))
		d.stored += fmt.Sprintf("%s=%v;", f, n)
	}
	return d
}

// TestDocuments: lists, columns, ids and stored fields are those of the documents, with
// updates, deletions, documents that come twice, flushes, compactions and restarts.
func TestDocuments(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		fs := vfs.NewMem()
		o := open(t, fs)
		defer func() { o.close() }()
		chunkBytes := rapid.SampledFrom([]uint64{1, 2000, postings.ChunkBytes}).Draw(r, "chunk")
		w, err := postings.NewWriter(o.x, chunkBytes)
		must(t, err)
		b := o.x.NewBatch(false)
		want := map[string]document{}
		steps := rapid.IntRange(1, 12).Draw(r, "steps")
		for range steps {
			var v postings.Inverter
			for range rapid.IntRange(0, 20).Draw(r, "documents") {
				id := fmt.Sprint("d", rapid.IntRange(0, 30).Draw(r, "id"))
				switch rapid.IntRange(0, 5).Draw(r, "what") {
				case 0:
					v.Delete(id)
					delete(want, id)
				case 1: // one that is not kept
					v.Begin(id)
					draw(r, &v)
				default:
					v.Begin(id)
					want[id] = draw(r, &v)
					v.Keep()
				}
			}
			must(t, w.Apply(b, v.Finish(), false))
			if rapid.Bool().Draw(r, "gather") {
				continue
			}
			must(t, w.Flush(b))
			switch rapid.IntRange(0, 6).Draw(r, "commit") {
			case 0, 1:
				must(t, b.Commit(t.Context()))
			case 2:
				must(t, b.Commit(t.Context()))
				must(t, o.x.Flush())
			case 3:
				must(t, b.Commit(t.Context()))
				must(t, o.x.Compact(t.Context()))
			case 4, 5:
				must(t, b.Commit(t.Context()))
				must(t, w.Empty(t.Context()))
			case 6:
				must(t, b.Commit(t.Context()))
				b.Close()
				o.close()
				o = open(t, fs)
				b = o.x.NewBatch(false)
				w, err = postings.NewWriter(o.x, chunkBytes)
				must(t, err)
			}
		}
		must(t, w.Flush(b))
		must(t, b.Commit(t.Context()))
		b.Close()
		check(t, r, o.x, want)
	})
}

func check(t *testing.T, r *rapid.T, x *storage.Index, want map[string]document) {
	t.Helper()
	snap, err := x.Snapshot()
	must(t, err)
	defer snap.Close()
	reader, err := postings.NewReader(snap, nil)
	must(t, err)
	defer func() { must(t, reader.Close()) }()
	if reader.Live != uint64(len(want)) {
		r.Fatalf("%d documents, %d wanted", reader.Live, len(want))
	}
	got := map[string]document{}
	for chunk := range reader.Chunks() {
		var dead postings.Set
		must(t, reader.Dead(chunk, &dead))
		size := reader.Size(chunk)
		ids := map[uint32]string{}
		for offset := range size {
			if dead.Has(offset) {
				continue
			}
			n := postings.At(chunk, offset)
			id, err := reader.ID(n)
			must(t, err)
			ids[offset] = string(id)
			stored, err := reader.Stored(n, func([]byte) bool { return true })
			must(t, err)
			d := document{terms: map[string][]uint32{}, values: map[string][]string{}}
			for _, s := range stored {
				d.stored += s.Name + "=" + string(s.Value) + ";"
			}
			got[string(id)] = d
		}
		for _, field := range fieldNames {
			before := []byte(nil)
			must(t, reader.Terms(chunk, field, nil, func(term, value []byte) (bool, error) {
				if before != nil && bytes.Compare(before, term) >= 0 {
					r.Fatalf("%q comes behind %q", term, before)
				}
				before = append([]byte{}, term...)
				var l, again postings.List
				l.Reset(value)
				list, err := reader.List(chunk, field, term)
				must(t, err)
				again.Reset(list.Bytes)
				for d := l.Seek(0); d < postings.End; d = l.Seek(d + 1) {
					if again.Seek(d) != d || again.Freq() != l.Freq() {
						r.Fatal("another way to the list leads to another one")
					}
					if id, ok := ids[d]; ok {
						got[id].terms[field+" "+string(term)] = l.Positions(nil)
					}
				}
				must(t, l.Err())
				return true, list.Close()
			}))
			c := columnCheck{r, reader, ids, got}
			must(t, c.run(chunk, field))
		}
	}
	same := func(a, b document) bool {
		return a.stored == b.stored && maps.EqualFunc(a.terms, b.terms, slices.Equal) && maps.EqualFunc(a.values, b.values, slices.Equal)
	}
	if !maps.EqualFunc(got, want, same) {
		r.Fatalf("the index has\n%v\nof\n%v", got, want)
	}
}

// columnCheck reads columns in both ways.
type columnCheck struct {
	r      *rapid.T
	reader *postings.Reader
	ids    map[uint32]string
	got    map[string]document
}

func (c *columnCheck) run(chunk uint32, field string) error {
	for _, kind := range []postings.Column{postings.Lengths, postings.Numbers, postings.Greatest, postings.Facets} {
		name := string(kind) + " " + field
		text := func(value []byte) string {
			if kind == postings.Numbers {
				return fmt.Sprint(postings.DecodeFloat(value))
			}
			return string(value)
		}
		if err := c.reader.EachValue(chunk, kind, field, func(offset uint32, value []byte) {
			if id, ok := c.ids[offset]; ok {
				c.got[id].values[name] = append(c.got[id].values[name], text(value))
			}
		}); err != nil {
			return err
		}
		column := c.reader.Values(kind, field)
		some := false
		for _, offset := range slices.Sorted(maps.Keys(c.ids)) {
			var values []string
			v, ok, err := column.Seek(postings.At(chunk, offset))
			for ; ok; v, ok, err = column.Next() {
				values = append(values, text(v))
			}
			if err != nil {
				return err
			}
			if want := c.got[c.ids[offset]].values[name]; !slices.Equal(values, want) {
				c.r.Fatalf("%s of %s: %v, and %v", name, c.ids[offset], values, want)
			}
			some = some || len(values) > 0
		}
		if has, err := c.reader.Has(kind, field); err != nil || some && !has {
			c.r.Fatalf("Has(%s): %t, %v", name, has, err)
		}
	}
	return nil
}

// TestChunks: numbers go on in the next chunk, where a batch does not fit into the last one.
func TestChunks(t *testing.T) {
	o := open(t, vfs.NewMem())
	defer o.close()
	w, err := postings.NewWriter(o.x, postings.ChunkBytes)
	must(t, err)
	b := o.x.NewBatch(false)
	defer b.Close()
	const batches, each = 23, 3000
	for i := range batches {
		var v postings.Inverter
		for j := range each {
			v.Begin(fmt.Sprint(i, " ", j))
			v.Term("f", []byte("x"), 0)
			v.Keep()
		}
		must(t, w.Apply(b, v.Finish(), true))
		must(t, w.Flush(b))
		must(t, b.Commit(t.Context()))
	}
	snap, err := o.x.Snapshot()
	must(t, err)
	defer snap.Close()
	reader, err := postings.NewReader(snap, nil)
	must(t, err)
	if n := frequency(t, reader); n != batches*each || len(slices.Collect(reader.Chunks())) != 2 {
		t.Errorf("%d documents in chunks %v", n, slices.Collect(reader.Chunks()))
	}
	for chunk, want := range []uint32{63000, 6000} {
		if size := reader.Size(uint32(chunk)); size != want {
			t.Errorf("chunk %d has %d numbers", chunk, size)
		}
		var l postings.List
		list, err := reader.List(uint32(chunk), "f", []byte("x"))
		must(t, err)
		l.Reset(list.Bytes)
		got := uint32(0)
		for d := l.Seek(0); d < postings.End; d = l.Seek(d + 1) {
			if d != got {
				t.Fatalf("chunk %d: %d comes behind %d", chunk, d, got)
			}
			got++
		}
		must(t, list.Close())
		if got != want {
			t.Errorf("the list of chunk %d has %d documents", chunk, got)
		}
	}
}

// frequency is how many documents have the term x of the field f, dead ones too.
func frequency(t *testing.T, r *postings.Reader) (n int) {
	t.Helper()
	for chunk := range r.Chunks() {
		list, err := r.List(chunk, "f", []byte("x"))
		must(t, err)
		docs, err := postings.Docs(list.Bytes)
		must(t, err)
		n += docs
		must(t, list.Close())
	}
	return n
}

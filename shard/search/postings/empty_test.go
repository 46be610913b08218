package postings_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard/search/postings"
)

// halfDead returns how many chunks an index has, and how many of them but the last one are
// half dead or more.
func halfDead(t *testing.T, o *opened) (chunks, half int) {
	t.Helper()
	snap, err := o.x.Snapshot()
	must(t, err)
	defer snap.Close()
	r, err := postings.NewReader(snap, nil)
	must(t, err)
	list := slices.Collect(r.Chunks())
	for _, c := range list {
		var dead postings.Set
		must(t, r.Dead(c, &dead))
		if c < r.Next.Chunk() && 2*dead.Len() >= int(r.Size(c)) {
			half++
		}
	}
	return len(list), half
}

// TestEmpty: chunks go when their documents are replaced; when many are half dead at once,
// a few at a time, with the next updates.
func TestEmpty(t *testing.T) {
	o := open(t, vfs.NewMem())
	defer o.close()
	w, err := postings.NewWriter(o.x, 1) // each piece is a chunk
	must(t, err)
	b := o.x.NewBatch(false)
	defer b.Close()
	apply := func(change func(v *postings.Inverter)) {
		t.Helper()
		var v postings.Inverter
		change(&v)
		must(t, w.Apply(b, v.Finish(), false))
		must(t, w.Flush(b))
		must(t, b.Commit(t.Context()))
	}
	write := func(v *postings.Inverter, id string) {
		v.Begin(id)
		v.Term("f", []byte("x"), 0)
		v.Store("f", []byte("1"))
		v.Keep()
	}
	for range 10 {
		apply(func(v *postings.Inverter) {
			for i := range 10 {
				write(v, fmt.Sprint("again", i))
			}
		})
		must(t, w.Empty(t.Context()))
		if chunks, half := halfDead(t, o); chunks > 2 || half > 0 {
			t.Fatalf("%d chunks, of which %d are half dead", chunks, half)
		}
	}
	const many = 20
	for c := range many {
		apply(func(v *postings.Inverter) {
			for i := range 10 {
				write(v, fmt.Sprint(c, " ", i))
			}
		})
	}
	apply(func(v *postings.Inverter) {
		for c := range many {
			for i := range 6 {
				v.Delete(fmt.Sprint(c, " ", i))
			}
		}
	})
	_, before := halfDead(t, o)
	must(t, w.Empty(t.Context()))
	if _, half := halfDead(t, o); before < many-1 || half != before-4 {
		t.Errorf("%d chunks are half dead after %d", half, before)
	}
	for range 200 {
		apply(func(v *postings.Inverter) { write(v, "again0") })
		must(t, w.Empty(t.Context()))
	}
	if chunks, half := halfDead(t, o); half > 0 {
		t.Errorf("%d of %d chunks are half dead after many updates", half, chunks)
	}
	snap, err := o.x.Snapshot()
	must(t, err)
	defer snap.Close()
	r, err := postings.NewReader(snap, nil)
	must(t, err)
	if n := frequency(t, r); r.Live != 10+many*4 || n < int(r.Live) || n > 2*int(r.Live)+2 {
		t.Errorf("%d documents, %d in the list", r.Live, n)
	}
}

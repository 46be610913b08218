package ordered_test

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/keyspace"
	"divan/storage/ordered"
)

// Operations come keyspace by keyspace, those on one key in the order in which they were made.
func TestParts(t *testing.T) {
	var (
		p    ordered.Parts
		b    pebble.Batch
		want [][]byte
		note = func(err error) {
			if err != nil {
				t.Helper()
				t.Fatal(err)
			}
		}
	)
	spaces := []byte{keyspace.Docs, keyspace.Heads, keyspace.Sequence}
	for i := range byte(40) {
		for _, space := range spaces {
			note(p.Set(&b, []byte{space, i}, bytes.Repeat([]byte{i}, int(i))))
			note(p.Delete(&b, []byte{space, i / 2}))
		}
	}
	if got := int(b.Count()); got != 80 || p.Len() == 0 {
		t.Fatalf("%d operations do not wait, %d bytes do", got, p.Len())
	}
	note(p.Move(&b))
	note(p.Move(&b)) // nothing is left
	if p.Len() != 0 {
		t.Errorf("%d bytes are left", p.Len())
	}
	for _, space := range spaces {
		for i := range byte(40) {
			want = append(want, append([]byte{space, i}, bytes.Repeat([]byte{i}, int(i))...), []byte{space, i / 2})
		}
	}
	r := b.Reader()
	for i, w := range want {
		kind, key, value, ok, err := r.Next()
		note(err)
		if !ok || !bytes.Equal(append(bytes.Clone(key), value...), w) || (kind == pebble.InternalKeyKindDelete) != (i%2 == 1) {
			t.Fatalf("operation %d is %v %v=%v, want %v", i, kind, key, value, w)
		}
	}
	if _, _, _, ok, _ := r.Next(); ok { //nolint:dogsled // whether there is more
		t.Error("there are more")
	}
}

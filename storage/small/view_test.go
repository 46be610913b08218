package small

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

func open(t *testing.T) *pebble.DB {
	t.Helper()
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// dump reads all that there is, both ways and by key.
func dump(r pebble.Reader) (string, error) {
	it, err := r.NewIter(nil)
	if err != nil {
		return "", err
	}
	up, down := "", ""
	for ok := it.First(); ok; ok = it.Next() {
		up += fmt.Sprintf("%s=%s ", it.Key(), it.Value())
		value, closer, err := r.Get(it.Key())
		if err != nil {
			return "", err
		}
		if string(value) != string(it.Value()) {
			return "", fmt.Errorf("Get says %q, the iterator %q", value, it.Value())
		}
		if err := closer.Close(); err != nil {
			return "", err
		}
	}
	for ok := it.Last(); ok; ok = it.Prev() {
		down = fmt.Sprintf("%s=%s ", it.Key(), it.Value()) + down
	}
	if up != down {
		return "", fmt.Errorf("upward %s, downward %s", up, down)
	}
	return up, it.Close()
}

// TestView: a view holds what an instance holds that the same batches were applied to, each view that of its
// moment, whichever goroutines read it; and so does what is read from the shared instance, and
// what is brought into one of its own.
func TestView(t *testing.T) {
	empty := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		shared, own, left := open(t), open(t), open(t)
		store, other := [16]byte{1}, [16]byte{2}
		start := shared.NewBatch()
		for _, s := range [][16]byte{store, other} {
			if err := Add(start, s); err != nil {
				rt.Fatal(err)
			}
		}
		if err := start.Commit(pebble.Sync); err != nil {
			rt.Fatal(err)
		}
		var v *View
		var views []*View
		var wants []string
		key := rapid.SampledFrom([]string{"a", "b", "ba", "c", "d"})
		for n := range uint64(rapid.IntRange(0, 8).Draw(rt, "batches")) {
			b, same := empty.NewBatch(), own.NewBatch()
			for range rapid.IntRange(1, 4).Draw(rt, "operations") {
				k, value := []byte(key.Draw(rt, "key")), []byte(rapid.StringN(0, 3, -1).Draw(rt, "value"))
				to := append([]byte(key.Draw(rt, "to")), 'z')
				what := rapid.IntRange(0, 3).Draw(rt, "what")
				for _, b := range []*pebble.Batch{b, same} {
					var err error
					switch what {
					case 0:
						err = b.Set(k, value, nil)
					case 1:
						err = b.Delete(k, nil)
					case 2:
						err = b.Merge(k, value, nil)
					default:
						err = b.DeleteRange(k, to, nil)
					}
					if err != nil {
						rt.Fatal(err)
					}
				}
			}
			next, err := v.With(empty, b, n+1)
			put := shared.NewBatch()
			if err == nil {
				err = Put(put, store, n+1, b)
			}
			if err == nil {
				err = put.Commit(pebble.Sync)
			}
			if err == nil {
				err = same.Commit(pebble.Sync)
			}
			if err == nil {
				err = b.Close()
			}
			if err != nil {
				rt.Fatal(err)
			}
			want, err := dump(own)
			if err != nil {
				rt.Fatal(err)
			}
			v, views, wants = next, append(views, next), append(wants, want)
			if rapid.IntRange(0, 3).Draw(rt, "join") == 0 {
				whole, joined, err := v.Joined(empty)
				put := shared.NewBatch()
				if err == nil {
					err = Join(put, store, v, whole)
				}
				if err == nil {
					err = put.Commit(pebble.Sync)
				}
				if err != nil {
					rt.Fatal(err)
				}
				v = joined
			}
		}
		var readers sync.WaitGroup
		for i := range views {
			for range 2 {
				readers.Go(func() {
					if got, err := dump(views[i]); err != nil || got != wants[i] {
						t.Errorf("after batch %d: %s, %v, want %s", i+1, got, err, wants[i])
					}
				})
			}
		}
		readers.Wait()
		read, there, err := Read(shared, empty, store)
		if err != nil || !there || (read == nil) != (v == nil) || read.Len() != v.Len() {
			rt.Fatalf("read anew: %d bytes, %t, %v, want %d", read.Len(), there, err, v.Len())
		}
		into := left.NewBatch()
		if read != nil {
			if err := read.AddTo(into); err != nil {
				rt.Fatal(err)
			}
		}
		if err := into.Commit(pebble.Sync); err != nil {
			rt.Fatal(err)
		}
		want, _ := dump(own)
		if got, err := dump(left); err != nil || got != want {
			rt.Fatalf("in an instance of its own: %s, %v, want %s", got, err, want)
		}
		gone := shared.NewBatch()
		if err := Remove(shared, gone, store); err != nil {
			rt.Fatal(err)
		}
		if err := gone.Commit(pebble.Sync); err != nil {
			rt.Fatal(err)
		}
		if _, there, err := Size(shared, store); there || err != nil {
			rt.Fatalf("after it was removed it is there: %t, %v", there, err)
		}
		if _, there, err := Read(shared, empty, other); !there || err != nil {
			rt.Fatalf("its neighbour is there: %t, %v", there, err)
		}
	})
}

// TestMissingBatch: what lacks a batch, or the mark that it is here, is damaged and not shorter.
func TestMissingBatch(t *testing.T) {
	empty := open(t)
	for missing := range uint64(3) {
		shared := open(t)
		b, one := shared.NewBatch(), empty.NewBatch()
		if err := one.Set([]byte("k"), nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := Add(b, [16]byte{1}); err != nil {
			t.Fatal(err)
		}
		for n := range uint64(3) {
			if err := Put(b, [16]byte{1}, n+1, one); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Delete(keyOf([16]byte{1}, missing), nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if v, _, err := Read(shared, empty, [16]byte{1}); err == nil {
			t.Errorf("without batch %d: %d bytes", missing, v.Len())
		}
	}
}

package storage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"divan/storage/storagetest"
)

// joinDots is a join of tests: of operands like "a." each loses its dot but the last,
// where the key begins with p.
func joinDots(key, value []byte) []byte {
	if key[0] != 'p' {
		return value
	}
	return append(bytes.ReplaceAll(value, []byte("."), nil), '.')
}

// TestIndexMergesInAnyGroups: values are the operands in their order, no matter which of
// them were merged when, and what was set or deleted before.
func TestIndexMergesInAnyGroups(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		fs := vfs.NewMem()
		e, stop := startEngine(t, Options{FS: fs, JoinIndex: joinDots})
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s, err := e.Acquire(testStore)
		must(t, err)
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		b := x.NewBatch(false)
		want := map[string]string{}
		for i := range rapid.IntRange(1, 60).Draw(r, "steps") {
			key := rapid.SampledFrom([]string{"p1", "p2", "q"}).Draw(r, "key")
			operand := fmt.Sprintf("%d.", i)
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0:
				b.Set([]byte(key), []byte(operand))
				want[key] = operand
			case 1:
				b.Delete([]byte(key))
				delete(want, key)
			case 2:
				b.DeleteRange([]byte("p"), []byte("q"))
				delete(want, "p1")
				delete(want, "p2")
			case 3:
				must(t, b.Commit(t.Context()))
			case 4:
				must(t, b.Commit(t.Context()))
				must(t, x.Flush())
			case 5:
				must(t, b.Commit(t.Context()))
				must(t, x.Compact(t.Context()))
			default:
				b.Merge([]byte(key), []byte(operand))
				want[key] += operand
			}
		}
		must(t, b.Commit(t.Context()))
		b.Close()
		snap, err := x.Snapshot()
		must(t, err)
		for _, key := range []string{"p1", "p2", "q"} {
			value, back, err := snap.Borrow([]byte(key))
			must(t, err)
			copied, ok, err := snap.Get(nil, []byte(key))
			must(t, err)
			if _, there := want[key]; there != ok || ok != (back != nil) || !bytes.Equal(value, copied) {
				r.Fatalf("%s: borrowed %q (%v), got %q (%t), wanted %q", key, value, back, copied, ok, want[key])
			}
			plain, wanted := string(value), want[key]
			if key[0] == 'p' {
				plain, wanted = strings.ReplaceAll(plain, ".", ""), strings.ReplaceAll(wanted, ".", "")
			}
			if plain != wanted {
				r.Fatalf("%s: %q, wanted %q", key, value, want[key])
			}
			if back != nil {
				must(t, back.Close())
			}
		}
		snap.Close()
		e.Indexes().Release(x)
		e.Release(s)
		stop()
	})
}

// TestIndexMergesAfterCrash: a crash leaves the operands of a prefix of the batches, of
// all keys the same ones.
func TestIndexMergesAfterCrash(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		fs := storagetest.NewCrashFS()
		e, stop := startEngine(t, Options{FS: fs, JoinIndex: joinDots})
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s, err := e.Acquire(testStore)
		must(t, err)
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		flushed, all := 0, ""
		b := x.NewBatch(false)
		for i := range 1 + rnd.IntN(20) {
			operand := fmt.Sprintf("%c.", 'A'+i)
			all += operand[:1]
			b.Merge([]byte("p"), []byte(operand))
			b.Merge([]byte("q"), []byte(operand))
			must(t, b.Commit(t.Context()))
			switch rnd.IntN(4) {
			case 0:
				must(t, x.Flush())
				flushed = i + 1
			case 1:
				must(t, x.Compact(t.Context()))
			}
		}
		b.Close()
		after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rnd})
		e.Indexes().Release(x)
		e.Release(s)
		stop()
		e, stop = startEngine(t, Options{FS: after}) // to join values is not needed for reading them
		s, err = e.Acquire(testStore)
		must(t, err)
		x, err = e.Indexes().Acquire(s, "abc")
		must(t, err)
		p, _, err := x.Get(nil, []byte("p"))
		must(t, err)
		q, _, err := x.Get(nil, []byte("q"))
		must(t, err)
		joined, plain := strings.ReplaceAll(string(p), ".", ""), strings.ReplaceAll(string(q), ".", "")
		if joined != plain || !strings.HasPrefix(all, plain) || len(plain) < flushed {
			t.Errorf("seed %d: %q and %q are left of %q, of which %d were flushed", seed, p, q, all, flushed)
		}
		e.Indexes().Release(x)
		e.Release(s)
		stop()
	}
}

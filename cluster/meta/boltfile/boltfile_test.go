package boltfile

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// written makes a file with two buckets and returns it, and what it has.
func written(tb testing.TB, pairs int) (file []byte, content map[string]string) {
	tb.Helper()
	path, content := filepath.Join(tb.TempDir(), "x.db"), map[string]string{}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		tb.Fatal(err)
	}
	for round := range 3 {
		err = db.Update(func(tx *bbolt.Tx) error {
			for _, name := range []string{"logs", "conf"} {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				n := pairs
				if name == "conf" {
					n = 3
				}
				for i := range n {
					key := fmt.Sprintf("%08d", i)
					value := fmt.Sprint(round, i, string(bytes.Repeat([]byte("x"), i*7%6000)))
					content[name+"/"+key] = value
					if err := b.Put([]byte(key), []byte(value)); err != nil {
						return err
					}
				}
				if n > 10 {
					delete(content, name+"/00000003")
					if err := b.Delete([]byte("00000003")); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
	if file, err = os.ReadFile(path); err != nil {
		tb.Fatal(err)
	}
	return file, content
}

func read(file []byte) (content map[string]string, problems []string) {
	content = map[string]string{}
	Read(bytes.NewReader(file), int64(len(file)), []string{"conf", "logs"}, Visitor{
		Pair:    func(bucket string, key, value []byte) { content[bucket+"/"+string(key)] = string(value) },
		Problem: func(text string) { problems = append(problems, text) },
	})
	return content, problems
}

func TestRead(t *testing.T) {
	for _, pairs := range []int{0, 3, 50, 2000} {
		file, want := written(t, pairs)
		got, problems := read(file)
		if len(problems) != 0 || !maps.Equal(got, want) {
			t.Errorf("%d pairs: %d read of %d, problems %q", pairs, len(got), len(want), problems)
		}
	}
}

// TestDamage: after a change of any byte, reading ends, and what is read without a problem has at
// most one key that was never written. Keys may be missing, as a page does not say whether it is
// the one that was meant, nor how much it should have.
func TestDamage(t *testing.T) {
	for _, pairs := range []int{3, 150} {
		file, want := written(t, pairs)
		rng, found := rand.New(rand.NewPCG(1, 1)), 0
		for range 1000 {
			at := rng.IntN(len(file))
			if rng.IntN(2) == 0 { // where the structure is
				at = at/4096*4096 + rng.IntN(300)%(len(file)-at/4096*4096)
			}
			was := file[at]
			file[at] ^= 1 << rng.IntN(8)
			got, problems := read(file)
			if len(problems) > 0 {
				found++
			} else {
				odd := 0
				for key := range got {
					if _, ok := want[key]; !ok {
						odd++
					}
				}
				if odd > 1 {
					t.Fatalf("byte %d: %d keys that nobody wrote", at, odd)
				}
			}
			file[at] = was
		}
		if found == 0 {
			t.Error("nothing was found")
		}
	}
}

// TestDamagedMeta: whichever byte of a meta page is another one, that is noticed: it may
// be what tells the last transaction from the one before.
func TestDamagedMeta(t *testing.T) {
	file, _ := written(t, 3)
	for page := range 2 {
		for i := headerSize; i < headerSize+metaSize; i++ {
			at := page*os.Getpagesize() + i
			file[at] ^= 1
			if _, problems := read(file); len(problems) == 0 {
				t.Errorf("page %d, byte %d", page, i)
			}
			file[at] ^= 1
		}
	}
}

func FuzzRead(f *testing.F) {
	file, _ := written(f, 3)
	f.Add(file)
	f.Add([]byte(nil))
	f.Fuzz(func(_ *testing.T, file []byte) { read(file) })
}

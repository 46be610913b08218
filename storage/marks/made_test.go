package marks

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func load(t *testing.T, fs vfs.FS) *Made {
	t.Helper()
	m := &Made{FS: fs, Path: "made"}
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMade: no matter what the end of the file has become, the names noted
// before it count, and the names noted behind it as well.
func TestMade(t *testing.T) {
	fs := vfs.NewMem()
	m := load(t, fs)
	want := map[string]bool{}
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 150 {
		for range 100 {
			name := fmt.Sprintf("shards/00000000-ffffffff/a/db%d.1763600000", rng.IntN(200))
			if rng.IntN(2) == 0 {
				m.Forget(name)
			} else if err := m.Note(name); err != nil {
				t.Fatal(err)
			}
			want[name] = m.Has(name)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if round%3 == 0 { // half a line
			f, err := fs.OpenReadWrite("made", vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("+shards/half"), info.Size()); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		m = load(t, fs)
		for name, has := range want {
			if m.Has(name) != has {
				t.Fatalf("round %d: %s: %t", round, name, !has)
			}
		}
		if m.Has("shards/half") || m.Has("") {
			t.Fatal("half a line counts")
		}
	}
	if info, err := fs.Stat("made"); err != nil || info.Size() > 2*leastStale {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
}

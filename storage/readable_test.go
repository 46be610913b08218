package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// listing is every path below a directory, with size, mode and time.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			out = append(out, fmt.Sprint(path, info.Size(), info.Mode(), info.ModTime()))
		}
		return err
	})
	must(t, err)
	return out
}

// madeDirectory is a data directory with a store that holds a document.
func madeDirectory(t *testing.T) (dir, store string) {
	t.Helper()
	dir, store = t.TempDir(), "shards/00000000-ffffffff/team/pond.1"
	e, stop := startEngine(t, Options{Dir: dir})
	must(t, e.Create(store, CreateOptions{}))
	s, err := e.Acquire(store)
	must(t, err)
	putDocs(t, s, newEdits(), docsOf{1, 1, numbered})
	e.Release(s)
	stop()
	return dir, filepath.Join(dir, filepath.FromSlash(store))
}

// A directory of a newer program, or of CouchDB, is refused with what it is, and
// stays as it was.
func TestUnreadableDirectory(t *testing.T) {
	rename := func(from, to string) func(t *testing.T, dir, store string) {
		return func(t *testing.T, _, store string) {
			t.Helper()
			files, err := filepath.Glob(filepath.Join(store, from))
			must(t, err)
			if len(files) != 1 {
				t.Fatalf("%s: %q", from, files)
			}
			must(t, os.Rename(files[0], filepath.Join(store, to)))
		}
	}
	touch := func(path ...string) func(t *testing.T, dir, store string) {
		return func(t *testing.T, dir, _ string) {
			t.Helper()
			file := filepath.Join(append([]string{dir}, path...)...)
			must(t, os.MkdirAll(filepath.Dir(file), 0o700))
			must(t, os.WriteFile(file, nil, 0o600))
		}
	}
	newest := fmt.Sprint(int(pebble.FormatNewest))
	for name, c := range map[string]struct {
		do   func(t *testing.T, dir, store string)
		want []string
	}{
		"a newer store":            {rename("STORE-1-*", "STORE-2-00"), []string{"pond.1 is of store format 2", "up to 1", "newer version of Divan"}},
		"a newer engine":           {rename("marker.format-version.*", "marker.format-version.000007.999"), []string{"pond.1 is of engine format 999", "up to " + newest}},
		"an index of a newer one":  {touch("indexes", "00000000-ffffffff", "pond.1", "abc", "marker.format-version.000002.998"), []string{"abc is of engine format 998"}},
		"CouchDB's":                {touch("_dbs.couch"), []string{"data directory of CouchDB", "_dbs.couch", "divan import", "docs/moving.md"}},
		"CouchDB's shards":         {touch("shards", "00000000-7fffffff", "pond.1700000000.couch"), []string{"data directory of CouchDB", "pond.1700000000.couch"}},
		"CouchDB's, with a folder": {touch("shards", "00000000-7fffffff", "team", "pond.1700000000.couch"), []string{"data directory of CouchDB"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, store := madeDirectory(t)
			c.do(t, dir, store)
			before := listing(t, dir)
			e, err := NewEngine(Options{Dir: dir})
			if err == nil {
				must(t, e.Close())
				t.Fatal("it is opened")
			}
			for _, want := range append(c.want, dir) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %q", err, want)
				}
			}
			if after := listing(t, dir); !slices.Equal(before, after) {
				t.Errorf("it was changed:\n%q\n%q", before, after)
			}
		})
	}
}

// What is older, or only looks like it, is opened.
func TestReadableDirectory(t *testing.T) {
	dir, store := madeDirectory(t)
	for _, file := range []string{"STORE-notes", "marker.format-version.000001.notes"} {
		must(t, os.WriteFile(filepath.Join(store, file), nil, 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, "couch.txt"), nil, 0o600))
	e, err := NewEngine(Options{Dir: dir})
	must(t, err)
	must(t, e.Close())
}

package shard

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage"
	"divan/storage/doc"
)

// unpack writes the files of an archive into a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, filepath.Clean(h.Name))
		if h.FileInfo().IsDir() {
			continue
		}
		data, err := io.ReadAll(files)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(at), 0o700)
		}
		if err == nil {
			err = os.WriteFile(at, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestOldStore opens a store of format 3, written by a program that kept each history in
// the record of its document, checks it, and edits documents, which then lie in blocks.
func TestOldStore(t *testing.T) {
	dir := t.TempDir()
	unpack(t, filepath.Join("testdata", "store-3.tar.gz"), dir)
	reopen := func() *node {
		e, err := storage.NewEngine(storage.Options{Dir: dir, FS: vfs.Default, CacheBytes: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return &node{t: t, fs: vfs.Default, engine: e, Local: New(Options{Engine: e})}
	}
	n := reopen()
	n.check()
	revs := map[string]int{"short": 3, "long": 403, "branched": 101, "after": 63}
	compare := func() {
		t.Helper()
		for id, want := range revs {
			d, err := n.get(OpenRequest{ID: id, Revs: true})
			if err != nil || len(d.Revisions.IDs) != want {
				t.Fatalf("%s: %v, %d revisions, want %d", id, err, len(d.Revisions.IDs), want)
			}
		}
		all, err := n.OpenRevs(context.Background(), OpenRevsRequest{Copy: copyName, ID: "branched", All: true, WithPath: true})
		if err != nil || len(all) != 2 || len(all[1].Doc.Revisions.IDs) != 51 {
			t.Fatalf("branches: %v %v", all, err)
		}
	}
	compare()
	marker := func() string {
		files, err := n.fs.List(filepath.Join(dir, copyName))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasPrefix(f, "STORE-") {
				return f[:len("STORE-3")]
			}
		}
		return ""
	}
	if got := marker(); got != "STORE-3" {
		t.Fatalf("reading made it %s", got)
	}
	for id := range revs {
		d, err := n.get(OpenRequest{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		n.must(n.edits(true, Edit{ID: id, Parent: d.Rev, Body: []byte(`{"new":true}`)})[0])
		revs[id]++
	}
	compare()
	n.acquire(t, copyName, func(s *storage.Store) {
		for id, want := range map[string]bool{"short": false, "long": true, "branched": false, "after": true} {
			tip, _, err := s.Tip(id)
			if err != nil || tip.Partial != want {
				t.Errorf("%s: %v, in blocks %v, want %v", id, err, tip.Below != (doc.Below{}), want)
			}
		}
	})
	if got := marker(); got != "STORE-4" {
		t.Fatalf("with blocks it is %s", got)
	}
	n.check()
	n.stop()
	n = reopen()
	defer n.stop()
	compare()
	if err := n.compactNow(Limits{}); err != nil {
		t.Fatal(err)
	}
	compare()
	n.check()
}

// TestMarkerOfBlocksIsDurable cuts the power after every edit of a history that begins to
// lie in blocks.
func TestMarkerOfBlocksIsDurable(t *testing.T) {
	fs := vfs.NewCrashableMem()
	n := open(t, fs, Options{})
	n.create(CreateOptions{ID: 7})
	defer n.stop()
	var parent doc.Rev
	for i := range 60 {
		res := n.edits(true, Edit{ID: "a", Parent: parent, Body: []byte("{}")})
		n.must(res[0])
		parent = res[0].Rev
		if i < 44 {
			continue
		}
		left := open(t, fs.CrashClone(vfs.CrashCloneCfg{}), Options{})
		left.check()
		if d, err := left.get(OpenRequest{ID: "a", Revs: true}); err != nil || d.Rev != parent || len(d.Revisions.IDs) != i+1 {
			t.Fatalf("after %d edits: %v, %v", i+1, d, err)
		}
		left.stop()
	}
}

//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLeftToOwner: root examines and mends the directory of a node of another user,
// which can start afterwards.
func TestLeftToOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	const user = 4711
	dir := pond(t)
	each := func(f func(path string) error) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return f(path)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	each(func(path string) error { return os.Lchown(path, user, user) })
	left := func() {
		t.Helper()
		each(func(path string) error {
			info, err := os.Lstat(path)
			if s := info.Sys().(*syscall.Stat_t); s.Uid != user || s.Gid != user {
				t.Errorf("%s belongs to %d:%d", path, s.Uid, s.Gid)
			}
			return err
		})
	}
	if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil { // as in a backup
		t.Fatal(err)
	}
	if status, out := run(t, nil, "check", dir); status != 0 {
		t.Errorf("check: exit status %d, %s", status, out)
	}
	left()
	if err := os.RemoveAll(filepath.Join(dir, "meta")); err != nil {
		t.Fatal(err)
	}
	if status, out := run(t, nil, "recover", dir); status != 0 {
		t.Errorf("recover: exit status %d, %s", status, out)
	}
	left()
}

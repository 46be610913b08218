//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// leaveToOwner gives what root has made in a data directory, beside the stores, to
// the user whose node works in it, which could not start any more otherwise.
func leaveToOwner(dataDir string) (err error) {
	if os.Geteuid() != 0 {
		return nil
	}
	owner, err := os.Stat(filepath.Join(dataDir, "shards"))
	if errors.Is(err, fs.ErrNotExist) {
		owner, err = os.Stat(dataDir)
	}
	if err != nil {
		return err
	}
	user, ok := owner.Sys().(*syscall.Stat_t)
	if !ok || user.Uid == 0 {
		return nil
	}
	root, err := os.OpenRoot(dataDir) // no link leads out of it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if path == "shards" || path == "indexes" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		// A second name may be that of a file elsewhere.
		if s, ok := info.Sys().(*syscall.Stat_t); !ok || s.Uid != 0 || !d.IsDir() && s.Nlink > 1 {
			return nil
		}
		return root.Lchown(path, int(user.Uid), int(user.Gid))
	})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil // this root may not, or a copy that cannot be written
	}
	return err
}

//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"divan/cmd/divan/node"
)

// keepPrivate makes everything that this process writes its user's alone:
// documents, hashes of passwords, and the secret of the cluster. The file with
// that one is closed also where an earlier version left it open.
func keepPrivate(dataDir string) error {
	syscall.Umask(0o077)
	err := os.Chmod(filepath.Join(dataDir, node.IdentityFile), 0o600)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // it is not there; a directory that cannot be made has its own error later
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the data directory is another user's: %w", err)
	}
	return err
}

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"divan/cmd/divan/node"
)

func TestKeepPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	dir := t.TempDir()
	if err := keepPrivate(filepath.Join(dir, "none yet")); err != nil {
		t.Fatal(err)
	}
	syscall.Umask(0o022)
	secret := filepath.Join(dir, node.IdentityFile)
	if err := os.WriteFile(secret, nil, 0o644); err != nil { //nolint:gosec // as it was left behind
		t.Fatal(err)
	}
	if err := keepPrivate(dir); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "made")
	if err := os.Mkdir(made, 0o755); err != nil { //nolint:gosec // what the umask is for
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{secret: 0o600, made: 0o700} {
		if i, err := os.Stat(path); err != nil || i.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, i.Mode(), err)
		}
	}
}

package child

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// manifest names the packages of a program in Node.js, and installed is a copy of it
// that is made when they are there.
const (
	manifest  = "package.json"
	installed = "installed.json"
)

// InstallNode puts a program in Node.js into a directory, with the packages that it
// names, which come from the npm registry. Packages that are there stay. No script of a
// package runs: what these programs need comes built.
func InstallNode(ctx context.Context, dir string, files fs.FS) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := fs.ReadFile(files, e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o600); err != nil {
			return err
		}
	}
	wanted, err := fs.ReadFile(files, manifest)
	if err != nil {
		return err
	}
	if there, err := os.ReadFile(filepath.Join(dir, installed)); err == nil && bytes.Equal(there, wanted) {
		return nil
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm install: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, installed), wanted, 0o600)
}

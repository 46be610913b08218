package paths

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Lock makes the data directory, and sure that no other process has it. With mayRead a
// directory that cannot be written may be read.
func (t *Tree) Lock(mayRead bool) (io.Closer, error) {
	if !mayRead {
		if err := t.FS.MkdirAll(t.Root, 0o755); err != nil {
			return nil, fmt.Errorf("make data directory: %w", err)
		}
	}
	lock, err := t.FS.Lock(t.FS.PathJoin(t.Root, "LOCK"))
	switch {
	case err == nil:
		return lock, nil
	case mayRead && readOnly(err):
		return io.NopCloser(nil), nil
	default:
		return nil, t.lockError(err)
	}
}

// lockError says why the data directory could not be locked.
func (t *Tree) lockError(err error) error {
	if readOnly(err) {
		return fmt.Errorf("data directory %s cannot be written: %w", t.Root, err)
	}
	return fmt.Errorf("data directory %s is in use: %w", t.Root, err)
}

func readOnly(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// Probe looks whether files can be made in the data directory. A full disk is no
// reason not to start.
func (t *Tree) Probe() error {
	path := t.Path("LOCK.probe")
	f, err := t.FS.Create(path, vfs.WriteCategoryUnspecified)
	if readOnly(err) {
		return t.lockError(err)
	}
	if err == nil {
		_ = f.Close() // it is empty
	}
	_ = t.FS.Remove(path) // an empty file, which the next start makes again
	return nil
}

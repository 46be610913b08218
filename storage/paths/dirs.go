package paths

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/instance"
)

// Dirs makes directories durable and remembers which already are.
type Dirs struct {
	FS vfs.FS
	mu struct {
		sync.Mutex
		durable map[string]struct{}
	}
}

// Ensure makes a directory and its parents, all durable. Another goroutine may
// have made one without having synced it yet, so only a sync by this process
// counts.
func (d *Dirs) Ensure(dir string) error {
	d.mu.Lock()
	_, known := d.mu.durable[dir]
	d.mu.Unlock()
	if known || dir == "" {
		return nil
	}
	if err := d.FS.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	parent := d.FS.PathDir(dir)
	if parent != dir {
		if err := d.ensureParent(parent); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.durable == nil {
		d.mu.durable = map[string]struct{}{}
	}
	d.mu.durable[dir] = struct{}{}
	return nil
}

// Make is Ensure for a directory that may have been moved away.
func (d *Dirs) Make(dir string) error {
	d.forget(dir)
	return d.Ensure(dir)
}

// ensureParent makes parent durable, then the entry in it.
func (d *Dirs) ensureParent(parent string) error {
	if err := d.Ensure(parent); err != nil {
		return err
	}
	err := instance.SyncDir(d.FS, parent)
	// A directory above the data directory may be unreadable for this user;
	// it is not ours to sync.
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}

// forget says that a directory is going to be removed.
func (d *Dirs) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.durable, dir)
}

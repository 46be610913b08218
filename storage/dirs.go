package storage

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/storage/fault"
)

// Names inside the data directory.
const (
	shardsDir  = "shards"
	stagingDir = "staging"
	newPrefix  = "new-" // a store being made
	oldPrefix  = "old-" // a store that was dropped
	markerFile = "STORE"
)

// marker is the content of a store's STORE file, as JSON: what is fixed when
// the store is made.
type marker struct {
	Format      int    `json:"format"`
	UUID        string `json:"uuid"` // 32 hexadecimal digits
	Partitioned bool   `json:"partitioned,omitempty"`
}

const storeFormat = 1

// dirs makes directories durable and remembers which already are.
type dirs struct {
	fs vfs.FS
	mu struct {
		sync.Mutex
		durable map[string]struct{}
	}
}

// ensure makes a directory and its parents, all durable. Another goroutine may
// have made one without having synced it yet, so only a sync by this process
// counts.
func (d *dirs) ensure(dir string) error {
	d.mu.Lock()
	_, known := d.mu.durable[dir]
	d.mu.Unlock()
	if known || dir == "" {
		return nil
	}
	if err := d.fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	parent := d.fs.PathDir(dir)
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

// ensureParent makes parent durable, then the entry in it.
func (d *dirs) ensureParent(parent string) error {
	if err := d.ensure(parent); err != nil {
		return err
	}
	err := syncDir(d.fs, parent)
	// A directory above the data directory may be unreadable for this user;
	// it is not ours to sync.
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}

func (e *Engine) path(elem ...string) string {
	return e.o.FS.PathJoin(append([]string{e.o.Dir}, elem...)...)
}

// stagingName is a fresh path in the staging folder.
func (e *Engine) stagingName(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return e.path(stagingDir, prefix+hex.EncodeToString(b[:]))
}

// prepareStaging removes stores that a crash left half made; what was dropped
// is left to Run.
func (e *Engine) prepareStaging() error {
	if err := e.dirs.ensure(e.path(stagingDir)); err != nil {
		return err
	}
	e.wakeSweep()
	return e.removeStaged(newPrefix)
}

func (e *Engine) wakeSweep() {
	select {
	case e.sweep <- struct{}{}:
	default:
	}
}

// removeStaged removes what lies in the staging folder under that prefix.
func (e *Engine) removeStaged(prefix string) error {
	names, err := e.o.FS.List(e.path(stagingDir))
	if err != nil {
		return fmt.Errorf("list staging folder: %w", err)
	}
	var errs []error
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			errs = append(errs, e.o.FS.RemoveAll(e.path(stagingDir, name)))
		}
	}
	return errors.Join(errs...)
}

// Create makes an empty store; it is durable on return. The error is
// fault.Exists when there is one of that name.
func (e *Engine) Create(name string, o CreateOptions) error {
	if !validName(name) {
		return fmt.Errorf("store name %q is no path below the data directory", name)
	}
	en, err := e.occupy(name)
	if err != nil {
		return err
	}
	err = e.create(name, o)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removeLocked(en)
	return err
}

// occupy makes a busy entry for a store that is not open.
func (e *Engine) occupy(name string) (*entry, error) {
	for {
		e.mu.Lock()
		en := e.mu.entries[name]
		switch {
		case e.mu.closed:
			e.mu.Unlock()
			return nil, errClosed()
		case en == nil:
			en = e.newBusyLocked(name)
			e.mu.Unlock()
			return en, nil
		case en.busy == nil:
			e.mu.Unlock()
			return nil, fault.New(fault.Exists, "file_exists")
		}
		wait := en.busy
		e.mu.Unlock()
		<-wait
	}
}

// validName accepts a clean relative path: nothing that leaves the directory.
func validName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || part == markerFile {
			return false
		}
	}
	return !strings.ContainsAny(name, "\x00\\")
}

func (e *Engine) create(name string, o CreateOptions) error {
	path := e.path(name)
	if _, err := e.o.FS.Stat(path); err == nil {
		return fault.New(fault.Exists, "file_exists")
	}
	stage := e.stagingName(newPrefix)
	if err := e.o.FS.MkdirAll(stage, 0o755); err != nil {
		return diskError("create store "+name, err)
	}
	if err := e.writeMarker(stage, o); err != nil {
		return diskError("create store "+name, err)
	}
	parent := e.o.FS.PathDir(path)
	if err := e.dirs.ensure(parent); err != nil {
		return diskError("create store "+name, err)
	}
	if err := e.o.FS.Rename(stage, path); err != nil {
		return diskError("create store "+name, err)
	}
	if err := syncDir(e.o.FS, parent); err != nil {
		return diskError("create store "+name, err)
	}
	return nil
}

func (e *Engine) writeMarker(dir string, o CreateOptions) error {
	var uuid [16]byte
	_, _ = rand.Read(uuid[:]) // never fails
	text, err := json.Marshal(marker{storeFormat, hex.EncodeToString(uuid[:]), o.Partitioned})
	if err != nil {
		return err
	}
	f, err := e.o.FS.Create(e.o.FS.PathJoin(dir, markerFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return syncDir(e.o.FS, dir)
}

// readMarker returns fault.NotFound when there is no store in dir.
func (e *Engine) readMarker(dir string) (m marker, uuid [16]byte, err error) {
	f, err := e.o.FS.Open(e.o.FS.PathJoin(dir, markerFile))
	if errors.Is(err, os.ErrNotExist) {
		return m, uuid, noStore()
	}
	if err != nil {
		return m, uuid, fmt.Errorf("open store: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err = errors.Join(err, f.Close()); err != nil {
		return m, uuid, fmt.Errorf("read %s: %w", markerFile, err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, uuid, fault.Wrap(fault.Corruption, "STORE file does not decode", err)
	}
	raw, err := hex.DecodeString(m.UUID)
	if err != nil || len(raw) != len(uuid) {
		return m, uuid, fault.New(fault.Corruption, "STORE file has no uuid")
	}
	if m.Format != storeFormat {
		return m, uuid, fmt.Errorf("store format %d is not known to this version", m.Format)
	}
	copy(uuid[:], raw)
	return m, uuid, nil
}

// Drop removes a store: nobody can open it any more. A store in use is removed
// from the disk with its last pin; a crash before that leaves it there. The
// error is fault.NotFound when there is no such store.
func (e *Engine) Drop(name string) error {
	for {
		e.mu.Lock()
		en := e.mu.entries[name]
		switch {
		case e.mu.closed:
			e.mu.Unlock()
			return errClosed()
		case en == nil:
			en = e.newBusyLocked(name)
			e.mu.Unlock()
			err := e.stage(name)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.removeLocked(en)
			return err
		case en.busy != nil:
			wait := en.busy
			e.mu.Unlock()
			<-wait
		case en.dropped:
			e.mu.Unlock()
			return noStore()
		case en.pins > 0:
			en.dropped = true
			e.mu.Unlock()
			return nil
		default:
			en.dropped = true
			e.takeLocked(en)
			e.mu.Unlock()
			return e.closeStores([]*entry{en})
		}
	}
}

// stage moves a store that is not open out of its place, durably, and leaves
// the removal of its files to Run.
func (e *Engine) stage(name string) error {
	if !validName(name) {
		return noStore()
	}
	path := e.path(name)
	if _, err := e.o.FS.Stat(e.o.FS.PathJoin(path, markerFile)); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return noStore()
		}
		return fmt.Errorf("drop store %s: %w", name, err)
	}
	if err := e.o.FS.Rename(path, e.stagingName(oldPrefix)); err != nil {
		return fmt.Errorf("drop store %s: %w", name, err)
	}
	e.wakeSweep()
	e.uploads.forget(name)
	if err := syncDir(e.o.FS, e.o.FS.PathDir(path)); err != nil {
		return fmt.Errorf("drop store %s: %w", name, err)
	}
	return nil
}

// Names returns the names of all stores on disk, sorted. It reads the
// directories, so its cost is that of their number.
func (e *Engine) Names() ([]string, error) {
	var names []string
	if err := e.walk(shardsDir, &names); err != nil {
		return nil, err
	}
	e.mu.Lock()
	names = slices.DeleteFunc(names, func(name string) bool {
		en := e.mu.entries[name]
		return en != nil && en.dropped
	})
	e.mu.Unlock()
	slices.Sort(names)
	return names, nil
}

// walk collects the stores below a directory that is none itself.
func (e *Engine) walk(dir string, names *[]string) error {
	children, err := e.o.FS.List(e.path(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing created yet, or dropped meanwhile
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, child := range children {
		name := dir + "/" + child
		if _, err := e.o.FS.Stat(e.path(name, markerFile)); err == nil {
			*names = append(*names, name)
			continue
		}
		info, err := e.o.FS.Stat(e.path(name))
		if err != nil || !info.IsDir() {
			continue
		}
		if err := e.walk(name, names); err != nil {
			return err
		}
	}
	return nil
}

// FileSize returns the bytes that a store has on disk, open or not. The error
// is fault.NotFound when there is no such store.
func (e *Engine) FileSize(name string) (int64, error) {
	e.mu.Lock()
	en := e.mu.entries[name]
	if en != nil && en.busy == nil && !en.dropped && en.store.opened() {
		e.pinLocked(en)
		e.mu.Unlock()
		defer e.Release(en.store)
		return en.store.FileSize()
	}
	e.mu.Unlock()
	files, err := e.o.FS.List(e.path(name))
	if err != nil || !slices.Contains(files, markerFile) {
		return 0, noStore()
	}
	var total int64
	for _, f := range files {
		if info, err := e.o.FS.Stat(e.path(name, f)); err == nil {
			total += info.Size()
		}
	}
	return total, nil
}

// sweepStaged is Run's part of dropping stores.
func (e *Engine) sweepStaged() {
	if err := e.removeStaged(oldPrefix); err != nil {
		e.log.Warn("removing dropped stores failed", zap.Error(err))
	}
}

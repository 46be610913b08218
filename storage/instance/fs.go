package instance

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// instanceFS is the file system that one instance sees. It makes an open store cheap,
// two file descriptors instead of eight and no log as long as a memtable:
//
//   - a directory is opened only while it is synced (Pebble holds five handles);
//   - a store's own LOCK file is not taken, the engine locks the data directory;
//   - a log is preallocated in steps that grow with it, not at once.
//
// It also makes the marker that names the manifest move in an order that any
// file system keeps.
//
// And it contains what Pebble does not survive. When a log cannot be begun,
// written or synced, or a directory not synced, Pebble ends the process, or
// panics with its locks taken. Here such an error stops the store instead
// (Instance.Fail) and Pebble does not hear of it; who waits for a batch does, from
// Commit.Wait, which asks the store after the sync. From then on the store's
// files stay as they are:
//
//	F1  no byte enters a log after one that was lost, so that what a log holds
//	    is a prefix of the batches;
//	F2  no further log appears behind it, where Pebble would take its torn end
//	    for corruption;
//	F3  nothing is removed that Pebble believes to be durable elsewhere, and
//	    nothing is written that builds on it.
//
// Pebble repeats a failed flush until it succeeds, and until then Commit, Close and
// Open wait inside it, without a way out. So once the store has failed everything
// seems to succeed: the tables of a flush go to memory, no more than the memtables
// hold, where they can be read; all else goes nowhere. The files are left as by a
// crash at that moment; who has waited asks the instance afterwards.
//
//	F4  of a table that was not written whole nothing stays on the disk, nor of
//	    the others of that flush or compaction, which no manifest names.
//
// While a store is being opened, no file tells Pebble of an error: when opening
// fails, the compaction and the reading of statistics that it began go on and meet
// what was freed.
type instanceFS struct {
	vfs.FS
	i *Instance
}

// IsLog reports whether a file is a log.
func IsLog(name string) bool { return strings.HasSuffix(name, ".log") }

// HoldsKeys reports whether a file is a log or a table.
func HoldsKeys(name string) bool { return IsLog(name) || strings.HasSuffix(name, ".sst") }

// IsMade reports whether files are those of an instance that was opened.
func IsMade(files []string) bool {
	return slices.ContainsFunc(files, func(name string) bool { return strings.HasPrefix(name, ManifestMarker) })
}

// Unwrap implements vfs.FS.
func (f *instanceFS) Unwrap() vfs.FS { return f.FS }

// Lock implements vfs.FS.
func (f *instanceFS) Lock(string) (io.Closer, error) { return noLock{}, nil }

type noLock struct{}

// Close implements io.Closer.
func (noLock) Close() error { return nil }

// OpenDir implements vfs.FS.
func (f *instanceFS) OpenDir(name string) (vfs.File, error) { return &lazyDir{fs: f, name: name}, nil }

// Create implements vfs.FS.
func (f *instanceFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f.syncBeforeMarker(name)
	err := f.i.Err()
	if err != nil && !IsLog(name) {
		return f.createNowhere(name, category)
	}
	var file vfs.File
	if err == nil {
		file, err = f.FS.Create(name, category)
	}
	if IsLog(name) {
		return f.wrapLog(file, err)
	}
	switch {
	case err == nil:
	case f.i.Opened() && isTable(name):
		pause(pauseFailed, f.i.closing, nil)
		return nil, err
	default:
		_ = f.i.Fail(err) // kept for every later call
		return f.createNowhere(name, category)
	}
	if isTable(name) {
		return &tableFile{plainFile: plainFile{file, f.i}, name: name, compaction: category == compactionWrite}, nil
	}
	return &plainFile{file, f.i}, nil
}

// compactionWrite is how Pebble calls the tables of a compaction.
const compactionWrite = "pebble-compaction"

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// createNowhere is Create of a store that has failed. A compaction is told: what it
// writes is not bounded.
func (f *instanceFS) createNowhere(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	switch {
	case isTable(name) && category == compactionWrite && f.i.Opened():
		return nil, f.i.Err()
	case isTable(name):
		return f.i.nowhere.fs().Create(f.PathBase(name), category)
	}
	file, err := vfs.NewMem().Create("nowhere", category)
	return &plainFile{file, f.i}, err
}

// nowhere holds the tables that a store has flushed after it had failed.
type nowhere struct {
	once   sync.Once
	tables *vfs.MemFS
}

func (n *nowhere) fs() *vfs.MemFS {
	n.once.Do(func() { n.tables = vfs.NewMem() })
	return n.tables
}

// Open implements vfs.FS.
func (f *instanceFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.i.Err() != nil && isTable(name) {
		if file, err := f.i.nowhere.fs().Open(f.PathBase(name), opts...); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(name, opts...)
}

// ReuseForWrite implements vfs.FS. Pebble reuses logs only.
func (f *instanceFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	err := f.i.Err()
	var file vfs.File
	if err == nil {
		file, err = f.FS.ReuseForWrite(oldname, newname, category)
	}
	return f.wrapLog(file, err)
}

// wrapLog wraps a log that was begun, or hands out one that goes nowhere.
func (f *instanceFS) wrapLog(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		_ = f.i.Fail(err) // kept for every later call
		if file, err = vfs.NewMem().Create("log", vfs.WriteCategoryUnspecified); err != nil {
			return nil, err
		}
	}
	return &logFile{File: file, i: f.i}, nil
}

// syncBeforeMarker makes everything durable that was done in the directory before a marker
// of the manifest comes or goes. Pebble syncs it once when a marker has moved;
// a file system that keeps no order could lose the manifest that the new marker
// names until then, or the new marker and not the old one, and with them the
// store.
func (f *instanceFS) syncBeforeMarker(name string) {
	if !strings.HasPrefix(f.PathBase(name), ManifestMarker) || f.i.Err() != nil {
		return
	}
	if err := SyncDir(f.FS, f.PathDir(name)); err != nil {
		f.i.unfinished.unsure()
		_ = f.i.Fail(err) // kept for every later call
	}
}

// pauseFailed is how long the background work of a store pauses after each
// failure: Pebble repeats a failed flush at once. It creates files without holding its locks.
const pauseFailed = 50 * time.Millisecond

// Rename implements vfs.FS.
func (f *instanceFS) Rename(oldname, newname string) error {
	if f.i.Err() != nil {
		return nil //nolint:nilerr // F3
	}
	return f.opening(f.FS.Rename(oldname, newname))
}

// opening turns an error into a stopped store while that is being opened.
func (f *instanceFS) opening(err error) error {
	if err == nil || f.i.Opened() || errors.Is(err, os.ErrNotExist) {
		return err
	}
	_ = f.i.Fail(err) // kept for every later call
	return nil
}

// List implements vfs.FS. The first listings tell Pebble what there is; the last
// one comes when the instance works already.
func (f *instanceFS) List(dir string) ([]string, error) {
	files, err := f.FS.List(dir)
	if err != nil && f.i.compactions.Registered() {
		err = f.opening(err)
	}
	return files, err
}

// Remove implements vfs.FS.
func (f *instanceFS) Remove(name string) error {
	f.syncBeforeMarker(name)
	if f.i.Err() != nil && !f.i.unfinished.has(name) {
		if isTable(name) {
			_ = f.i.nowhere.fs().Remove(f.PathBase(name)) // it may lie on the disk instead
		}
		return nil // F3: a stopped store keeps what it has
	}
	return f.opening(f.FS.Remove(name))
}

// lazyDir is a directory handle that exists only while Sync runs. Pebble calls
// nothing else on one.
type lazyDir struct {
	vfs.File
	fs   *instanceFS
	name string
}

// Close implements vfs.File.
func (d *lazyDir) Close() error { return nil }

// Fd implements vfs.File.
func (d *lazyDir) Fd() uintptr { return vfs.InvalidFd }

// Sync implements vfs.File.
func (d *lazyDir) Sync() error {
	if d.fs.i.Err() != nil {
		return nil //nolint:nilerr // F3
	}
	if err := SyncDir(d.fs.FS, d.name); err != nil {
		d.fs.i.unfinished.unsure()
		_ = d.fs.i.Fail(err) // kept for every later call
	}
	return nil
}

// Steps of a log's preallocation in bytes: as much again as is written, so that
// ten thousand stores with one document each do not take the disk.
const (
	minLogStep = 64 << 10
	maxLogStep = 1 << 20
)

// plainFile is any file but a log or a table: the manifest, a marker.
type plainFile struct {
	vfs.File
	i *Instance
}

// Write implements vfs.File.
func (f *plainFile) Write(p []byte) (int, error) {
	if f.i.Err() != nil {
		return len(p), nil //nolint:nilerr // F3
	}
	if _, err := f.File.Write(p); err != nil {
		f.stopStore(err)
	}
	return len(p), nil
}

// stopStore turns an error of a file into a stopped store: after it a manifest
// takes no more, and every flush would fail.
func (f *plainFile) stopStore(err error) {
	f.i.unfinished.unsure()
	_ = f.i.Fail(err) // kept for every later call
}

// Sync implements vfs.File.
func (f *plainFile) Sync() error {
	if f.i.Err() != nil {
		return nil //nolint:nilerr // F3
	}
	if err := f.File.Sync(); err != nil {
		f.stopStore(err)
	}
	return nil
}

// logFile is a log. It preallocates by itself and ignores what Pebble asks for,
// which is 1.1 times the memtable's size at the first write. Its errors stop the
// store; it returns none.
type logFile struct {
	vfs.File
	i                 *Instance
	written, reserved int64
}

// Preallocate implements vfs.File.
func (f *logFile) Preallocate(int64, int64) error { return nil }

// Write implements vfs.File.
func (f *logFile) Write(p []byte) (int, error) {
	if f.i.Err() != nil {
		return len(p), nil //nolint:nilerr // F1: the log keeps its errors from Pebble
	}
	if end := f.written + int64(len(p)); end > f.reserved {
		step := max(minLogStep, min(f.written, maxLogStep), end-f.reserved)
		// Preallocation only saves metadata writes; where it fails the write
		// itself will say so.
		_ = f.File.Preallocate(f.reserved, step)
		f.reserved += step
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	if err != nil {
		_ = f.i.Fail(err) // kept for every later call
	}
	return len(p), nil
}

// stopStore turns an error of a log into a stopped store.
func (f *logFile) stopStore(err error) error {
	if err != nil {
		f.i.unsynced.Store(true)
		_ = f.i.Fail(err) // kept for every later call
	}
	return nil
}

// Sync implements vfs.File.
func (f *logFile) Sync() error { return f.stopStore(f.File.Sync()) }

// SyncData implements vfs.File.
func (f *logFile) SyncData() error { return f.stopStore(f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f *logFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.stopStore(err)
}

// Close implements vfs.File.
func (f *logFile) Close() error { return f.stopStore(f.File.Close()) }

// ManifestMarker begins the name of the file that an opened instance has. Pebble
// keeps facts in the names of empty files, marker.<name>.<counter>.<value>.
const ManifestMarker = "marker.manifest."

// SyncDir makes the entries of a directory durable.
func SyncDir(fs vfs.FS, name string) error {
	dir, err := fs.OpenDir(name)
	if err != nil {
		return err
	}
	if err := dir.Sync(); err != nil {
		_ = dir.Close() // the first error says what happened
		return err
	}
	return dir.Close()
}

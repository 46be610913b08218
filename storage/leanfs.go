package storage

import (
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// leanFS makes an open store cheap: two file descriptors instead of eight, and
// no preallocated log of the memtable's size. It has three differences from the
// file system below it:
//
//   - a directory is opened only while it is synced (Pebble holds five handles);
//   - a store's own LOCK file is not taken, the engine locks the data directory;
//   - a log is preallocated in steps that grow with it, not at once.
type leanFS struct{ vfs.FS }

// Unwrap implements vfs.FS.
func (f leanFS) Unwrap() vfs.FS { return f.FS }

// Lock implements vfs.FS.
func (f leanFS) Lock(string) (io.Closer, error) { return noLock{}, nil }

type noLock struct{}

// Close implements io.Closer.
func (noLock) Close() error { return nil }

// OpenDir implements vfs.FS.
func (f leanFS) OpenDir(name string) (vfs.File, error) { return &lazyDir{fs: f.FS, name: name}, nil }

// Create implements vfs.FS.
func (f leanFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return file, err
	}
	return &logFile{File: file}, nil
}

// lazyDir is a directory handle that exists only while Sync runs. Pebble calls
// nothing else on one.
type lazyDir struct {
	vfs.File
	fs   vfs.FS
	name string
}

// Close implements vfs.File.
func (d *lazyDir) Close() error { return nil }

// Fd implements vfs.File.
func (d *lazyDir) Fd() uintptr { return vfs.InvalidFd }

// Sync implements vfs.File.
func (d *lazyDir) Sync() error { return syncDir(d.fs, d.name) }

// syncDir makes the entries of a directory durable.
func syncDir(fs vfs.FS, name string) error {
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

// Steps of a log's preallocation in bytes: as much again as is written, so that
// ten thousand stores with one document each do not take the disk.
const (
	minLogStep = 64 << 10
	maxLogStep = 1 << 20
)

// logFile preallocates by itself and ignores what Pebble asks for, which is
// 1.1 times the memtable's size at the first write.
type logFile struct {
	vfs.File
	written, reserved int64
}

// Preallocate implements vfs.File.
func (f *logFile) Preallocate(int64, int64) error { return nil }

// Write implements vfs.File.
func (f *logFile) Write(p []byte) (int, error) {
	if end := f.written + int64(len(p)); end > f.reserved {
		step := max(minLogStep, min(f.written, maxLogStep), end-f.reserved)
		// Preallocation only saves metadata writes; where it fails the write
		// itself will say so.
		_ = f.File.Preallocate(f.reserved, step)
		f.reserved += step
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

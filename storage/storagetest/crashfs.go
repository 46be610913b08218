// Package storagetest holds what tests of storage and of the floors above need
// to simulate a loss of power.
package storagetest

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// CrashFS is a file system in memory that can be cloned as a loss of power would
// leave it, while stores on it are written.
//
// Pebble's own MemFS deadlocks there: some of its calls take a lock for reading
// twice, and CrashClone may wait for it in between. Here CrashClone waits for
// such calls to end first.
type CrashFS struct {
	*vfs.MemFS
	gate *sync.RWMutex
}

// NewCrashFS returns an empty file system.
func NewCrashFS() CrashFS { return CrashFS{vfs.NewCrashableMem(), &sync.RWMutex{}} }

// CrashClone returns a copy with what would be left after a loss of power now.
// It can be cloned again.
func (f CrashFS) CrashClone(cfg vfs.CrashCloneCfg) CrashFS {
	f.gate.Lock()
	defer f.gate.Unlock()
	return CrashFS{f.MemFS.CrashClone(cfg), &sync.RWMutex{}}
}

// Link implements vfs.FS.
func (f CrashFS) Link(oldname, newname string) error {
	f.gate.RLock()
	defer f.gate.RUnlock()
	return f.MemFS.Link(oldname, newname)
}

// ReuseForWrite implements vfs.FS.
func (f CrashFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f.gate.RLock()
	defer f.gate.RUnlock()
	return f.MemFS.ReuseForWrite(oldname, newname, category)
}

// Lock implements vfs.FS.
func (f CrashFS) Lock(name string) (io.Closer, error) {
	f.gate.RLock()
	defer f.gate.RUnlock()
	return f.MemFS.Lock(name)
}

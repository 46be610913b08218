package storagetest

import (
	"errors"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// SizedFS is a disk of a certain size on top of a file system in memory: what does
// not fit fails with ENOSPC, as on a disk. A file that was removed takes its space
// until it is closed.
type SizedFS struct {
	vfs.FS
	d *disk
}

// disk keeps account of the files. Only growing costs space; directories and names
// are free.
type disk struct {
	mu    sync.Mutex
	size  int64
	used  int64
	files map[string]*extent
}

// extent is the space of one file.
type extent struct {
	bytes int64
	names int
	open  int
}

// NewSizedFS puts a disk of so many bytes on top of a file system that is empty.
func NewSizedFS(base vfs.FS, size int64) SizedFS {
	return SizedFS{base, &disk{size: size, files: map[string]*extent{}}}
}

// Used returns how many bytes are taken.
func (f SizedFS) Used() int64 {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.used
}

// Resize makes the disk smaller or larger.
func (f SizedFS) Resize(size int64) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.size = size
}

// Put returns a disk on another file system that holds copies of the files, a
// crash clone of that below. What it holds is counted anew.
func (f SizedFS) Put(base vfs.FS) (SizedFS, error) {
	out := NewSizedFS(base, f.d.size)
	return out, out.count("")
}

func (f SizedFS) count(dir string) error {
	names, err := f.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		full := f.PathJoin(dir, name)
		info, err := f.Stat(full)
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := f.count(full); err != nil {
				return err
			}
			continue
		}
		f.d.files[clean(full)] = &extent{bytes: info.Size(), names: 1}
		f.d.used += info.Size()
	}
	return nil
}

func clean(name string) string { return strings.TrimPrefix(path.Clean(name), "/") }

// GetDiskUsage implements vfs.FS.
func (f SizedFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	free := uint64(max(0, f.d.size-f.d.used))
	return vfs.DiskUsage{TotalBytes: uint64(f.d.size), UsedBytes: uint64(f.d.used), AvailBytes: free}, nil
}

// Unwrap implements vfs.FS.
func (f SizedFS) Unwrap() vfs.FS { return f.FS }

// forgetLocked takes one name of a file away.
func (d *disk) forgetLocked(name string) {
	x := d.files[name]
	if x == nil {
		return
	}
	delete(d.files, name)
	x.names--
	d.settleLocked(x)
}

func (d *disk) settleLocked(x *extent) {
	if x.names == 0 && x.open == 0 {
		d.used -= x.bytes
		x.bytes = 0
	}
}

// opened wraps a file that was opened; made says that it is new and empty.
func (f SizedFS) opened(file vfs.File, err error, name string, made bool) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	name = clean(name)
	if made {
		f.d.forgetLocked(name)
	}
	x := f.d.files[name]
	if x == nil {
		if !made { // a directory
			return file, nil
		}
		x = &extent{names: 1}
		f.d.files[name] = x
	}
	x.open++
	return &sizedFile{File: file, d: f.d, x: x}, nil
}

// Create implements vfs.FS.
func (f SizedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	return f.opened(file, err, name, true)
}

// Open implements vfs.FS.
func (f SizedFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	return f.opened(file, err, name, false)
}

// OpenReadWrite implements vfs.FS.
func (f SizedFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, category, opts...)
	return f.opened(file, err, name, false)
}

// ReuseForWrite implements vfs.FS.
func (f SizedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, category)
	if err == nil {
		f.renamed(oldname, newname)
	}
	return f.opened(file, err, newname, false)
}

func (f SizedFS) renamed(oldname, newname string) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	from, to := clean(oldname), clean(newname)
	if x := f.d.files[from]; x != nil {
		f.d.forgetLocked(to)
		delete(f.d.files, from)
		f.d.files[to] = x
		return
	}
	for name, x := range f.d.files { // a directory
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			delete(f.d.files, name)
			f.d.files[to+"/"+rest] = x
		}
	}
}

// Rename implements vfs.FS.
func (f SizedFS) Rename(oldname, newname string) error {
	err := f.FS.Rename(oldname, newname)
	if err == nil {
		f.renamed(oldname, newname)
	}
	return err
}

// Link implements vfs.FS.
func (f SizedFS) Link(oldname, newname string) error {
	err := f.FS.Link(oldname, newname)
	if err == nil {
		f.d.mu.Lock()
		defer f.d.mu.Unlock()
		x := f.d.files[clean(oldname)]
		x.names++
		f.d.files[clean(newname)] = x
	}
	return err
}

// Remove implements vfs.FS.
func (f SizedFS) Remove(name string) error {
	err := f.FS.Remove(name)
	if err == nil {
		f.d.mu.Lock()
		defer f.d.mu.Unlock()
		f.d.forgetLocked(clean(name))
	}
	return err
}

// RemoveAll implements vfs.FS.
func (f SizedFS) RemoveAll(name string) error {
	err := f.FS.RemoveAll(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	for file := range f.d.files {
		if file == clean(name) || strings.HasPrefix(file, clean(name)+"/") {
			f.d.forgetLocked(file)
		}
	}
	return err
}

// sizedFile is an open file of a SizedFS.
type sizedFile struct {
	vfs.File
	d  *disk
	x  *extent
	at int64 // where Write goes on
}

// Write implements vfs.File. What fits is written.
func (f *sizedFile) Write(p []byte) (int, error) {
	fits, err := f.grow(f.at + int64(len(p)))
	n, werr := f.File.Write(p[:max(0, min(int64(len(p)), fits-f.at))])
	f.at += int64(n)
	return n, errors.Join(werr, err)
}

// WriteAt implements vfs.File.
func (f *sizedFile) WriteAt(p []byte, at int64) (int, error) {
	if _, err := f.grow(at + int64(len(p))); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

// grow takes the space up to an end and returns up to where there was some.
func (f *sizedFile) grow(end int64) (fits int64, err error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	fits = end
	if most := f.x.bytes + max(0, f.d.size-f.d.used); end > most {
		fits, err = most, syscall.ENOSPC
	}
	if more := fits - f.x.bytes; more > 0 {
		f.x.bytes += more
		f.d.used += more
	}
	return fits, err
}

// Close implements vfs.File.
func (f *sizedFile) Close() error {
	err := f.File.Close()
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.x.open--
	f.d.settleLocked(f.x)
	return err
}

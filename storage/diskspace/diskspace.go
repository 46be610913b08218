// Package diskspace tells whether there is space for writes on the disk of a node, and
// shares out the last of it.
package diskspace

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/storage/fault"
)

// Space knows whether there is space for writes. Some space is kept, and who may
// take it depends on what would be lost without it:
//
//   - indexes can be made again: no batch of one is committed, and none of their
//     compactions begins, while less than twice the kept space would be left when all
//     that they have in memory is written. Their tables end at one and a half times:
//     documents are never refused because of them;
//   - documents are refused where it begins, before anything fails, and stores are
//     opened for reading;
//   - compactions of documents, which give space back in the end, may take it but
//     for a quarter;
//   - all of it is for what has to go on: flushes of documents, deletions, the
//     metadata.
//
// It looks when a caller asks, at most every Look, and each second while it
// found too little.
type Space struct {
	FS  vfs.FS
	Dir string
	Log *zap.Logger
	// Hold is told when compactions of indexes have to wait, and when they need not.
	Hold func(bool)

	looked atomic.Int64 // nanoseconds of the clock
	full   atomic.Bool  // for documents
	tight  atomic.Bool  // for indexes
	since  atomic.Int64 // nanoseconds of the clock when it became tight

	free, total atomic.Uint64 // bytes as of the last look, 0 where the file system does not tell

	spare   atomic.Int64 // bytes above what indexes leave, as of the last look
	seen    atomic.Bool  // there was one
	changes sync.Mutex   // held while Hold is told
	pending atomic.Int64 // bytes that indexes have in memory and are going to write
}

const (
	// Look is how long what was seen counts.
	Look = 250 * time.Millisecond
	// LookIndexes is Look for batches of indexes, which fill a disk in no time.
	LookIndexes = 10 * time.Millisecond
	// Kept is how many bytes writes of documents leave free, or the
	// KeptFraction of a smaller disk.
	Kept = 64 << 20
	// KeptFraction is which part of a smaller disk is kept.
	KeptFraction = 20
	// Indexes stop at so many halves of the kept space, and their tables end at tableHalves.
	indexHalves = 4
	tableHalves = 3
	// ResumeHalves is at how many of them indexes go on.
	ResumeHalves = 6
	// ResumeAfter is how long indexes wait at least before they go on: what a table that
	// found no space gives back would be filled again at once.
	ResumeAfter = 5 * time.Second
	// compactionShare is which part of the kept space compactions of documents leave.
	compactionShare = 4
)

// Err is fault.InsufficientStorage while the disk is full.
func (d *Space) Err() error {
	d.refresh(Look)
	if d.full.Load() {
		return ErrDiskFull()
	}
	return nil
}

// IndexErr is fault.InsufficientStorage while there is no space for so many bytes more of
// indexes.
func (d *Space) IndexErr(more int64) error {
	d.refresh(LookIndexes)
	if !d.tight.Load() && d.seen.Load() && d.spare.Load() < d.pending.Load()+more {
		d.NoteTight()
	}
	if d.tight.Load() || d.full.Load() {
		return errIndexesWait()
	}
	return nil
}

// Pending notes that indexes have so many bytes more in memory, or fewer, which are
// going to be written.
func (d *Space) Pending(bytes int64) {
	if bytes < 0 {
		d.looked.Store(0) // they are on the disk now
	}
	d.pending.Add(bytes)
}

// PendingBytes returns the sum of what Pending was told.
func (d *Space) PendingBytes() int64 { return d.pending.Load() }

// refresh looks when the last look is that long ago.
func (d *Space) refresh(after time.Duration) {
	now := time.Now().UnixNano()
	if last := d.looked.Load(); (now-last >= int64(after) || now < last) && d.looked.CompareAndSwap(last, now) {
		d.look()
	}
}

// Watch looks again while something waits for space.
func (d *Space) Watch() {
	if d.tight.Load() || d.full.Load() {
		d.refresh(Look)
	}
}

// ErrDiskFull is the error of a write that finds no space.
func ErrDiskFull() error { return fault.New(fault.InsufficientStorage, "No space left on the disk.") }

// SpaceFor is fault.InsufficientStorage when so many bytes more would take of the space that is kept.
func (d *Space) SpaceFor(bytes int64) error {
	if free, kept, ok := d.space(); ok && free < kept+uint64(max(bytes, 0)) {
		return ErrDiskFull()
	}
	return nil
}

func errIndexesWait() error {
	return fault.New(fault.InsufficientStorage, "Too little space is left on the disk to update the index.")
}

// Usage returns the bytes that are free on the disk, and its size, as of about Look ago;
// both are 0 where the file system does not tell.
func (d *Space) Usage() (free, total uint64) {
	d.refresh(Look)
	return d.free.Load(), d.total.Load()
}

// space returns the bytes that are free, and those to be kept. ok is false on a file
// system that does not tell.
func (d *Space) space() (free, kept uint64, ok bool) {
	usage, err := d.FS.GetDiskUsage(d.Dir)
	d.free.Store(usage.AvailBytes)
	d.total.Store(usage.TotalBytes)
	if err != nil || usage.TotalBytes == 0 {
		return 0, 0, false
	}
	return usage.AvailBytes, min(Kept, usage.TotalBytes/KeptFraction), true
}

// look asks the file system. One that does not tell is taken to have space again.
func (d *Space) look() {
	full, tight, spare := false, false, int64(math.MaxInt64)
	if free, kept, ok := d.space(); ok {
		halves := uint64(indexHalves)
		spare = int64(free) - int64(kept*halves/2)
		if d.tight.Load() {
			halves = ResumeHalves
		}
		full, tight = free < kept, int64(free)-d.pending.Load() < int64(kept*halves/2)
		waited := time.Duration(time.Now().UnixNano() - d.since.Load()) // less than none when the clock was set
		tight = tight || d.tight.Load() && waited >= 0 && waited < ResumeAfter
	}
	d.spare.Store(spare)
	d.seen.Store(true)
	d.set(full, tight)
}

func (d *Space) set(full, tight bool) {
	d.changes.Lock()
	defer d.changes.Unlock()
	if d.tight.Swap(tight) != tight {
		d.Hold(tight)
		if tight {
			d.since.Store(time.Now().UnixNano())
			d.Log.Warn("little space is left on the disk: indexes are not updated, documents are written", zap.String("directory", d.Dir))
		} else {
			d.Log.Info("indexes are updated again: the disk has space", zap.String("directory", d.Dir))
		}
	}
	if d.full.Swap(full) != full {
		if full {
			d.Log.Error("the disk is full: writes are refused, reads go on", zap.String("directory", d.Dir))
		} else {
			d.Log.Info("the disk has space again", zap.String("directory", d.Dir))
		}
	}
}

// NoteFull notes that a write of documents found no space.
func (d *Space) NoteFull() {
	d.looked.Store(time.Now().UnixNano())
	d.set(true, true)
}

// NoteTight notes that a write of an index found no space.
func (d *Space) NoteTight() {
	d.looked.Store(time.Now().UnixNano())
	d.set(d.full.Load(), true)
}

// TableSpace is instance.Shared.TableSpace.
func (d *Space) TableSpace(derived, compaction bool) error {
	free, kept, ok := d.space()
	floor := uint64(0)
	switch {
	case !ok:
		return nil
	case derived:
		floor = kept * tableHalves / 2
	case compaction:
		floor = kept / compactionShare
	}
	if free >= floor {
		return nil
	}
	if derived {
		d.NoteTight()
	}
	return fmt.Errorf("%d bytes are free and %d are kept: %w", free, floor, syscall.ENOSPC)
}

// Full reports whether the last look found too little space for documents.
func (d *Space) Full() bool { return d.full.Load() }

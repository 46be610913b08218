package storage

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/storage/fault"
)

// diskSpace knows whether there is room for writes. Some room is kept for what has
// to go on without them: flushes, compactions, the metadata. While there is none,
// writes are refused before anything fails, and stores are opened for reading.
//
// It looks when somebody asks, at most every checkSpace.
type diskSpace struct {
	fs     vfs.FS
	dir    string
	log    *zap.Logger
	looked atomic.Int64 // nanoseconds of the clock
	full   atomic.Bool
}

const (
	checkSpace = 250 * time.Millisecond
	// keptSpace is what writes leave free, or a twentieth of a smaller disk.
	keptSpace    = 64 << 20
	keptFraction = 20
)

// err is fault.InsufficientStorage while the disk is full.
func (d *diskSpace) err() error {
	now := time.Now().UnixNano()
	if last := d.looked.Load(); now-last >= int64(checkSpace) && d.looked.CompareAndSwap(last, now) {
		d.look()
	}
	if d.full.Load() {
		return errDiskFull()
	}
	return nil
}

func errDiskFull() error { return fault.New(fault.InsufficientStorage, "No space left on the disk.") }

// look asks the file system. One that does not tell is taken to have room again.
func (d *diskSpace) look() {
	full := false
	if usage, err := d.fs.GetDiskUsage(d.dir); err == nil && usage.TotalBytes > 0 {
		full = usage.AvailBytes < min(keptSpace, usage.TotalBytes/keptFraction)
	}
	if was := d.full.Swap(full); was != full {
		d.tell(full)
	}
}

// noteFull notes that a write found no room.
func (d *diskSpace) noteFull() {
	d.looked.Store(time.Now().UnixNano())
	if !d.full.Swap(true) {
		d.tell(true)
	}
}

func (d *diskSpace) tell(full bool) {
	if full {
		d.log.Error("the disk is full: writes are refused, reads go on", zap.String("directory", d.dir))
		return
	}
	d.log.Info("the disk has room again", zap.String("directory", d.dir))
}

// DiskFull is fault.InsufficientStorage while the disk of the data directory is full,
// which this looks up now and then.
func (e *Engine) DiskFull() error { return e.space.err() }

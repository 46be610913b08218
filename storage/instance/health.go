package instance

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/scheduler"
)

// Health is how compactions and reads of an instance have gone, and which of its tables are damaged. It is
// safe for concurrent use.
type Health struct {
	files       *files
	compactions *scheduler.StoreScheduler

	flushes, admitted atomic.Int64            // flushes that have ended; as of the last Admit
	failed            atomic.Pointer[failure] // the last compaction; nil: it succeeded
	wait              atomic.Int64            // nanoseconds after it
	righted           atomic.Bool             // what was damaged, before it was opened
	unreadable        atomic.Int64            // compactions and reads that failed at what they read; counts of maxUnread
}

// maxUnread is how often compactions or reads fail with an error of the disk until files are taken to be damaged.
// One that says that they are is believed at once.
const maxUnread = 3

// Unreadable reports whether compactions or reads met what cannot be read, and would for good. Those of other
// files may succeed meanwhile.
func (h *Health) Unreadable() bool { return h.unreadable.Load() >= maxUnread }

// NoteUnread counts an error of the disk at a read, as those of compactions are counted.
func (h *Health) NoteUnread() { h.unreadable.Add(1) }

// NoteRewritten forgets that compactions failed: other files have taken the place of those that they read.
func (h *Health) NoteRewritten() {
	h.unreadable.Store(0)
	h.failed.Store(nil)
	h.wait.Store(0)
	h.compactions.Delay(0)
}

// Mends reports whether damaged tables are known that may be whole when the instance is opened anew, now or
// later. Until then nothing that it has counts as lost.
func (h *Health) Mends() bool {
	_, untried, _ := h.files.damaged()
	return len(untried) > 0
}

// MendDue is Mends for tables that may be tried now.
func (h *Health) MendDue() bool {
	_, _, due := h.files.damaged()
	return len(due) > 0
}

// Righted reports whether tables were damaged, and all of them were set right before the instance was opened.
func (h *Health) Righted() bool { return h.righted.Load() }

// Mended reports whether no table of the instance is known to be damaged.
func (h *Health) Mended() bool {
	all, _, _ := h.files.damaged()
	return len(all) == 0
}

// How long a store waits after a failed compaction, twice as long each time;
// Pebble would try again at once and for ever.
const (
	retryFailed   = 5 * time.Second
	retryFailedTo = 5 * time.Minute
)

// isOf reports whether an error is that of the last compaction, which has failed.
func (h *Health) isOf(err error) bool {
	f := h.failed.Load()
	return f != nil && errors.Is(err, f.err)
}

// compactionEnded notes how a compaction has ended; stopped returns why the instance has, if so.
// That the disk is full is said once, until one succeeds.
func (h *Health) compactionEnded(err error, stopped func() error) {
	switch {
	case errors.Is(err, pebble.ErrCancelledCompaction), errors.Is(err, errClosing):
		return
	case err == nil:
		h.failed.Store(nil)
		h.wait.Store(0)
		return
	}
	switch {
	case pebble.IsCorruptionError(err):
		h.unreadable.Add(maxUnread)
	case errors.Is(err, syscall.EIO):
		h.unreadable.Add(1)
	}
	wait := time.Duration(h.wait.Load())
	wait = min(max(2*wait, retryFailed), retryFailedTo)
	h.wait.Store(int64(wait))
	h.compactions.Delay(wait)
	before := h.failed.Swap(&failure{err})
	switch full := errors.Is(err, syscall.ENOSPC); {
	case stopped() != nil: // said already
	case !full:
		h.files.log.Error("compaction failed", zap.Error(err), zap.Duration("retry_in", wait))
	case before == nil:
		h.files.log.Warn("a compaction waits for space on the disk", zap.Error(err))
	}
}

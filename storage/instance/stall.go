package instance

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"
)

// A store whose compactions fall behind must not take more writes: each read would
// look into more and more tables. Pebble stalls them in Commit, where nothing ends
// the wait while compactions fail; so its limit is out of reach (neverStall), and
// Admit waits instead.

const (
	stallTables = 20 // sublevels of L0 at which writes wait
	neverStall  = 1 << 20
	// stallLook is how often a stalled write looks whether it has to wait any longer.
	stallLook = 250 * time.Millisecond
)

// stall records how the compactions of an instance have gone.
type stall struct {
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
func (i *Instance) Unreadable() bool { return i.stall.unreadable.Load() >= maxUnread }

// NoteUnread counts an error of the disk at a read, as those of compactions are counted.
func (i *Instance) NoteUnread() { i.stall.unreadable.Add(1) }

// NoteRewritten forgets that compactions failed: other files have taken the place of those that they read.
func (i *Instance) NoteRewritten() {
	i.stall.unreadable.Store(0)
	i.stall.failed.Store(nil)
	i.stall.wait.Store(0)
	i.compactions.Delay(0)
}

// Stalled reports whether compactions are so far behind that Admit waits.
func (i *Instance) Stalled() bool { return i.DB().Metrics().Levels[0].Sublevels >= stallTables }

// Admit returns when the instance may take another batch, or done is closed. The
// error says why it cannot for now: compactions fail.
func (i *Instance) Admit(done <-chan struct{}) error {
	flushes := i.stall.flushes.Load()
	if flushes == i.stall.admitted.Load() {
		return nil
	}
	for {
		if !i.Stalled() {
			i.stall.admitted.Store(flushes)
			return nil
		}
		if f := i.stall.failed.Load(); f != nil {
			return DiskError("compaction", f.err)
		}
		look := time.NewTimer(stallLook)
		select {
		case <-look.C:
		case <-i.Failed():
		case <-done:
			look.Stop()
			return nil
		}
		look.Stop()
		if err := i.Err(); err != nil {
			return err
		}
	}
}

// How long a store waits after a failed compaction, twice as long each time;
// Pebble would try again at once and for ever.
const (
	retryFailed   = 5 * time.Second
	retryFailedTo = 5 * time.Minute
)

// isOf reports whether an error is that of the last compaction, which has failed.
func (s *stall) isOf(err error) bool {
	f := s.failed.Load()
	return f != nil && errors.Is(err, f.err)
}

// compactionEnded notes how a compaction has ended. That the disk is full is said
// once, until one succeeds.
func (i *Instance) compactionEnded(err error) {
	switch {
	case errors.Is(err, pebble.ErrCancelledCompaction), errors.Is(err, errClosing):
		return
	case err == nil:
		i.stall.failed.Store(nil)
		i.stall.wait.Store(0)
		return
	}
	switch {
	case pebble.IsCorruptionError(err):
		i.stall.unreadable.Add(maxUnread)
	case errors.Is(err, syscall.EIO):
		i.stall.unreadable.Add(1)
	}
	wait := time.Duration(i.stall.wait.Load())
	wait = min(max(2*wait, retryFailed), retryFailedTo)
	i.stall.wait.Store(int64(wait))
	i.compactions.Delay(wait)
	before := i.stall.failed.Swap(&failure{err})
	switch full := errors.Is(err, syscall.ENOSPC); {
	case i.Err() != nil: // said already
	case !full:
		i.log.Error("compaction failed", zap.Error(err), zap.Duration("retry_in", wait))
	case before == nil:
		i.log.Warn("a compaction waits for room on the disk", zap.Error(err))
	}
}

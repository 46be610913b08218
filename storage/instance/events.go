package instance

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"
)

// pebbleLogger passes Pebble's messages on. Pebble calls Fatalf where it cannot
// go on (a failed write of the manifest, say) and expects the process to end;
// here only the store does.
type pebbleLogger struct{ i *Instance }

// Infof implements pebble.Logger. Pebble reports every flush and compaction.
func (l pebbleLogger) Infof(format string, args ...any) {
	l.i.files.logRead(format, args)
	if l.i.log.Core().Enabled(zap.DebugLevel) {
		l.i.log.Debug(fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (l pebbleLogger) Errorf(format string, args ...any) {
	l.i.log.Error(fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. The arguments may hold the cause.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	cause := fmt.Errorf("pebble: %s", fmt.Sprintf(format, args...))
	for _, a := range args {
		if err, ok := a.(error); ok {
			cause = fmt.Errorf("pebble: %w", err)
		}
	}
	_ = l.i.Fail(cause) // kept for every later call
}

// events reacts to failures in the background. A failed flush stops the store:
// memory would fill until writes block. A failed compaction is tried again
// later, since everything stays readable and durable.
func (i *Instance) events() *pebble.EventListener {
	return &pebble.EventListener{
		TableCreated: i.unfinished.created,
		FlushBegin:   func(info pebble.FlushInfo) { i.unwritten.flushBegins(info.InputBytes) },
		FlushEnd: func(info pebble.FlushInfo) {
			i.unfinished.ended(info.JobID)
			i.health.flushes.Add(1)
			i.unwritten.flushEnds()
			flushed := info.Input
			if info.Ingest {
				flushed = 1 // Input counts tables
			}
			i.memtables.grow(i.shared.Memory, flushed)
			if info.Err != nil {
				i.flushErr.Store(&failure{info.Err})
			}
		},
		CompactionEnd: func(info pebble.CompactionInfo) {
			i.unfinished.ended(info.JobID)
			i.health.compactionEnded(info.Err, i.Err)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			if i.Err() != nil {
				return // what a failed store reads says nothing
			}
			first := !i.kind.Derived && i.shared.Mending.met(i.shared.FS, info.Path)
			if i.kind.Shared {
				if first {
					i.log.Error("damaged file", zap.String("path", info.Path), zap.Error(info.Details))
				}
				i.health.unreadable.Store(maxUnread)
				return
			}
			i.damaged.Store(true)
			_ = i.Fail(fmt.Errorf("damaged file %s: %w", info.Path, info.Details)) // kept for every later call
		},
		BackgroundError: func(err error) {
			// FlushEnd also reports, as an error, that a flush had nothing to
			// write; only failures come here as well.
			if f := i.flushErr.Load(); f != nil && errors.Is(err, f.err) {
				_ = i.Fail(fmt.Errorf("flush: %w", err)) // kept for every later call
			}
			damaged := pebble.IsCorruptionError(err)
			if i.Err() == nil && !damaged && !errors.Is(err, errClosing) && !errors.Is(err, syscall.ENOSPC) { // said elsewhere
				i.log.Error("background work failed", zap.Error(err))
			}
			if damaged && !i.health.isOf(err) && (i.flushErr.Load() == nil || !errors.Is(err, i.flushErr.Load().err)) {
				pause(statisticsPause, i.closing, i.quit)
			}
		},
	}
}

// statisticsPause is how long the reading of statistics of tables, which holds no lock of Pebble's,
// pauses when it met a damaged one: it would try again at once, and for ever.
const statisticsPause = time.Minute

// pause holds up work in the background that will be tried again, until the time is over or one of
// the channels is closed.
func pause(limit time.Duration, closed, other <-chan struct{}) {
	wait := time.NewTimer(limit)
	defer wait.Stop()
	select {
	case <-closed:
	case <-other:
	case <-wait.C:
	}
}

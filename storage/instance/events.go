package instance

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"
)

// pebbleLogger passes Pebble's messages on. Pebble calls Fatalf where it cannot
// go on (a failed write of the manifest, say) and expects the process to end;
// here only the store does.
type pebbleLogger struct{ i *Instance }

// Infof implements pebble.Logger. Pebble reports every flush and compaction.
func (l pebbleLogger) Infof(format string, args ...any) {
	l.i.logRead(format, args)
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
		FlushBegin:   func(info pebble.FlushInfo) { i.flushBegins(info.InputBytes) },
		FlushEnd: func(info pebble.FlushInfo) {
			i.unfinished.ended(info.JobID)
			i.stall.flushes.Add(1)
			i.flushEnds()
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
			i.compactionEnded(info.Err)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			if i.Err() != nil {
				return // what a failed store reads says nothing
			}
			if i.lenient {
				i.log.Error("damaged file", zap.String("path", info.Path), zap.Error(info.Details))
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
			if i.Err() == nil && !errors.Is(err, errClosing) && !errors.Is(err, syscall.ENOSPC) { // said elsewhere
				i.log.Error("background work failed", zap.Error(err))
			}
		},
	}
}

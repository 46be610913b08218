package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"divan/cluster/config"
)

// logger writes the log of a node.
type logger struct {
	*zap.Logger
	level zap.AtomicLevel
	file  *logFile     // nil: the log goes elsewhere
	count *lineCount   // nil: lines are not counted
	close func() error // gives its file back
}

// lineCount counts the lines of a log by their levels.
type lineCount [zapcore.ErrorLevel - zapcore.DebugLevel + 1]atomic.Uint64

func (c *lineCount) add(level zapcore.Level) {
	c[min(level, zapcore.ErrorLevel)-zapcore.DebugLevel].Add(1)
}

// lines returns how many lines the log has had, by CouchDB's names of levels.
func (j *logger) lines() map[string]uint64 {
	out := make(map[string]uint64, len(j.count))
	for i, name := range [...]string{"debug", "info", "warning", "error"} {
		out[name] = 0
		if j.count != nil {
			out[name] = j.count[i].Load()
		}
	}
	return out
}

// openLog opens the log that section [log] describes, unless there is one.
func (c Config) openLog(l config.Log) (*logger, error) {
	if c.Logger != nil {
		return &logger{Logger: c.Logger, level: zap.NewAtomicLevel(), close: func() error { return nil }}, nil
	}
	var file *logFile
	var out zapcore.WriteSyncer
	done := func() error { return nil }
	switch l.Writer {
	case "stdout":
		out = unsynced{os.Stdout}
	case "file":
		file = &logFile{path: l.File}
		if err := file.reopen(); err != nil {
			return nil, err
		}
		out, done = unsynced{file}, file.close
	default:
		out = unsynced{os.Stderr}
	}
	format := zap.NewProductionEncoderConfig()
	format.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	var encoder zapcore.Encoder = newLineEncoder(format)
	if l.Format == "json" {
		encoder = zapcore.NewJSONEncoder(format)
	}
	level := zap.NewAtomicLevelAt(levelOf(l.Level))
	lines := &zapcore.BufferedWriteSyncer{WS: out, Size: logBuffer, FlushInterval: logDelay}
	count := new(lineCount)
	each := zap.Hooks(func(e zapcore.Entry) error {
		count.add(e.Level)
		if e.Level >= zapcore.WarnLevel {
			return lines.Sync()
		}
		return nil
	})
	stop := func() error { return errors.Join(lines.Stop(), done()) }
	return &logger{Logger: zap.New(zapcore.NewCore(encoder, lines, level), each), level: level, file: file, count: count, close: stop}, nil
}

// Lines of the log are gathered, because a write for each costs a busy node a
// tenth of its time. A warning, and all before it, is written at once.
const (
	logBuffer = 64 << 10
	logDelay  = 200 * time.Millisecond
)

// follow makes the level follow changes of the configuration; writer, file and
// format are those of the start.
func (j *logger) follow(h *config.Holder) {
	h.Subscribe(func(_, now *config.Snapshot) { j.level.SetLevel(levelOf(now.Log.Level)) })
}

// reopen opens the file of the log anew: it may have been renamed.
func (j *logger) reopen() error {
	if j.file == nil {
		return nil
	}
	return j.file.reopen()
}

// logFile is the file of a log. It is appended to, so that it can be cut
// (logrotate's copytruncate) while the node runs, or be renamed and opened anew.
// It is safe for concurrent use.
type logFile struct {
	path string
	mu   struct {
		sync.Mutex
		file *os.File
	}
}

// reopen opens the file at its path. When that fails the one from before stays.
func (l *logFile) reopen() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	l.mu.Lock()
	before := l.mu.file
	l.mu.file = f
	l.mu.Unlock()
	if before != nil {
		return before.Close()
	}
	return nil
}

// Write implements io.Writer.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.file.Write(p)
}

func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.file.Close()
}

// unsynced never waits for the disk: losing the last lines of a log with the
// machine is better than waiting for every one.
type unsynced struct{ io.Writer }

// Sync implements zapcore.WriteSyncer.
func (unsynced) Sync() error { return nil }

// levelOf maps CouchDB's names of levels.
func levelOf(name string) zapcore.Level {
	switch strings.ToLower(name) {
	case "debug":
		return zapcore.DebugLevel
	case "warning", "warn":
		return zapcore.WarnLevel
	case "error", "err", "critical", "crit", "alert", "emergency", "emerg":
		return zapcore.ErrorLevel
	case "none":
		return zapcore.FatalLevel
	}
	return zapcore.InfoLevel
}

package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"divan/cluster/config"
)

// journal is the log of a node.
type journal struct {
	*zap.Logger
	level zap.AtomicLevel
	close func() error // gives its file back
}

// journal opens the log that section [log] describes, unless there is one.
func (c Config) journal(l config.Log) (*journal, error) {
	if c.Logger != nil {
		return &journal{c.Logger, zap.NewAtomicLevel(), func() error { return nil }}, nil
	}
	out, done, err := logTarget(l)
	if err != nil {
		return nil, err
	}
	format := zap.NewProductionEncoderConfig()
	format.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewConsoleEncoder(format)
	if l.Format == "json" {
		encoder = zapcore.NewJSONEncoder(format)
	}
	level := zap.NewAtomicLevelAt(levelOf(l.Level))
	lines := &zapcore.BufferedWriteSyncer{WS: out, Size: logBuffer, FlushInterval: logDelay}
	urgent := zap.Hooks(func(e zapcore.Entry) error {
		if e.Level >= zapcore.WarnLevel {
			return lines.Sync()
		}
		return nil
	})
	stop := func() error { return errors.Join(lines.Stop(), done()) }
	return &journal{zap.New(zapcore.NewCore(encoder, lines, level), urgent), level, stop}, nil
}

// Lines of the log are gathered, because a write for each costs a busy node a
// tenth of its time. A warning, and all before it, is written at once.
const (
	logBuffer = 64 << 10
	logDelay  = 200 * time.Millisecond
)

// follow makes the level follow changes of the configuration; writer, file and
// format are those of the start.
func (j *journal) follow(h *config.Holder) {
	h.Subscribe(func(_, now *config.Snapshot) { j.level.SetLevel(levelOf(now.Log.Level)) })
}

// logTarget opens what the log is written to. A file is appended to, so that
// it can be cut (logrotate's copytruncate) while the node runs.
func logTarget(l config.Log) (zapcore.WriteSyncer, func() error, error) {
	nothing := func() error { return nil }
	switch l.Writer {
	case "stdout":
		return unsynced{os.Stdout}, nothing, nil
	case "file":
		f, err := os.OpenFile(l.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return nil, nil, fmt.Errorf("open the log: %w", err)
		}
		return unsynced{f}, f.Close, nil
	}
	return unsynced{os.Stderr}, nothing, nil
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

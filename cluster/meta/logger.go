package meta

import (
	"io"
	"log" //nolint:depguard // hclog.Logger has a method that returns one; it writes to zap
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// raftLogger writes hashicorp/raft's log lines through zap. Its errors repeat for
// as long as a node is away, so they are warnings here, a few a minute of each
// kind; everything below is for those who look for a fault.
type raftLogger struct {
	zap  *zap.Logger
	name string
	args []any
}

var _ hclog.Logger = (*raftLogger)(nil)

// RaftLogger returns a logger for parts of hashicorp/raft that are made outside
// of this package, like a transport.
func RaftLogger(z *zap.Logger) hclog.Logger { return newRaftLogger(z) }

func newRaftLogger(z *zap.Logger) *raftLogger {
	return &raftLogger{name: "raft", zap: z.Named("raft").WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Minute, 3, 0)
	}))}
}

func (l *raftLogger) level(level hclog.Level) zapcore.Level {
	if level >= hclog.Error {
		return zapcore.WarnLevel
	}
	return zapcore.DebugLevel
}

// Log implements hclog.Logger, as the methods below do.
func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	if msg == "failed to decode incoming command" {
		level = hclog.Debug // a connection that ends, no more
	}
	entry := l.zap.Check(l.level(level), msg)
	if entry == nil {
		return
	}
	all := append(l.args[:len(l.args):len(l.args)], args...)
	fields := make([]zap.Field, 0, len(all)/2)
	for i := 0; i+1 < len(all); i += 2 {
		key, _ := all[i].(string)
		fields = append(fields, zap.Any(key, all[i+1]))
	}
	entry.Write(fields...)
}

func (l *raftLogger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *raftLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *raftLogger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *raftLogger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *raftLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *raftLogger) enabled(level hclog.Level) bool { return l.zap.Core().Enabled(l.level(level)) }

func (l *raftLogger) IsTrace() bool { return l.enabled(hclog.Trace) }
func (l *raftLogger) IsDebug() bool { return l.enabled(hclog.Debug) }
func (l *raftLogger) IsInfo() bool  { return l.enabled(hclog.Info) }
func (l *raftLogger) IsWarn() bool  { return l.enabled(hclog.Warn) }
func (l *raftLogger) IsError() bool { return l.enabled(hclog.Error) }

func (l *raftLogger) ImpliedArgs() []any { return l.args }
func (l *raftLogger) Name() string       { return l.name }

func (l *raftLogger) With(args ...any) hclog.Logger {
	out := *l
	out.args = append(l.args[:len(l.args):len(l.args)], args...)
	return &out
}

func (l *raftLogger) Named(name string) hclog.Logger {
	out := *l
	out.name, out.zap = l.name+"."+name, l.zap.Named(name)
	return &out
}

func (l *raftLogger) ResetNamed(name string) hclog.Logger { return l.Named(name) }

// SetLevel does nothing: the level is zap's.
func (l *raftLogger) SetLevel(hclog.Level) {}

func (l *raftLogger) GetLevel() hclog.Level {
	for level := hclog.Trace; level < hclog.Error; level++ {
		if l.enabled(level) {
			return level
		}
	}
	return hclog.Error
}

func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return zap.NewStdLog(l.zap)
}

func (l *raftLogger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}

// Package raftlog writes the log lines of hashicorp/raft through zap.
package raftlog

import (
	"io"
	"log" //nolint:depguard // hclog.Logger has a method that returns one; it writes to zap
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger writes hashicorp/raft's log lines through zap. Its errors repeat for
// as long as a node is away, so they are warnings here, a few a minute of each
// kind; everything below is for those who look for a fault.
type logger struct {
	zap  *zap.Logger
	name string
	args []any
}

var _ hclog.Logger = (*logger)(nil)

// New returns a logger that writes to z.
func New(z *zap.Logger) hclog.Logger {
	return &logger{name: "raft", zap: z.Named("raft").WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Minute, 3, 0)
	}))}
}

func (l *logger) level(level hclog.Level) zapcore.Level {
	if level >= hclog.Error {
		return zapcore.WarnLevel
	}
	return zapcore.DebugLevel
}

// Log implements hclog.Logger, as the methods below do.
func (l *logger) Log(level hclog.Level, msg string, args ...any) {
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

func (l *logger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *logger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *logger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *logger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *logger) enabled(level hclog.Level) bool { return l.zap.Core().Enabled(l.level(level)) }

func (l *logger) IsTrace() bool { return l.enabled(hclog.Trace) }
func (l *logger) IsDebug() bool { return l.enabled(hclog.Debug) }
func (l *logger) IsInfo() bool  { return l.enabled(hclog.Info) }
func (l *logger) IsWarn() bool  { return l.enabled(hclog.Warn) }
func (l *logger) IsError() bool { return l.enabled(hclog.Error) }

func (l *logger) ImpliedArgs() []any { return l.args }
func (l *logger) Name() string       { return l.name }

func (l *logger) With(args ...any) hclog.Logger {
	out := *l
	out.args = append(l.args[:len(l.args):len(l.args)], args...)
	return &out
}

func (l *logger) Named(name string) hclog.Logger {
	out := *l
	out.name, out.zap = l.name+"."+name, l.zap.Named(name)
	return &out
}

func (l *logger) ResetNamed(name string) hclog.Logger { return l.Named(name) }

// SetLevel does nothing: the level is zap's.
func (l *logger) SetLevel(hclog.Level) {}

func (l *logger) GetLevel() hclog.Level {
	for level := hclog.Trace; level < hclog.Error; level++ {
		if l.enabled(level) {
			return level
		}
	}
	return hclog.Error
}

func (l *logger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return zap.NewStdLog(l.zap)
}

func (l *logger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}

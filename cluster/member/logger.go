package member

import (
	"log" //nolint:depguard // hashicorp/memberlist wants one; it writes to zap
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger returns a logger that passes hashicorp/memberlist's lines on to zap.
// The library reports every packet that is lost, so its errors are warnings
// here, a few of them at a time, and everything else is for those who look for
// a fault.
func newLogger(to *zap.Logger) *log.Logger {
	sparse := to.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Minute, 3, 0)
	}))
	return log.New(logWriter{sparse}, "", 0)
}

type logWriter struct{ log *zap.Logger }

// Write implements io.Writer for one line.
func (l logWriter) Write(b []byte) (int, error) {
	level, said, _ := strings.Cut(string(b), "] ")
	at := zapcore.DebugLevel
	if strings.HasPrefix(level, "[ERR") && !routine(said) {
		at = zapcore.WarnLevel
	}
	// The message is the same for all, because the sampler counts by it.
	if e := l.log.Check(at, "gossip"); e != nil {
		e.Write(zap.String("said", strings.TrimSpace(strings.TrimPrefix(said, "memberlist: "))))
	}
	return len(b), nil
}

// routine reports whether an error only says that a node does not answer, which
// is reported when it is certain.
func routine(said string) bool {
	for _, part := range []string{"Failed fallback", "Push/Pull with", "Failed to send", "Failed to forward"} {
		if strings.Contains(said, part) {
			return true
		}
	}
	return false
}

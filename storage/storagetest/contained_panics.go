package storagetest

import (
	"bytes"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// FailOnPanics returns a logger that fails a test with each panic that was contained: requests
// and updates go on after one, so that an answer alone may not show it.
func FailOnPanics(tb testing.TB) *zap.Logger {
	tb.Helper()
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), panics{tb}, zapcore.ErrorLevel))
}

// panics takes lines of a log.
type panics struct{ tb testing.TB }

// Write implements zapcore.WriteSyncer.
func (p panics) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("panic")) {
		p.tb.Errorf("%s", line)
	}
	return len(line), nil
}

// Sync implements zapcore.WriteSyncer.
func (panics) Sync() error { return nil }

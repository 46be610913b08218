package node

import (
	"fmt"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"divan/cluster/config"
)

// newLogger returns the log that section [log] describes. The level follows
// later changes of the configuration.
func newLogger(h *config.Holder) (*zap.Logger, error) {
	l := h.Load().Log
	level := zap.NewAtomicLevelAt(levelOf(l.Level))
	h.Subscribe(func(_, now *config.Snapshot) { level.SetLevel(levelOf(now.Log.Level)) })
	target := "stderr"
	if l.Writer == "file" && l.File != "" {
		target = l.File
	}
	c := zap.Config{
		Level: level, Encoding: "console", OutputPaths: []string{target}, ErrorOutputPaths: []string{"stderr"},
		EncoderConfig: zap.NewProductionEncoderConfig(), DisableCaller: true, DisableStacktrace: true,
	}
	c.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	if l.Format == "json" {
		c.Encoding = "json"
	}
	log, err := c.Build()
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return log, nil
}

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

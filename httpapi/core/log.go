package core

import (
	"errors"
	"net/http"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"divan/storage/fault"
)

// finish writes the access-log line of a request and counts it.
func (c *Call) finish() {
	took := time.Since(c.Start)
	c.API.Stats.CountRequest(c.Request.Method, c.Response.Status, c.Start, took)
	if c.DocID != "" && c.Method == http.MethodGet && c.Response.Status < 300 && c.route != nil {
		c.API.Stats.DatabaseReads.Inc()
	}
	if ce := c.Log.Check(zap.InfoLevel, "request"); ce != nil {
		user := c.User.Name
		if c.User.Anonymous || user == "" {
			user = "-"
		}
		line := &c.scratch.line
		*line = [...]zap.Field{
			zap.String("request", c.RequestID), zap.String("peer", c.API.Deps.Auth.Peer(c.Request)), zap.String("user", user),
			zap.String("method", c.Request.Method), zap.String("path", logPath(c.Request)), zap.Int("status", c.Response.Status),
			zap.Int64("bytes", c.Response.bytes), zap.Duration("took", took),
		}
		ce.Write(line[:]...) // cores copy what they keep
		clear(line[:])
	}
}

// countFailure counts answers that were broken off, clients that have gone, and
// queries that took too long.
func (c *Call) countFailure(err error) {
	s := c.API.Stats
	switch {
	case c.gone() && c.Response.streaming != nil && c.Response.Started():
		s.Broken.Abandoned.Inc()
	case c.gone() || c.Response.Started():
		s.Broken.Aborted.Inc()
	}
	if c.route != nil && fault.Is(err, fault.Timeout) && !errors.Is(err, os.ErrDeadlineExceeded) { // that is a slow client
		s.CountTimeout(c.route.Name)
	}
}

// LogFailure writes what a client is not told: the cause of an internal error
// and the stack of a panic. Refusals are in the access log already, and so are
// clients that are too slow.
func (c *Call) LogFailure(f Failure, err error) {
	if f.Status < 500 || c.gone() || errors.Is(err, os.ErrDeadlineExceeded) && fault.Is(err, fault.Timeout) {
		return
	}
	if f.Status == http.StatusInsufficientStorage {
		return // that the disk is full is told once, by the storage
	}
	var p *panicError
	if errors.As(err, &p) {
		c.API.Stats.Panics.Inc()
		c.Log.Error("panic in a request", zap.String("request", c.RequestID), zap.String("ref", f.Ref),
			zap.String("method", c.Request.Method), zap.String("path", logPath(c.Request)),
			zap.Any("panic", p.value), zap.ByteString("stack", p.stack))
		return
	}
	log, level, message := c.Log, zap.ErrorLevel, "request failed"
	if f.Status == http.StatusServiceUnavailable {
		log, level, message = c.API.refusals, zap.WarnLevel, "request refused"
	}
	log.Log(level, message, zap.String("request", c.RequestID), zap.String("ref", f.Ref),
		zap.String("method", c.Request.Method), zap.String("path", logPath(c.Request)), zap.Error(err))
}

// fewOf returns a logger that leaves lines out when there are many of them: under an
// attack, or with a shard gone, each request is refused. The access log has them all.
func fewOf(l *zap.Logger) *zap.Logger {
	return l.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Minute, 10, 1000)
	}))
}

// logPath is the path of a request without the query string, which may hold secrets.
func logPath(r *http.Request) string { return r.URL.EscapedPath() }

package httpapi

import (
	"errors"
	"net/http"

	"go.uber.org/zap"
)

// finish writes the access-log line of a request and counts it.
func (c *call) finish() {
	took := c.elapsed()
	c.api.stats.request(c.r.Method, c.w.status, c.start, took)
	if c.docID != "" && c.method == http.MethodGet && c.w.status < 300 && c.route != nil {
		c.api.stats.databaseReads.Inc()
	}
	if ce := c.log.Check(zap.InfoLevel, "request"); ce != nil {
		user := c.user.Name
		if c.user.Anonymous || user == "" {
			user = "-"
		}
		ce.Write(
			zap.String("request", c.id), zap.String("peer", c.api.deps.Auth.Peer(c.r)), zap.String("user", user),
			zap.String("method", c.r.Method), zap.String("path", c.logPath()), zap.Int("status", c.w.status),
			zap.Int64("bytes", c.w.bytes), zap.Duration("took", took),
		)
	}
}

// logFailure writes what a client is not told: the cause of an internal error
// and the stack of a panic. Refusals are in the access log already.
func (c *call) logFailure(f failure, err error) {
	if f.status < 500 || c.gone() {
		return
	}
	var p *panicError
	if errors.As(err, &p) {
		c.api.stats.panics.Inc()
		c.log.Error("panic in a request", zap.String("request", c.id), zap.String("ref", f.ref),
			zap.String("method", c.r.Method), zap.String("path", c.logPath()),
			zap.Any("panic", p.value), zap.ByteString("stack", p.stack))
		return
	}
	c.log.Error("request failed", zap.String("request", c.id), zap.String("ref", f.ref),
		zap.String("method", c.r.Method), zap.String("path", c.logPath()), zap.Error(err))
}

// logPath is the path without the query string, which may hold secrets.
func (c *call) logPath() string { return c.r.URL.EscapedPath() }

package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"go.uber.org/zap"
)

// fail answers a request with an error, or ends a streamed answer with it.
func (c *call) fail(err error) {
	if errors.Is(err, errHeadDone) {
		if c.streaming != nil {
			c.streaming.release()
		}
		return
	}
	f := c.describe(err)
	c.logFailure(f, err)
	if c.streaming != nil {
		if sent := c.streaming.fail(f); sent {
			return
		}
	}
	if c.w.started() {
		return // the status is out: the answer just ends
	}
	c.resetHeaders()
	if m := (*methodError)(nil); errors.As(err, &m) {
		c.w.Header()["Allow"] = []string{m.allow}
	}
	status := f.status
	if status == http.StatusUnauthorized {
		status = c.challenge(f)
	}
	if err := c.sendJSON(status, f.appendJSON(nil)); err != nil {
		c.log.Debug("error answer not delivered", zap.String("request", c.id), zap.Error(err))
	}
}

// resetHeaders removes what a handler has set for an answer that does not come.
func (c *call) resetHeaders() {
	h := c.w.Header()
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding", "ETag", "Etag", "Cache-Control", "Location", "Accept-Ranges", "Content-Range"} {
		delete(h, name)
	}
}

// challenge adds what helps the client of a 401 to log in, and returns the
// status: a browser that takes no JSON is sent to the login page instead
// (api.md section 3).
func (c *call) challenge(f failure) int {
	h, page := c.w.Header(), c.cfg.ChttpdAuth.AuthenticationRedirect
	switch asked := c.r.Header.Get("X-CouchDB-WWW-Authenticate"); {
	case asked != "":
		h["WWW-Authenticate"] = []string{asked}
	case c.cfg.Chttpd.AuthenticationRealm != "":
		h["WWW-Authenticate"] = []string{c.cfg.Chttpd.AuthenticationRealm}
	case c.set.requireUser:
		h["WWW-Authenticate"] = []string{`Basic realm="server"`}
	case page != "" && !c.accepts("application/json") && c.accepts("text/html"):
		to := appendEscaped([]byte(c.baseURL()+page+"?return="), "/"+strings.Join(c.path, "/"))
		h["Location"] = []string{string(appendEscaped(append(to, "&reason="...), f.reason))}
		return http.StatusFound
	}
	return f.status
}

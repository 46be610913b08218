package core

import (
	"errors"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// fail answers a request with an error, or ends a streamed answer with it.
func (c *Call) fail(err error) {
	if errors.Is(err, errHeadDone) {
		if c.Response.streaming != nil {
			c.Response.streaming.release()
		}
		return
	}
	f := c.Describe(err)
	c.LogFailure(f, err)
	c.countFailure(err)
	if c.Response.streaming != nil {
		if sent := c.Response.streaming.fail(f); sent {
			return
		}
	}
	if c.Response.Started() {
		return // the status is out: the answer just ends
	}
	c.Response.resetHeaders()
	if m := (*MethodError)(nil); errors.As(err, &m) {
		c.Response.Header()["Allow"] = []string{m.Allow}
	}
	if fault.Is(err, fault.Busy) {
		c.Response.Header()["Retry-After"] = []string{"1"}
	}
	status := f.Status
	if status == http.StatusUnauthorized {
		status = c.Response.challenge(f)
	}
	if err := c.Response.SendJSON(status, f.AppendJSON(nil)); err != nil {
		c.Log.Debug("error answer not delivered", zap.String("request", c.RequestID), zap.Error(err))
	}
}

// resetHeaders removes what a handler has set for an answer that does not come.
func (w *Response) resetHeaders() {
	h := w.Header()
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding", "ETag", "Etag", "Cache-Control", "Location", "Accept-Ranges", "Content-Range"} {
		delete(h, name)
	}
}

// challenge adds what helps the client of a 401 to log in, and returns the
// status: a browser that takes no JSON is sent to the login page instead
// (api.md section 3).
func (w *Response) challenge(f Failure) int {
	h, page := w.Header(), w.config.ChttpdAuth.AuthenticationRedirect
	switch asked := w.request.Header.Get("X-CouchDB-WWW-Authenticate"); {
	case asked != "":
		h["WWW-Authenticate"] = []string{asked}
	case w.config.Chttpd.AuthenticationRealm != "":
		h["WWW-Authenticate"] = []string{w.config.Chttpd.AuthenticationRealm}
	case w.set.requireUser:
		h["WWW-Authenticate"] = []string{`Basic realm="server"`}
	case page != "" && !Accepts(w.request, "application/json") && Accepts(w.request, "text/html"):
		to := AppendEscaped([]byte(baseURL(w.request, w.config)+page+"?return="), "/"+strings.Join(w.target.Path, "/"))
		h["Location"] = []string{string(AppendEscaped(append(to, "&reason="...), f.Reason))}
		return http.StatusFound
	}
	return f.Status
}

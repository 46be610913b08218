package console

import (
	"net/http"
	"strings"

	"divan/cluster/access"
	"divan/httpapi/core"
	"divan/storage/fault"
)

// Routes lists the files of the console. It fails when those that are part of the program
// are not what test/console makes.
func Routes() ([]core.Route, error) {
	files, err := load()
	if err != nil {
		return nil, err
	}
	const allow = "GET,HEAD"
	get := func(path string, h core.Handler) core.Route {
		return core.Route{Table: core.ServerTable, Path: path, Access: access.LogIn, Allow: allow, Methods: core.Methods{Get: h}}
	}
	return []core.Route{
		get("/_utils", files.getRoot),
		get("/_utils/index.html", files.getIndex),
		get(formPath, getLoginForm),
		get("/_utils/{file}", files.get),
		get("/_utils/{rest:.+}", core.NotHere),
	}, nil
}

// getRoot answers GET /_utils/, and sends GET /_utils there.
func (f *files) getRoot(c *core.Call) error {
	path, _, _ := strings.Cut(c.Request.RequestURI, "?")
	if !strings.HasSuffix(path, "/") {
		c.Response.Header()["Location"] = []string{"_utils/"} // a proxy may have put a path in front
		return c.Response.SendEmpty(http.StatusMovedPermanently)
	}
	return f.getIndex(c)
}

// policy allows the page what comes from this server as files, and requests to it. Attachments are
// shown: images that scripts have loaded, and sound and film as they come.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// getIndex answers with the page that loads everything else.
func (f *files) getIndex(c *core.Call) error {
	page := &f.index
	if len(c.Config.Admins) == 0 {
		page = &f.indexWithoutAdmins
	}
	h := pageHeaders(c, policy)
	h["Cache-Control"] = []string{"no-cache"} // the next version has files of other names
	c.Response.SetETag(page.etag)
	if core.ETagMatches(c.Request, `"`+page.etag+`"`) {
		return c.Response.SendEmpty(http.StatusNotModified)
	}
	return send(c, page.body)
}

// get answers with a file. Names with a hash of the content stand for that content for ever.
func (f *files) get(c *core.Call) error {
	file, ok := f.byName[c.Path[1]]
	if !ok {
		return fault.New(fault.NotFound, "missing")
	}
	h := c.Response.Header()
	h["Content-Type"] = []string{file.contentType}
	h["Cache-Control"] = []string{"no-cache"}
	if strings.Contains(c.Path[1], "-") {
		h["Cache-Control"] = []string{"public, max-age=31536000, immutable"}
	}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["Vary"] = append(h["Vary"], "Accept-Encoding")
	etag, packed := file.etag, core.AcceptsGzip(c.Request)
	if packed {
		etag += "-gz"
	}
	c.Response.SetETag(etag)
	if core.ETagMatches(c.Request, `"`+etag+`"`) {
		return c.Response.SendEmpty(http.StatusNotModified)
	}
	if !packed {
		body, err := file.plain()
		if err != nil {
			return err
		}
		return send(c, body)
	}
	h["Content-Encoding"] = []string{"gzip"}
	return send(c, file.body)
}

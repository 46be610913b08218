package server

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the pages
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"divan/httpapi/core"
	"divan/storage/fault"
)

// The pages for people, until there is a console. They have no script, take
// nothing from elsewhere and are not shown in frames.
//
//go:embed pages/welcome.html
var welcomeText string

//go:embed pages/session.html
var sessionText string

//go:embed pages/page.css
var pageStyle string

var (
	welcomeTemplate = template.Must(template.New("welcome").Parse(welcomeText))
	sessionTemplate = template.Must(template.New("session").Parse(sessionText))
)

// page is what the pages tell.
type page struct {
	Style            template.CSS
	Version, Address string
	User             string
	NoAdmin          bool
	Reason, Action   string
}

const loginPage = "/_utils/session.html"

// utilsRoutes lists the pages.
func utilsRoutes() []core.Route {
	const allow = "GET,HEAD"
	return []core.Route{
		{Table: core.ServerTable, Path: "/_utils", Allow: allow, Methods: core.Methods{Get: getUtils}},
		{Table: core.ServerTable, Path: "/_utils/index.html", Allow: allow, Methods: core.Methods{Get: sendWelcome}},
		{Table: core.ServerTable, Path: loginPage, Allow: allow, Methods: core.Methods{Get: getLoginPage}},
		{Table: core.ServerTable, Path: "/_utils/{rest:.+}", Allow: allow, Methods: core.Methods{Get: noPage}},
	}
}

func noPage(*core.Call) error { return fault.New(fault.NotFound, "missing") }

// getUtils answers GET /_utils/, and sends GET /_utils there.
func getUtils(c *core.Call) error {
	path, _, _ := strings.Cut(c.Request.RequestURI, "?")
	if !strings.HasSuffix(path, "/") {
		c.Response.Header()["Location"] = []string{c.BaseURL() + "/_utils/"}
		return c.Response.SendEmpty(http.StatusMovedPermanently)
	}
	return sendWelcome(c)
}

func sendWelcome(c *core.Call) error {
	return sendPage(c, welcomeTemplate, page{
		Version: c.API.Deps.Version, Address: c.BaseURL(), User: c.User.Name, NoAdmin: len(c.Config.Admins) == 0,
	})
}

// getLoginPage answers with a form. Requests that need an account are sent here
// with "return", where they wanted to go, and "reason".
func getLoginPage(c *core.Call) error {
	back, _ := c.QueryValue("return")
	if !strings.HasPrefix(back, "/") {
		back = "/_utils/"
	}
	reason, _ := c.QueryValue("reason")
	again := loginPage + "?" + url.Values{"return": {back}, "reason": {"Name or password is incorrect."}}.Encode()
	action := "/_session?" + url.Values{"next": {back}, "fail": {again}}.Encode()
	return sendPage(c, sessionTemplate, page{User: c.User.Name, Reason: reason, Action: action})
}

// sendPage answers with a page.
func sendPage(c *core.Call, t *template.Template, p page) error {
	p.Style = template.CSS(pageStyle) //nolint:gosec // it is part of the program
	var text bytes.Buffer
	if err := t.Execute(&text, p); err != nil {
		return err
	}
	h := c.Response.Header()
	h["Content-Type"] = []string{"text/html; charset=utf-8"}
	h["Content-Length"] = []string{strconv.Itoa(text.Len())}
	h["Cache-Control"] = []string{"private, must-revalidate"}
	h["Content-Security-Policy"] = pagePolicy()
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["X-Frame-Options"] = []string{"DENY"}
	h["Referrer-Policy"] = []string{"no-referrer"}
	c.Response.WriteHeader(http.StatusOK)
	if c.Head {
		return nil
	}
	_, err := c.Response.Write(text.Bytes())
	return err
}

// pagePolicy allows the style above, and forms that are sent to this server.
func pagePolicy() []string {
	sum := sha256.Sum256([]byte(pageStyle))
	return []string{"default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"}
}

// wantsPage reports whether a browser asks: it names text/html, which programs
// that take everything do not, and no JSON.
func wantsPage(c *core.Call) bool {
	accept := strings.Join(c.Request.Header["Accept"], ",")
	return strings.Contains(accept, "text/html") && core.Accepts(c.Request, "text/html") && !strings.Contains(accept, "application/json")
}

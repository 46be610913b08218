package console

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the form
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"divan/httpapi/core"
)

// The form has no script, takes nothing from elsewhere and is not shown in frames.
//
//go:embed pages/session.html
var formText string

//go:embed pages/page.css
var formStyle string

var formTemplate = template.Must(template.New("session").Parse(formText))

// form is the data of the log-in form.
type form struct {
	Style          template.CSS
	User           string
	Reason, Action string
}

const formPath = "/_utils/session.html"

// getLoginForm answers with a form. Requests that need an account are sent here
// with "return", where they wanted to go, and "reason".
func getLoginForm(c *core.Call) error {
	back, _ := c.QueryValue("return")
	if !strings.HasPrefix(back, "/") {
		back = "/_utils/"
	}
	reason, _ := c.QueryValue("reason")
	again := formPath + "?" + url.Values{"return": {back}, "reason": {"Name or password is incorrect."}}.Encode()
	action := "/_session?" + url.Values{"next": {back}, "fail": {again}}.Encode()
	var text bytes.Buffer
	f := form{Style: template.CSS(formStyle), User: c.User.Name, Reason: reason, Action: action} //nolint:gosec // the style is part of the program
	if err := formTemplate.Execute(&text, f); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(formStyle))
	style := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	h := pageHeaders(c, "default-src 'none'; style-src "+style+"; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h["Cache-Control"] = []string{"private, must-revalidate"}
	return send(c, text.Bytes())
}

// pageHeaders sets the headers of a page, and what its content may do.
func pageHeaders(c *core.Call, policy string) http.Header {
	h := c.Response.Header()
	h["Content-Type"] = []string{"text/html; charset=utf-8"}
	h["Content-Security-Policy"] = []string{policy}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["X-Frame-Options"] = []string{"DENY"}
	h["Referrer-Policy"] = []string{"no-referrer"}
	return h
}

// send answers with a body whose other headers are set.
func send(c *core.Call, body []byte) error {
	c.Response.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.Response.WriteHeader(http.StatusOK)
	if c.Head {
		return nil
	}
	_, err := c.Response.Write(body)
	return err
}

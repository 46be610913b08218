package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"divan/httpapi/auth"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// maxLogin bounds the body of a login: a name, a password and a token.
const maxLogin = 64 << 10

// getSession answers who the client is, and how that is known.
func getSession(c *core.Call) error {
	if c.Auth.RefreshCookie != "" {
		setCookie(c, c.Auth.RefreshCookie)
	}
	if basic, _ := c.QueryValue("basic"); basic == "true" && c.User.Anonymous {
		return fault.New(fault.Unauthorized, "Please login.")
	}
	out := append(make([]byte, 0, 256), `{"ok":true,"userCtx":{"name":`...)
	if c.User.Anonymous {
		out = append(out, "null"...)
	} else {
		out = doc.AppendString(out, c.User.Name)
	}
	out = core.AppendStrings(append(out, `,"roles":`...), c.User.Roles)
	out = core.AppendStrings(append(out, `},"info":{"authentication_handlers":`...), c.API.Deps.Auth.Handlers())
	if c.Auth.Handler != "" {
		out = doc.AppendString(append(out, `,"authenticated":`...), c.Auth.Handler)
	}
	if db, ok := c.Config.Get("chttpd_auth", "authentication_db"); ok {
		out = doc.AppendString(append(out, `,"authentication_db":`...), db)
	}
	return c.Response.SendJSON(http.StatusOK, append(out, "}}"...))
}

// postSession logs in: {"ok":true,"name":…,"roles":[…]} and the cookie, or 401
// and the order to forget it. Both can send the client elsewhere (next, fail).
//
// The 401 is answered here because the login page makes its own dialog: unlike
// every other one it has no WWW-Authenticate (golden auth/14).
func postSession(c *core.Call) error {
	next, err := redirection(c, "next")
	if err != nil {
		return err
	}
	fail, err := redirection(c, "fail")
	if err != nil {
		return err
	}
	login, err := readLogin(c)
	if err != nil {
		return err
	}
	a := c.API.Deps.Auth
	login.Peer, login.Secure = a.Peer(c.Request), c.Scheme() == "https"
	session, err := a.Login(c.Request.Context(), login)
	switch {
	case fault.Is(err, fault.Unauthorized):
		setCookie(c, a.Logout(login.Secure))
		f := c.Describe(err)
		return sendOrRedirect(c, fail, f.Status, f.AppendJSON(nil))
	case err != nil:
		return err
	}
	setCookie(c, session.SetCookie)
	return sendOrRedirect(c, next, http.StatusOK, appendLogin(nil, session.User))
}

func appendLogin(dst []byte, u shard.User) []byte {
	dst = doc.AppendString(append(dst, `{"ok":true,"name":`...), u.Name)
	dst = core.AppendStrings(append(dst, `,"roles":`...), u.Roles)
	return append(dst, '}')
}

// deleteSession logs out.
func deleteSession(c *core.Call) error {
	next, err := redirection(c, "next")
	if err != nil {
		return err
	}
	setCookie(c, c.API.Deps.Auth.Logout(c.Scheme() == "https"))
	return sendOrRedirect(c, next, http.StatusOK, []byte(`{"ok":true}`))
}

func setCookie(c *core.Call, value string) { c.Response.Header()["Set-Cookie"] = []string{value} }

// redirection returns the address that a query parameter sends the client to,
// empty when it is missing. It is always one of this server.
func redirection(c *core.Call, param string) (string, error) {
	path, ok := c.QueryValue(param)
	if !ok {
		return "", nil
	}
	if !strings.HasPrefix(path, "/") {
		return "", fault.New(fault.BadRequest, "path must begin with a slash.")
	}
	return c.BaseURL() + path, nil
}

// sendOrRedirect answers with a body, as a redirection when there is an
// address to go to.
func sendOrRedirect(c *core.Call, address string, status int, body []byte) error {
	if address != "" {
		c.Response.Header()["Location"] = []string{address}
		status = http.StatusFound
	}
	return c.Response.SendJSON(status, body)
}

// readLogin reads the body: a form or a JSON object.
func readLogin(c *core.Call) (auth.Login, error) {
	kind := core.MediaType(c.Request.Header.Get("Content-Type"))
	if kind != "application/json" && kind != "application/x-www-form-urlencoded" {
		return auth.Login{}, fault.New(fault.BadContentType,
			"Content-Type must be 'application/x-www-form-urlencoded' or 'application/json'")
	}
	body, err := c.Body.ReadAll(maxLogin)
	if err != nil {
		return auth.Login{}, err
	}
	var form loginForm
	if kind == "application/json" {
		err = form.readJSON(body)
	} else {
		form.readForm(string(body))
	}
	if err != nil {
		return auth.Login{}, err
	}
	return form.login()
}

// loginForm holds the members of the body of a login.
type loginForm struct {
	name, username       string
	hasName, hasUsername bool
	password, token      string
}

// readJSON takes the members that are texts. A password of another type is
// none, and no password is right then.
func (f *loginForm) readJSON(body []byte) error {
	return doc.EachMember(body, func(member string, value []byte) error {
		text, ok := doc.Unquote(value)
		f.set(member, text, ok)
		return nil
	})
}

// readForm takes the fields of a form; of a name that is given several times
// the first one.
func (f *loginForm) readForm(body string) {
	for _, field := range slices.Backward(parseForm(body)) {
		f.set(field.Name, field.Value, true)
	}
}

// parseForm splits a form into its decoded fields, in order. It refuses
// nothing, as CouchDB's parser: a client that does not escape its password logs
// in with it, as long as nothing in it looks like an escape or a separator,
// which are "&" and ";".
func parseForm(body string) []core.Param {
	var fields []core.Param
	for body != "" {
		field := body
		if end := strings.IndexAny(body, "&;"); end >= 0 {
			field, body = body[:end], body[end+1:]
		} else {
			body = ""
		}
		name, value, _ := strings.Cut(field, "=")
		fields = append(fields, core.Param{Name: unescapeField(name), Value: unescapeField(value)})
	}
	return fields
}

// unescapeField decodes a name or a value of a form: "+" is a space, and a "%"
// that two hexadecimal digits do not follow stands for itself.
func unescapeField(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b, _ := strconv.ParseUint(s[i+1:i+3], 16, 8)
			out = append(out, byte(b))
			i += 2
		case s[i] == '+':
			out = append(out, ' ')
		default:
			out = append(out, s[i])
		}
	}
	return string(out)
}

func isHex(b byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", b) >= 0 }

func (f *loginForm) set(member, text string, ok bool) {
	switch member {
	case "name":
		f.name, f.hasName = text, ok
	case "username":
		f.username, f.hasUsername = text, ok
	case "password":
		f.password = text
	case "token":
		f.token = text
	}
}

func (f *loginForm) login() (auth.Login, error) {
	l := auth.Login{Name: f.name, Password: f.password, Token: f.token}
	switch {
	case !f.hasName && !f.hasUsername:
		return l, fault.New(fault.BadRequest, "request body must contain a username")
	case f.hasName && f.hasUsername && f.name != f.username:
		return l, fault.New(fault.BadRequest, "request body contains different usernames")
	case !f.hasName:
		l.Name = f.username
	}
	return l, nil
}

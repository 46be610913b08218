package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"divan/httpapi/auth"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// maxLogin bounds the body of a login: a name, a password and a token.
const maxLogin = 64 << 10

// getSession answers who the client is, and how that is known.
func getSession(c *call) error {
	if c.auth.RefreshCookie != "" {
		c.setCookie(c.auth.RefreshCookie)
	}
	if basic, _ := c.qs("basic"); basic == "true" && c.user.Anonymous {
		return fault.New(fault.Unauthorized, "Please login.")
	}
	out := append(make([]byte, 0, 256), `{"ok":true,"userCtx":{"name":`...)
	if c.user.Anonymous {
		out = append(out, "null"...)
	} else {
		out = doc.AppendString(out, c.user.Name)
	}
	out = appendStrings(append(out, `,"roles":`...), c.user.Roles)
	out = appendStrings(append(out, `},"info":{"authentication_handlers":`...), c.api.deps.Auth.Handlers())
	if c.auth.Handler != "" {
		out = doc.AppendString(append(out, `,"authenticated":`...), c.auth.Handler)
	}
	if db, ok := c.cfg.Get("chttpd_auth", "authentication_db"); ok {
		out = doc.AppendString(append(out, `,"authentication_db":`...), db)
	}
	return c.sendJSON(http.StatusOK, append(out, "}}"...))
}

// postSession logs in: {"ok":true,"name":…,"roles":[…]} and the cookie, or 401
// and the order to forget it. Both can send the client elsewhere (next, fail).
//
// The 401 is answered here because the login page makes its own dialog: unlike
// every other one it has no WWW-Authenticate (golden auth/14).
func postSession(c *call) error {
	next, err := c.redirection("next")
	if err != nil {
		return err
	}
	fail, err := c.redirection("fail")
	if err != nil {
		return err
	}
	login, err := c.readLogin()
	if err != nil {
		return err
	}
	a := c.api.deps.Auth
	login.Peer, login.Secure = a.Peer(c.r), c.scheme() == "https"
	session, err := a.Login(c.r.Context(), login)
	switch {
	case fault.Is(err, fault.Unauthorized):
		c.setCookie(a.Logout(login.Secure))
		f := c.describe(err)
		return c.sendOrRedirect(fail, f.status, f.appendJSON(nil))
	case err != nil:
		return err
	}
	c.setCookie(session.SetCookie)
	return c.sendOrRedirect(next, http.StatusOK, appendLogin(nil, session.User))
}

func appendLogin(dst []byte, u shard.User) []byte {
	dst = doc.AppendString(append(dst, `{"ok":true,"name":`...), u.Name)
	dst = appendStrings(append(dst, `,"roles":`...), u.Roles)
	return append(dst, '}')
}

// deleteSession logs out.
func deleteSession(c *call) error {
	next, err := c.redirection("next")
	if err != nil {
		return err
	}
	c.setCookie(c.api.deps.Auth.Logout(c.scheme() == "https"))
	return c.sendOrRedirect(next, http.StatusOK, []byte(`{"ok":true}`))
}

func (c *call) setCookie(value string) { c.w.Header()["Set-Cookie"] = []string{value} }

// redirection returns the address that a query parameter sends the client to,
// empty when it is missing. It is always one of this server.
func (c *call) redirection(param string) (string, error) {
	path, ok := c.qs(param)
	if !ok {
		return "", nil
	}
	if !strings.HasPrefix(path, "/") {
		return "", fault.New(fault.BadRequest, "path must begin with a slash.")
	}
	return c.baseURL() + path, nil
}

// sendOrRedirect answers with a body, as a redirection when there is an
// address to go to.
func (c *call) sendOrRedirect(address string, status int, body []byte) error {
	if address != "" {
		c.w.Header()["Location"] = []string{address}
		status = http.StatusFound
	}
	return c.sendJSON(status, body)
}

// readLogin reads the body: a form or a JSON object.
func (c *call) readLogin() (auth.Login, error) {
	kind := mediaType(c.r.Header.Get("Content-Type"))
	if kind != "application/json" && kind != "application/x-www-form-urlencoded" {
		return auth.Login{}, fault.New(fault.BadContentType,
			"Content-Type must be 'application/x-www-form-urlencoded' or 'application/json'")
	}
	body, err := c.readBody(maxLogin)
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

// loginForm is what the body of a login may hold.
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
		f.set(field.name, field.value, true)
	}
}

// parseForm splits a form into its decoded fields, in order. It refuses
// nothing, as CouchDB's parser: a client that does not escape its password logs
// in with it, as long as nothing in it looks like an escape or a separator,
// which are "&" and ";".
func parseForm(body string) []param {
	var fields []param
	for body != "" {
		field := body
		if end := strings.IndexAny(body, "&;"); end >= 0 {
			field, body = body[:end], body[end+1:]
		} else {
			body = ""
		}
		name, value, _ := strings.Cut(field, "=")
		fields = append(fields, param{name: unescapeField(name), value: unescapeField(value)})
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

package spec

import (
	"net/url"
	"strings"

	"divan/storage/doc"
	"divan/storage/fault"
)

// address reads a side: a URL, the name of a database, or an object with one
// of them.
func (p *parser) address(value []byte) (Address, error) {
	var a Address
	var basic []byte
	where, ok := doc.Unquote(value)
	switch {
	case doc.IsObject(value):
		if where, ok = doc.Unquote(doc.Lookup(value, "url")); !ok {
			return a, invalidURL("endpoint")
		}
		if err := a.headers(doc.Lookup(value, "headers")); err != nil {
			return a, err
		}
		basic = doc.Lookup(doc.Lookup(value, "auth"), "basic")
	case !ok:
		return a, invalidURL("endpoint")
	}
	if !strings.Contains(where, "://") {
		return a, p.name(&a, where)
	}
	if err := a.locate(where); err != nil || basic == nil {
		return a, err
	}
	var named, word bool
	a.Username, named = doc.Unquote(doc.Lookup(basic, "username"))
	a.Password, word = doc.Unquote(doc.Lookup(basic, "password"))
	if !named || !word {
		return a, fault.Newf(fault.BadRequest, "`auth.basic` must have a `username` and a `password`")
	}
	return a, nil
}

// name takes the bare name of a database of this node.
func (p *parser) name(a *Address, name string) error {
	switch {
	case !p.request:
		return bad("local_endpoints_not_supported")
	case name == "":
		return invalidURL("endpoint")
	}
	a.URL, a.Name = name, name
	return nil
}

func (a *Address) headers(value []byte) error {
	if value == nil || string(value) == "null" {
		return nil
	}
	if !doc.IsObject(value) {
		return mustBe("headers", "a JSON object")
	}
	return doc.EachMember(value, func(name string, v []byte) error {
		header, err := text(name, v)
		a.Headers = append(a.Headers, [2]string{name, header})
		return err
	})
}

// ParseURL parses the URL of a database or of a proxy. A password may have slashes that
// are not escaped: when a colon and no @ stands before the first slash, and an @ behind
// it, all up to the last @ is name and password. url.Parse would find a host with a port
// there, or a port that is no number. No name of a database has an @, so that only the
// directory of a proxy that has one, behind a host with a port, must be written with %40.
func ParseURL(where string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(where, "://")
	at := strings.LastIndexByte(rest, '@')
	first := strings.IndexByte(rest, '/')
	if !ok || first < 0 || at < first || !strings.Contains(rest[:first], ":") || strings.ContainsAny(rest[:first], "@[") {
		return url.Parse(where)
	}
	return url.Parse(scheme + "://" + strings.ReplaceAll(rest[:at], "/", "%2F") + rest[at:])
}

// locate takes the URL of a database apart.
func (a *Address) locate(where string) error {
	u, err := ParseURL(where)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		strings.Trim(u.Path, "/") == "" || u.RawQuery != "" {
		return invalidURL("endpoint")
	}
	if u.User != nil {
		a.Username = u.User.Username()
		a.Password, _ = u.User.Password()
	}
	a.URL = plain(u)
	return nil
}

// plain prints the URL of a database without credentials and with a slash at
// its end.
func plain(u *url.URL) string {
	path := strings.TrimRight(u.EscapedPath(), "/") + "/"
	return u.Scheme + "://" + u.Host + path
}

// proxy reads the URL of a proxy.
func proxy(name string, value []byte) (string, error) {
	where, err := text(name, value)
	if err != nil || where == "" {
		return "", err
	}
	u, err := ParseURL(where)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		return "", invalidURL("proxy")
	}
	return u.String(), nil
}

func invalidURL(what string) error {
	return &fault.Error{Kind: fault.BadRequest, Code: "invalid_replication", Reason: what + " has an invalid url"}
}

// MaskProxy returns the URL of a proxy with asterisks for its password.
func MaskProxy(where string) string {
	u, err := url.Parse(where)
	if err != nil || u.Host == "" {
		return Mask(where)
	}
	if _, ok := u.User.Password(); !ok {
		return where
	}
	name := url.User(u.User.Username()).String()
	u.User = nil
	scheme, rest, _ := strings.Cut(u.String(), "://")
	return scheme + "://" + name + ":*****@" + rest
}

// Mask returns the URL of a database without credentials and with a slash at its end, as any client
// may see it. What is no URL stays as it is.
func Mask(where string) string {
	u, err := ParseURL(where)
	if err != nil || u.Host == "" {
		// The credentials of what does not parse may stand anywhere before an @.
		return where[strings.LastIndexByte(where, '@')+1:]
	}
	return plain(u)
}

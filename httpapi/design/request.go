package design

import (
	"net/http"
	"slices"
	"strings"

	"divan/cluster/designdocs"
	"divan/httpapi/core"
	"divan/httpapi/db"
	"divan/storage/doc"
)

// Request returns the request object that functions are given (semantics.md section
// 5.3). id names the document that the request is about, nil when there is none.
func Request(c *core.Call, id *string) ([]byte, error) {
	info, err := c.DB.Info(c.Request.Context())
	if err != nil {
		return nil, err
	}
	dst := db.AppendInfo([]byte(`{"info":`), info)
	dst = append(dst, `,"id":null`...)
	if id != nil {
		dst = appendText(dst[:len(dst)-len("null")], *id)
	}
	dst = append(dst, `,"uuid":`...)
	dst = appendText(dst, c.NewID())
	if dst, err = appendMembers(append(dst, ','), c); err != nil {
		return nil, err
	}
	body, err := c.Body.ReadAll(0)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"form":`...)
	if core.MediaType(c.Request.Header.Get("Content-Type")) != "application/x-www-form-urlencoded" {
		body = nil
	}
	return append(appendForm(dst, string(body)), '}'), nil
}

// appendMembers appends the members that every request object has.
func appendMembers(dst []byte, c *core.Call) ([]byte, error) {
	method := c.Method
	if c.Head {
		method = http.MethodHead
	}
	dst = append(dst, `"method":`...)
	dst = appendText(dst, method)
	dst = append(dst, `,"requested_path":`...)
	dst = appendList(dst, requestedPath(c.RequestedPath()))
	dst = append(dst, `,"path":`...)
	dst = appendList(dst, c.Path)
	dst = append(dst, `,"raw_path":`...)
	dst = appendText(dst, c.Request.RequestURI)
	dst = append(dst, `,"query":`...)
	dst, err := appendQuery(dst, c.Query)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"headers":`...)
	dst = appendHeaders(dst, c)
	body, err := c.Body.ReadAll(0)
	if err != nil {
		return nil, err
	}
	if dst, err = appendBody(append(dst, `,"body":`...), c, body); err != nil {
		return nil, err
	}
	dst = append(dst, `,"peer":`...)
	dst = appendText(dst, c.API.Deps.Auth.Peer(c.Request))
	dst = append(dst, `,"cookie":`...)
	dst = appendCookies(dst, c)
	dst = append(dst, `,"userCtx":`...)
	dst = designdocs.AppendUser(dst, c.DB.Name(), c.User)
	dst = append(dst, `,"secObj":`...)
	if security := c.DB.Meta().Security; len(security) > 0 {
		return append(dst, security...), nil
	}
	return append(dst, "{}"...), nil
}

// appendBody appends the body as functions see it: a text; of a POST whose body is JSON
// for CouchDB itself (keys of a list, options of a feed) the object.
func appendBody(dst []byte, c *core.Call, body []byte) ([]byte, error) {
	if c.Method == http.MethodPost && len(body) > 0 && parsesBody(c) {
		return doc.Canonical(dst, body)
	}
	if !c.Body.Announced() {
		return appendText(dst, "undefined"), nil
	}
	return appendText(dst, string(body)), nil
}

// parsesBody reports whether the endpoint takes an object.
func parsesBody(c *core.Call) bool {
	return len(c.Path) > 1 && c.Path[1] == "_changes" || len(c.Rest) > 0 && c.Rest[0] == "_list"
}

// appendText appends a string; bytes that are not UTF-8 become U+FFFD.
func appendText(dst []byte, s string) []byte {
	return doc.AppendString(dst, strings.ToValidUTF8(s, "\uFFFD"))
}

func appendList(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, s)
	}
	return append(dst, ']')
}

// requestedPath splits what the client asked for at its slashes, the query with the
// last part.
func requestedPath(uri string) []string {
	parts := strings.Split(strings.TrimPrefix(uri, "/"), "/")
	for i, p := range parts {
		if decoded, err := core.Unescape(p, true); err == nil {
			parts[i] = decoded
		}
	}
	return parts
}

// appendQuery appends the query string as an object. The keys of views are JSON.
func appendQuery(dst []byte, query []core.Param) ([]byte, error) {
	dst = append(dst, '{')
	for i, p := range query {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, p.Name), ':')
		switch p.Name {
		case "key", "startkey", "endkey", "descending":
			var err error
			if dst, err = doc.Canonical(dst, []byte(p.Value)); err != nil {
				return nil, err
			}
		default:
			dst = appendText(dst, p.Value)
		}
	}
	return append(dst, '}'), nil
}

// appendForm appends the fields of a form as an object.
func appendForm(dst []byte, body string) []byte {
	dst = append(dst, '{')
	first := true
	for pair := range strings.SplitSeq(body, "&") {
		if pair == "" {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		name, value, _ := strings.Cut(pair, "=")
		dst = append(appendText(dst, field(name)), ':')
		dst = appendText(dst, field(value))
	}
	return append(dst, '}')
}

func field(s string) string {
	if decoded, err := core.Unescape(s, true); err == nil {
		return decoded
	}
	return s
}

// scrubbed reports whether functions do not get to see a header, because it says
// who the user is.
func scrubbed(c *core.Call, name string) bool {
	if !c.Config.Functions.ScrubRequest {
		return false
	}
	p := &c.Config.Proxy
	return slices.ContainsFunc([]string{"Authorization", "Cookie", p.UserNameHeader, p.RolesHeader, p.TokenHeader},
		func(secret string) bool { return strings.EqualFold(secret, name) })
}

func appendHeaders(dst []byte, c *core.Call) []byte {
	dst = append(append(dst, `{"Host":`...), appendText(nil, c.Request.Host)...)
	for name, values := range c.Request.Header {
		if name == "Host" || scrubbed(c, name) {
			continue
		}
		if name == "X-Couchdb-Vhost-Path" {
			name = strings.ToLower(name) // as couchapps look for them
		}
		dst = append(appendText(append(dst, ','), name), ':')
		dst = appendText(dst, strings.Join(values, ", "))
	}
	return append(dst, '}')
}

func appendCookies(dst []byte, c *core.Call) []byte {
	dst = append(dst, '{')
	if scrubbed(c, "Cookie") {
		return append(dst, '}')
	}
	for i, cookie := range c.Request.Cookies() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, cookie.Name), ':')
		dst = appendText(dst, cookie.Value)
	}
	return append(dst, '}')
}

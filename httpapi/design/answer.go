package design

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"divan/httpapi/core"
	"divan/shard/query"
	"divan/storage/doc"
	"divan/storage/fault"
)

// answer is the answer that a function asks for (api.md section 12).
type answer struct {
	code    int // 0: the function does not say
	headers []core.Param
	json    []byte // with it there is no body
	body    []byte
	kind    string // the media type of the body
}

// parseAnswer reads the response object of a function.
func parseAnswer(object []byte) (*answer, error) {
	a := &answer{kind: "application/json"}
	err := doc.EachMember(object, func(name string, value []byte) (err error) {
		ok := true
		switch name {
		case "code":
			a.code, err = strconv.Atoi(string(value))
			ok = err == nil && a.code >= 200 && a.code <= 999
		case "stop":
			ok = string(value) == "true"
		case "json":
			a.json = value
		case "body":
			var text string
			text, ok = doc.Unquote(value)
			a.body, a.kind = []byte(text), "text/html; charset=utf-8"
		case "base64":
			var text string
			text, ok = doc.Unquote(value)
			if a.body, err = base64.StdEncoding.DecodeString(text); err != nil {
				ok = false
			}
			a.kind = "application/binary"
		case "headers":
			a.headers, ok = parseHeaders(value)
		case "":
		default:
			ok = false
		}
		if ok {
			return nil
		}
		return invalidAnswer(name, value)
	})
	return a, err
}

// invalidAnswer refuses a member of a response object, with CouchDB's text.
func invalidAnswer(name string, value []byte) error {
	return &fault.Error{
		Kind: fault.BadFunction, Code: "external_response_error",
		Reason: "Invalid data from external server: {" + query.Term(doc.AppendString(nil, name), true) + "," + query.Term(value, true) + "}",
	}
}

// parseHeaders reads an object whose values are strings.
func parseHeaders(object []byte) (headers []core.Param, ok bool) {
	ok = doc.IsObject(object)
	if !ok {
		return nil, false
	}
	_ = doc.EachMember(object, func(name string, value []byte) error { // well-formed: a function made it
		text, isText := doc.Unquote(value)
		if !isText {
			text = string(value)
		}
		headers = append(headers, core.Param{Name: name, Value: text})
		return nil
	})
	return headers, true
}

// setHeaders gives the answer the headers that the function wants. Those in own are
// the server's.
func (a *answer) setHeaders(c *core.Call, own ...string) {
	h := c.Response.Header()
	if rule := &c.Config.CSP.ShowList; rule.Enable && a.json == nil {
		h["Content-Security-Policy"] = []string{rule.Value}
	}
	if a.json == nil {
		h["Content-Type"] = []string{a.kind}
	}
	for _, p := range a.headers {
		name := http.CanonicalHeaderKey(p.Name)
		if !valid(name, p.Value) || contains(own, name) {
			continue
		}
		if name == "Content-Security-Policy" { // clients keep to both: the sandbox stays
			h[name] = append(h[name], p.Value)
			continue
		}
		h[name] = []string{p.Value}
	}
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// valid reports whether a header can be sent: what a function makes of a request could
// otherwise become a header of its own, or a second answer. The framing of the answer
// is the server's.
func valid(name, value string) bool {
	switch name {
	case "", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade":
		return false
	}
	for i := range len(name) {
		if b := name[i]; b <= ' ' || b >= 0x7f || b == ':' {
			return false
		}
	}
	for i := range len(value) {
		if b := value[i]; b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}

// send answers, with a status unless the function says one.
func (a *answer) send(c *core.Call, status int, own ...string) error {
	if a.code != 0 {
		status = a.code
	}
	a.setHeaders(c, own...)
	if a.json != nil {
		return c.Response.SendJSON(status, a.json)
	}
	if err := c.Response.Hold(len(a.body)); err != nil {
		return err
	}
	h := c.Response.Header()
	h["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	c.Response.WriteHeader(status)
	_, err := c.Response.Write(a.body)
	return err
}

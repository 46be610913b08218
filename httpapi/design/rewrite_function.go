package design

import (
	"net/http"
	"strconv"

	"divan/cluster/designdocs"
	"divan/httpapi/core"
	"divan/shard/query"
	"divan/storage/doc"
)

// proposal is the request, or the answer, that a function proposes for a request.
type proposal struct {
	path, method, body string
	hasPath, hasBody   bool
	query, headers     []core.Param
	hasQuery           bool
	code               int // not 0: the answer
}

// rewriteByFunction has the function of a design document say what becomes of the
// request.
func rewriteByFunction(c *core.Call, d *designdocs.Document) error {
	c.ForAccount()
	req, err := appendMembers([]byte{'{'}, c)
	if err != nil {
		return err
	}
	made, err := d.Functions().Rewrite(c.Request.Context(), append(req, '}'))
	if err != nil {
		return err
	}
	if len(made) == 0 || string(made) == "null" {
		return invalidPath("rewrite_error")
	}
	p, err := parseProposal(made)
	switch {
	case err != nil:
		return err
	case p.code != 0:
		return p.answer(c)
	case !p.hasPath:
		return errRewrite("Rewrite result must produce a new path.")
	}
	return p.request(c)
}

// parseProposal checks what the function returned, with CouchDB's texts.
func parseProposal(made []byte) (*proposal, error) {
	p := &proposal{}
	if path, ok := doc.Unquote(made); ok {
		p.path, p.hasPath = path, true
		return p, nil
	}
	if !doc.IsObject(made) {
		return nil, errRewrite("bad rewrite")
	}
	err := doc.EachMember(made, p.set)
	return p, err
}

// set takes in one member; others than these do not matter.
func (p *proposal) set(name string, value []byte) (err error) {
	ok := true
	switch name {
	case "path":
		p.path, ok = doc.Unquote(value)
		p.hasPath = ok
	case "method":
		p.method, ok = doc.Unquote(value)
	case "body":
		p.body, ok = doc.Unquote(value)
		p.hasBody = ok
	case "code":
		p.code, err = strconv.Atoi(string(value))
		ok = err == nil && p.code >= 200 && p.code < 600
	case "query":
		p.query, ok, err = stringMembers(value)
		p.hasQuery = ok
	case "headers":
		p.headers, ok, err = stringMembers(value)
	}
	if !ok {
		return errRewrite("bad " + name)
	}
	return err
}

// stringMembers reads an object of strings.
func stringMembers(value []byte) (list []core.Param, ok bool, err error) {
	if !doc.IsObject(value) {
		return nil, false, nil
	}
	err = doc.EachMember(value, func(name string, v []byte) error {
		text, isText := doc.Unquote(v)
		if !isText {
			return errRewrite("object key/value must be strings " + query.Term(doc.AppendString(nil, name), true) + "=" + query.Term(v, true))
		}
		list = append(list, core.Param{Name: name, Value: text})
		return nil
	})
	return list, true, err
}

// answer answers without another request.
func (p *proposal) answer(c *core.Call) error {
	h := c.Response.Header()
	for _, header := range p.headers {
		if name := http.CanonicalHeaderKey(header.Name); valid(name, header.Value) {
			h[name] = []string{header.Value}
		}
	}
	h["Content-Length"] = []string{strconv.Itoa(len(p.body))}
	c.Response.WriteHeader(p.code)
	_, err := c.Response.Write([]byte(p.body))
	return err
}

// request has the other request answered.
func (p *proposal) request(c *core.Call) error {
	to := core.Rewritten{Method: methodOf(c), Header: c.Request.Header.Clone()}
	if p.method != "" {
		to.Method = p.method
	}
	for _, header := range p.headers {
		if name := http.CanonicalHeaderKey(header.Name); valid(name, header.Value) {
			to.Header[name] = []string{header.Value}
		}
	}
	if p.path != "" && p.path[0] == '/' {
		to.Target = normalized(p.path)
	} else {
		to.Target = prefixed(c, p.path)
	}
	to.Target = escapedPath(to.Target) + p.queryOf(c)
	body, err := c.Body.ReadAll(0) // the function has seen it
	if err != nil {
		return err
	}
	switch {
	case p.hasBody:
		to.Body = []byte(p.body)
	case c.Body.Announced():
		to.Body = append([]byte{}, body...)
	}
	return c.Rewrite(to)
}

// queryOf returns the query of the other request: that of this one, unless the function
// made another.
func (p *proposal) queryOf(c *core.Call) string {
	if !p.hasQuery {
		if raw := c.Request.URL.RawQuery; raw != "" {
			return "?" + raw
		}
		return ""
	}
	var out []byte
	for _, q := range p.query {
		out = append(out, "&?"[boolByte(len(out) == 0)])
		out = append(core.AppendEscaped(out, q.Name), '=')
		out = core.AppendEscaped(out, q.Value)
	}
	return string(out)
}

// escapedPath escapes the bytes that no request line may hold; what is escaped stays.
func escapedPath(path string) string {
	var out []byte
	for i := range len(path) {
		switch b := path[i]; {
		case b <= ' ' || b >= 0x7f || b == '?' || b == '#' || b == '"' || b == '<' || b == '>':
			out = core.AppendEscaped(out, path[i:i+1])
		default:
			out = append(out, b)
		}
	}
	return string(out)
}

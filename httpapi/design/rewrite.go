package design

import (
	"net/http"
	"strings"

	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// rewrite serves _design/{ddoc}/_rewrite/{path}: the request is answered as another
// one, which rules or a function make of it.
func rewrite(c *core.Call) error {
	if err := c.CheckRewrites(); err != nil {
		return err
	}
	d, err := c.API.Deps.Designs.Get(c.Request.Context(), c.DB, c.DocID)
	if err != nil {
		return err
	}
	switch rules := d.Member("rewrites"); {
	case doc.IsArray(rules):
		target, err := rewriteByRules(rules, c.Method, c.Rest[1:], c.Query, c.Config.Functions.SecureRewrites)
		if err != nil {
			return err
		}
		return c.Rewrite(core.Rewritten{
			Method: c.Request.Method, Target: prefixed(c, target.path) + target.query, Header: c.Request.Header.Clone(),
		})
	case len(rules) > 0 && rules[0] == '"':
		return rewriteByFunction(c, d)
	default:
		return invalidPath("rewrite_error")
	}
}

// prefixed returns a path, relative to the design document, from the root.
func prefixed(c *core.Call, path string) string {
	return normalized("/" + string(core.AppendEscaped(nil, c.DBName)) + "/_design/" +
		string(core.AppendEscaped(nil, strings.TrimPrefix(c.DocID, doc.DesignPrefix))) + "/" + path)
}

// normalized removes empty segments, "." and "..".
func normalized(path string) string {
	var out []string
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "" || part == ".":
		case part == ".." && len(out) > 0:
			out = out[:len(out)-1]
		case part == "..":
		default:
			out = append(out, part)
		}
	}
	return "/" + strings.Join(out, "/")
}

// errRewrite refuses what a function made of a request.
func errRewrite(reason string) error {
	return &fault.Error{Kind: fault.BadFunction, Code: "rewrite_error", Reason: reason}
}

// methodOf returns the method as the client sent it.
func methodOf(c *core.Call) string {
	if c.Head {
		return http.MethodHead
	}
	return c.Method
}

package design

import (
	"strconv"
	"strings"

	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// rule is one rule of rewrites.
type rule struct {
	from, to []string // segments; ":name" is bound, "*" at the end stands for the rest
	method   string   // "*": any
	query    []byte   // object; nil: none
	formats  []byte   // object: how bound values are read
}

// rewritten is the result of rewriting a path by rules.
type rewritten struct {
	path  string // escaped
	query string // with its "?", or empty
}

// binding is a name with its value, JSON.
type binding struct {
	name  string
	value []byte
}

// rewriteByRules finds the first rule that fits. One rule that is wrong spoils all,
// as in CouchDB.
func rewriteByRules(rules []byte, method string, path []string, query []core.Param, secure bool) (rewritten, error) {
	var list []rule
	err := doc.EachElement(rules, func(text []byte) error {
		r, err := parseRule(text, secure)
		list = append(list, r)
		return err
	})
	if err != nil {
		return rewritten{}, err
	}
	for i := range list {
		r := &list[i]
		if r.method != "*" && r.method != method {
			continue
		}
		if bound, rest, ok := bind(r.from, path); ok {
			return r.apply(bound, rest, query)
		}
	}
	return rewritten{}, fault.New(fault.NotFound, "missing")
}

func parseRule(text []byte, secure bool) (rule, error) {
	r := rule{method: "*", from: []string{"*"}, query: doc.Lookup(text, "query"), formats: doc.Lookup(text, "formats")}
	if method, ok := doc.Unquote(doc.Lookup(text, "method")); ok {
		r.method = method
	}
	var err error
	if from, ok := doc.Unquote(doc.Lookup(text, "from")); ok {
		if r.from, err = parsePath(from, secure); err != nil {
			return r, err
		}
	}
	to, ok := doc.Unquote(doc.Lookup(text, "to"))
	if !ok {
		return r, &fault.Error{Kind: fault.BadFunction, Code: "error", Reason: "invalid_rewrite_target"}
	}
	r.to, err = parsePath(to, secure)
	return r, err
}

// mostUp is how many ".." lead to the database, and no further.
const mostUp = 2

func parsePath(path string, secure bool) ([]string, error) {
	var out []string
	up := 0
	for part := range strings.SplitSeq(path, "/") {
		if part == "" {
			continue
		}
		if part == ".." {
			if up++; up > mostUp && secure {
				return nil, &fault.Error{Kind: fault.BadFunction, Code: "insecure_rewrite_rule", Reason: "too many ../.. segments"}
			}
		}
		out = append(out, part)
	}
	return out, nil
}

// bind fits a path to the pattern of a rule.
func bind(from, path []string) (bound []binding, rest []string, ok bool) {
	for i, part := range from {
		switch {
		case part == "*" && i == len(from)-1:
			if len(path) > i {
				bound = append(bound, binding{"*", doc.AppendString(nil, path[i])})
			}
			return bound, path[min(i, len(path)):], true
		case i >= len(path):
			return nil, nil, false
		case part[0] == ':':
			bound = append(bound, binding{part[1:], doc.AppendString(nil, path[i])})
		case part != path[i]:
			return nil, nil, false
		}
	}
	return bound, nil, len(path) == len(from)
}

// apply makes the new path and query. What the rule's query says stands, then what was
// bound, then the query of the request.
func (r *rule) apply(bound []binding, rest []string, query []core.Param) (rewritten, error) {
	for _, p := range query {
		value := appendText(nil, p.Value)
		if isKey(p.Name) {
			var err error
			if value, err = doc.Canonical(nil, []byte(p.Value)); err != nil {
				return rewritten{}, err
			}
		}
		bound = append(bound, binding{p.Name, value})
	}
	own := r.ownQuery(bound)
	final := make([]binding, 0, len(own)+len(bound))
	for _, b := range bound {
		if _, replaced := lookup(own, b.name); !replaced {
			final = append(final, b)
		}
	}
	final = append(final, own...)
	return rewritten{path: r.newPath(final, rest), query: queryString(final)}, nil
}

// ownQuery returns the query of the rule, with its variables filled in.
func (r *rule) ownQuery(bound []binding) []binding {
	var own []binding
	if !doc.IsObject(r.query) {
		return nil
	}
	_ = doc.EachMember(r.query, func(name string, value []byte) error { // well-formed: it is stored
		own = append(own, binding{name, r.fill(value, bound)})
		return nil
	})
	return own
}

// fill replaces a variable, or those in an array.
func (r *rule) fill(value []byte, bound []binding) []byte {
	if doc.IsArray(value) {
		out := []byte{'['}
		_ = doc.EachElement(value, func(element []byte) error { // well-formed: it is stored
			if len(out) > 1 {
				out = append(out, ',')
			}
			if element[0] == '"' {
				element = r.variable(element, bound)
			}
			out = append(out, element...)
			return nil
		})
		return append(out, ']')
	}
	if value[0] == '"' {
		return r.variable(value, bound)
	}
	return value
}

// variable returns what a text stands for.
func (r *rule) variable(text []byte, bound []binding) []byte {
	s, _ := doc.Unquote(text)
	name, isVariable := strings.CutPrefix(s, ":")
	if s == "*" {
		name, isVariable = "*", true
	}
	if !isVariable {
		return text
	}
	value, ok := lookup(bound, name)
	if !ok {
		value = text
	}
	format, _ := doc.Unquote(doc.Lookup(r.formats, name))
	plain, isText := doc.Unquote(value)
	switch {
	case !isText:
	case format == "int":
		if n, err := strconv.ParseInt(plain, 10, 64); err == nil {
			return strconv.AppendInt(nil, n, 10)
		}
	case format == "bool" && (strings.EqualFold(plain, "true") || strings.EqualFold(plain, "false")):
		return []byte(strings.ToLower(plain))
	}
	return value
}

// newPath fills the variables of the path.
func (r *rule) newPath(bound []binding, rest []string) string {
	var out []string
	add := func(part string) {
		if part == ".." || part == "." {
			out = append(out, part)
			return
		}
		out = append(out, string(core.AppendEscaped(nil, part)))
	}
	for _, part := range r.to {
		switch {
		case part == "*":
			for _, p := range rest {
				add(p)
			}
			return strings.Join(out, "/")
		case part[0] == ':':
			value, ok := lookup(bound, part[1:])
			if !ok {
				value = []byte(`"undefined"`)
			}
			add(plainText(value))
		default:
			add(part)
		}
	}
	return strings.Join(out, "/")
}

func lookup(list []binding, name string) (value []byte, ok bool) {
	for _, b := range list {
		if b.name == name {
			return b.value, true
		}
	}
	return nil, false
}

// queryString writes bindings as a query: keys of views as JSON.
func queryString(list []binding) string {
	var out []byte
	for _, b := range list {
		if b.name == "*" {
			continue
		}
		out = append(out, "&?"[boolByte(len(out) == 0)])
		out = append(core.AppendEscaped(out, b.name), '=')
		if isKey(b.name) {
			out = core.AppendEscaped(out, string(b.value))
		} else {
			out = core.AppendEscaped(out, plainText(b.value))
		}
	}
	return string(out)
}

func boolByte(b bool) int {
	if b {
		return 1
	}
	return 0
}

// plainText is a string without its quotes, any other value as JSON.
func plainText(value []byte) string {
	if s, ok := doc.Unquote(value); ok {
		return s
	}
	return string(value)
}

// isKey reports whether a parameter of views is JSON.
func isKey(name string) bool {
	switch name {
	case "key", "startkey", "start_key", "endkey", "end_key", "keys":
		return true
	}
	return false
}

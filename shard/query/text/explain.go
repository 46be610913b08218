package text

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"divan/shard/query"
	"divan/storage/doc"
	"divan/storage/fault"
)

// maxShown bounds the text of a query, in bytes. A longer one is not shown.
const maxShown = 1 << 20

// Shown is a selector as a query in the language of _search, as CouchDB writes it.
type Shown struct {
	Text    string   // empty: nothing is left of the selector
	Fields  []string // encoded paths with their types that the index must have, sorted
	Default bool     // the index must have the field $default
	KeyMap  bool     // $keyMapMatch is in it, which is no query: the text is without it
}

// Explain returns the query of a selector. The error is a *fault.Error: a $text that is no
// string.
func Explain(sel *query.Selector) (*Shown, error) {
	root, ok := sel.Root()
	if !ok {
		return &Shown{}, nil
	}
	w := &writer{left: maxShown, fields: map[string]struct{}{}}
	if w.out.Text = w.part(root, ""); w.left < 0 {
		w.out.Text = "(too long to be shown)"
	}
	w.out.Fields = slices.Sorted(maps.Keys(w.fields))
	return &w.out, w.err
}

func refusal(code, reason string) error {
	return &fault.Error{Kind: fault.InvalidSelector, Code: code, Reason: reason}
}

// writer writes a query. Without a path there is no text.
type writer struct {
	out    Shown
	fields map[string]struct{} // that are required
	muted  int                 // fields are not required: one that stands beside them is
	left   int                 // bytes that may still be written; below 0 only fields are looked for
	err    error
}

// take counts the bytes of a text.
func (w *writer) take(text string) string {
	if w.left -= len(text); w.left < 0 {
		return ""
	}
	return text
}

// join combines what is not empty.
func (w *writer) join(operator string, list []string) string {
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
	if len(list) == 0 || w.left < 0 {
		return ""
	}
	return "(" + strings.Join(list, operator) + ")"
}

func (w *writer) part(p query.Part, path string) string {
	switch op := p.Operator(); op {
	case "":
		return w.field(p, path)
	case "$and", "$nor":
		return w.join(" AND ", w.parts(p, path))
	case "$or":
		return w.join(" OR ", w.parts(p, path))
	case "$not":
		return w.not(path, func() string { return w.part(p.Part(0), path) })
	case "$elemMatch", "$allMatch":
		return w.part(p.Part(0), inArray(path))
	case "$keyMapMatch":
		w.out.KeyMap = true
		return ""
	case "$default":
		return w.text(p)
	case "$in":
		return w.in(values(p), path)
	case "$nin":
		return w.not(path, func() string { return w.in(values(p), path) })
	case "$all":
		return w.all(values(p), path)
	case "$ne":
		return w.not(path, func() string { return w.equal(p.Argument(), path) })
	case "$eq":
		return w.equal(p.Argument(), path)
	default:
		return w.operator(op, p.Argument(), path)
	}
}

func (w *writer) parts(p query.Part, path string) (out []string) {
	for i := range p.Parts() {
		out = append(out, w.part(p.Part(i), path))
	}
	return out
}

// field writes a condition at a path. A number in that is a key, or a place in an array.
func (w *writer) field(p query.Part, path string) string {
	keys, err := p.Path()
	if err != nil {
		return ""
	}
	array, number := path, false
	for _, key := range keys {
		path = inside(path, key)
		if isNumber(key) {
			key, number = query.ArrayKey, true
		}
		array = inside(array, key)
	}
	if !number {
		return w.part(p.Part(0), path)
	}
	first := w.part(p.Part(0), path)
	return w.join(" OR ", []string{first, w.aside(func() string { return w.part(p.Part(0), array) })})
}

func inside(path, key string) string { return place{name: path}.part(key).name }
func inArray(path string) string     { return inside(path, query.ArrayKey) }

// aside writes what does not require its fields.
func (w *writer) aside(write func() string) string {
	if w.left < 0 {
		return ""
	}
	w.muted++
	defer func() { w.muted-- }()
	return write()
}

// not writes a negation, which requires that there is a value.
func (w *writer) not(path string, write func() string) string {
	if of := write(); of != "" {
		return w.take("(" + w.exists(path) + " AND NOT (" + of + "))")
	}
	return w.exists(path)
}

func (w *writer) exists(path string) string {
	if path == "" {
		return ""
	}
	return w.take("(($fieldnames:" + path + "_3a*) OR ($fieldnames:" + path + ".*))")
}

// value writes a condition on a field with values.
func (w *writer) value(name, value string) string {
	if w.muted == 0 {
		w.fields[name] = struct{}{}
	}
	return w.take("(" + name + ":" + value + ")")
}

func (w *writer) text(p query.Part) string {
	text, ok := doc.Unquote(doc.Lookup(p.Argument(), "$text"))
	if !ok && w.err == nil {
		w.err = refusal("invalid_operator", "Invalid text operator: $text")
	}
	w.out.Default = true
	return w.take("($default:" + quoted(text) + ")")
}

func (w *writer) equal(v []byte, path string) string {
	switch v[0] {
	case '{':
		return w.exists(path)
	case '[':
		var list []string
		n := 0
		_ = doc.EachElement(v, func(element []byte) error { // canonical
			n++
			list = append(list, w.equal(element, inArray(path)))
			return nil
		})
		return w.join(" AND ", append([]string{w.length(path, strconv.Itoa(n))}, list...))
	case 'n':
		return w.take("(" + path + query.TextNull + ":true)")
	default:
		return w.value(path+typeOf(v), scalar(v))
	}
}

func (w *writer) length(path, n string) string {
	return w.take("(" + inArray(path) + query.TextLength + ":" + n + ")")
}

// scalar writes a value that is looked for.
func scalar(v []byte) string {
	if text, ok := doc.Unquote(v); ok {
		return quoted(text)
	}
	return strings.Replace(string(v), "-", `\-`, 1) // a minus at the beginning would negate
}

func (w *writer) in(list [][]byte, path string) string {
	var out []string
	for _, v := range list {
		first := w.equal(v, path)
		out = append(out, w.join(" OR ", []string{first, w.aside(func() string { return w.equal(v, inArray(path)) })}))
	}
	return w.join(" OR ", out)
}

func (w *writer) all(list [][]byte, path string) string {
	var out []string
	for _, v := range list {
		out = append(out, w.equal(v, inArray(path)))
	}
	q := w.join(" AND ", out)
	if len(list) == 1 && list[0][0] == '[' {
		q = w.join(" OR ", []string{w.aside(func() string { return w.equal(list[0], path) }), q})
	}
	return q
}

func (w *writer) operator(op string, arg []byte, path string) string {
	switch op {
	case "$lt", "$lte", "$gt", "$gte":
		return w.compare(op, arg, path)
	case "$exists":
		if string(arg) == "false" {
			return w.take("($fieldnames:/.*/  AND NOT (" + w.exists(path) + "))")
		}
		return w.exists(path)
	case "$size":
		return w.length(path, string(arg))
	case "$beginsWith":
		text, _ := doc.Unquote(arg) // canonical
		return w.value(path+query.TextString, escaped(text)+"*")
	case "$regex":
		return w.take("($fieldnames:" + path + query.TextString + ")")
	case "$mod":
		return w.take("($fieldnames:" + path + query.TextNumber + ")")
	default:
		return w.exists(path)
	}
}

func (w *writer) compare(op string, v []byte, path string) string {
	bound, open := string(v), "*"
	switch c := v[0]; {
	case c == '"':
		text, _ := doc.Unquote(v) // canonical
		bound = quoted(text)
		if op == "$lt" || op == "$lte" {
			open = `""`
		}
	case c == 't' || c == 'f':
		if op == "$lt" || op == "$lte" {
			open = `""`
		}
	case c != '-' && (c < '0' || c > '9'):
		return w.exists(path)
	}
	name := path + typeOf(v)
	switch op {
	case "$lt":
		return w.value(name, "["+open+" TO "+bound+"}")
	case "$lte":
		return w.value(name, "["+open+" TO "+bound+"]")
	case "$gt":
		return w.value(name, "{"+bound+" TO "+open+"]")
	default:
		return w.value(name, "["+bound+" TO "+open+"]")
	}
}

func quoted(text string) string { return `"` + escaped(text) + `"` }

// escaped writes a text so that every character means itself, blanks too.
func escaped(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(` +-&|!(){}[]^"~*?:\/`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

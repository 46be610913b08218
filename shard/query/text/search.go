package text

import (
	"strconv"

	"divan/shard/query"
	"divan/shard/search/syntax"
	"divan/storage/doc"
)

// Limits of the query of a selector. Beyond them more is found.
const (
	maxBytes  = 90_000 // of its text: the parser of queries takes 100,000
	maxValues = 10_000 // of an $in or the like
	maxTerm   = 32_000 // of a string in bytes: longer ones are no terms
)

// Index holds the properties of an index that Search needs.
type Index struct {
	Exact  bool                // each string is one term, as it is; otherwise it is analyzed
	Fields map[string]struct{} // encoded paths with their types; nil: everything is indexed
}

// Search returns a query that finds every document of the index which the selector matches;
// nil: there are none.
func Search(sel *query.Selector, x Index) syntax.Query {
	root, ok := sel.Root()
	switch {
	case !ok:
		return syntax.All{}
	case sel.Nothing():
		return nil
	}
	t := &translator{Index: x, left: maxBytes}
	return t.part(root, place{})
}

// translator is a translation under way.
type translator struct {
	Index
	codePoints bool // strings compare as terms do: beside $text
	left       int  // bytes that the query may still take
}

// part returns what finds all documents for which a part holds at a place.
func (t *translator) part(p query.Part, at place) syntax.Query {
	if t.left < 0 {
		return syntax.All{}
	}
	switch op := p.Operator(); op {
	case "":
		return t.field(p, at)
	case "$and":
		return and(t.parts(p, at)...)
	case "$or":
		if p.Parts() == 0 {
			return syntax.All{} // as when it is matched
		}
		was := t.codePoints
		t.codePoints = was || p.Text()
		out := or(t.parts(p, at)...)
		t.codePoints = was
		return out
	case "$elemMatch", "$allMatch":
		return t.part(p.Part(0), at.element())
	case "$default":
		q := syntax.Phrase{Field: defaultField, Text: textOf(p)} // what else it found would pass
		t.take(q)
		return q
	case "$eq":
		return t.equal(p.Argument(), at)
	case "$ne":
		return t.notEqual([][]byte{p.Argument()}, at)
	case "$in":
		return t.in(values(p), at)
	case "$nin":
		return t.notEqual(values(p), at)
	case "$all":
		return t.all(values(p), at)
	case "$lt", "$lte", "$gt", "$gte":
		return t.compare(op, p.Argument(), at)
	default:
		return t.other(op, p.Argument(), at)
	}
}

func (t *translator) parts(p query.Part, at place) (out []syntax.Query) {
	for i := range p.Parts() {
		out = append(out, t.part(p.Part(i), at))
	}
	return out
}

// field returns what finds documents in which a condition holds at a path.
func (t *translator) field(p query.Part, at place) syntax.Query {
	path, err := p.Path()
	if err != nil {
		return syntax.All{}
	}
	kid := p.Part(0)
	if len(path) > 0 && kid.Operator() == "$exists" && string(kid.Argument()) == "false" {
		return t.lacking(at, path)
	}
	list := places(at, path)
	if list == nil {
		return syntax.All{}
	}
	var out []syntax.Query
	for _, one := range list {
		out = append(out, t.part(kid, one))
	}
	return or(out...)
}

// lacking returns what finds documents without a path.
func (t *translator) lacking(at place, path []string) syntax.Query {
	if at.many { // another element may have it
		return t.exists(at)
	}
	list := places(at, path)
	if list == nil || !t.Exact {
		return syntax.All{}
	}
	one := list[0] // the others lead into arrays, where the condition does not hold anyway
	there := or(
		t.names(one, query.TextString, query.TextNumber, query.TextBoolean, query.TextNull, textObject),
		t.prefix(namesField, one.name+"."),
	)
	if isAll(there) { // no space is left
		return there
	}
	return without(syntax.All{}, there)
}

// other returns what finds documents for which another operator holds at a place.
func (t *translator) other(op string, arg []byte, at place) syntax.Query {
	switch op {
	case "$size":
		return t.number(at.element().name+query.TextLength, arg)
	case "$mod":
		return t.names(at, query.TextNumber)
	case "$regex":
		return t.names(at, query.TextString)
	case "$beginsWith":
		return t.beginsWith(arg, at)
	case "$type":
		return t.typed(arg, at)
	default: // $exists, $keyMapMatch, and what is negated: the value has to be there
		return t.exists(at)
	}
}

func (t *translator) typed(arg []byte, at place) syntax.Query {
	switch string(arg) {
	case `"string"`:
		return t.names(at, query.TextString)
	case `"number"`:
		return t.names(at, query.TextNumber)
	case `"boolean"`:
		return t.names(at, query.TextBoolean)
	case `"null"`:
		return t.names(at, query.TextNull)
	case `"array"`:
		return t.names(at.element(), query.TextLength)
	case `"object"`:
		return t.exists(at)
	default:
		return nil
	}
}

func (t *translator) beginsWith(arg []byte, at place) syntax.Query {
	text, _ := doc.Unquote(arg) // canonical
	if name := at.name + query.TextString; t.whole(name, text) && text[0] != '*' {
		return t.prefix(name, text)
	}
	return t.names(at, query.TextString)
}

// whole reports whether strings like the text are terms of the field, as they are.
func (t *translator) whole(name, text string) bool {
	return t.Exact && t.indexed(name) && text != "" && len(text) <= maxTerm
}

func (t *translator) indexed(name string) bool {
	_, ok := t.Fields[name]
	return ok || t.Fields == nil
}

// exists returns what finds documents with a value at a place.
func (t *translator) exists(at place) syntax.Query {
	if !t.Exact || at.name == "" {
		return syntax.All{}
	}
	return or(t.prefix(namesField, at.name+"_3a"), t.prefix(namesField, at.name+"."))
}

// names returns what finds documents with a value of one of the types at a place.
func (t *translator) names(at place, types ...string) syntax.Query {
	if !t.Exact {
		return syntax.All{}
	}
	var out []syntax.Query
	for _, one := range types {
		out = append(out, t.take(syntax.Phrase{Field: namesField, Text: at.name + one}))
	}
	return or(out...)
}

func (t *translator) prefix(field, text string) syntax.Query {
	return t.take(syntax.Prefix{Field: field, Text: text})
}

func (t *translator) phrase(field, text string) syntax.Query {
	return t.take(syntax.Phrase{Field: field, Text: text})
}

// number returns what finds a number in a field.
func (t *translator) number(field string, arg []byte) syntax.Query {
	v, err := strconv.ParseFloat(string(arg), 64)
	if err != nil {
		return syntax.All{} // beyond all numbers
	}
	return t.take(syntax.Number{Field: field, Value: v})
}

// take counts the text of a query. Without space for it everything is found.
func (t *translator) take(q syntax.Query) syntax.Query {
	const around = 12 // brackets, signs and blanks
	if t.left -= around + len(q.String()); t.left < 0 {
		return syntax.All{}
	}
	return q
}

// values returns the elements of an argument.
func values(p query.Part) (out [][]byte) {
	_ = p.EachValue(func(v []byte) error {
		out = append(out, v)
		return nil
	})
	return out
}

// textOf returns what $text looks for.
func textOf(p query.Part) string {
	text, _ := doc.Unquote(doc.Lookup(p.Argument(), "$text"))
	return text
}

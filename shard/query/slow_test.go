package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"divan/storage/collate"
	"divan/storage/doc"
)

// The slow evaluator decodes everything and follows the rules as they are told
// (semantics.md section 14), without a normal form: it carries the path and
// whether it stands below an odd number of negations.

// object is a decoded object; a name may occur twice until single is applied.
type object []member

type member struct {
	name  string
	value any
}

// decode turns canonical text into nil, bool, json.Number, string, []any and object.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return decodeNext(t, d)
}

func decodeNext(t *testing.T, d *json.Decoder) any {
	t.Helper()
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, decodeNext(t, d))
		}
		_, _ = d.Token()
		return list
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, _ := d.Token()
			o = append(o, member{name.(string), decodeNext(t, d)})
		}
		_, _ = d.Token()
		return o
	}
	return token
}

// encode is the inverse of decode.
func encode(dst []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case json.Number:
		return append(dst, v...)
	case string:
		return doc.AppendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = encode(dst, e)
		}
		return append(dst, ']')
	case object:
		dst = append(dst, '{')
		for i, m := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = encode(append(doc.AppendString(dst, m.name), ':'), m.value)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// single returns a value with the last of members of one name, at the place of
// the first.
func single(v any) any {
	switch v := v.(type) {
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, single(e))
		}
		return out
	case object:
		out, at := object{}, map[string]int{}
		for _, m := range v {
			if i, there := at[m.name]; there {
				out[i].value = single(m.value)
				continue
			}
			at[m.name] = len(out)
			out = append(out, member{m.name, single(m.value)})
		}
		return out
	}
	return v
}

// scope is what a selector is about.
type scope struct {
	value any  // the document, or an element
	raw   bool // strings compare byte by byte
	inner bool // below $elemMatch and its like
}

// holds evaluates a selector whose names stand below path.
func (s scope) holds(sel any, path string, negated bool) bool {
	o, ok := sel.(object)
	if !ok || len(o) == 0 {
		return s.terminal("$eq", sel, path, negated)
	}
	if len(o) > 1 {
		var kids []any
		for _, m := range o {
			kids = append(kids, object{m})
		}
		return s.list(kids, path, negated, !negated)
	}
	name, arg := o[0].name, o[0].value
	switch name {
	case "$and":
		return s.list(arg.([]any), path, negated, !negated)
	case "$or":
		return s.list(arg.([]any), path, negated, negated)
	case "$nor":
		if s.inner {
			return len(arg.([]any)) == 0 || !s.list(arg.([]any), path, false, false)
		}
		return s.list(arg.([]any), path, !negated, !negated)
	case "$not":
		if s.inner {
			return !s.holds(arg, path, false)
		}
		return s.holds(arg, path, !negated)
	}
	if strings.HasPrefix(name, "$") {
		return s.terminal(name, arg, path, negated)
	}
	if path != "" {
		name = path + "." + name
	}
	return s.holds(arg, name, negated)
}

// list reports whether all, or any, of the selectors hold; none is enough.
func (s scope) list(kids []any, path string, negated, all bool) bool {
	for _, kid := range kids {
		if s.holds(kid, path, negated) != all {
			return !all
		}
	}
	return all || len(kids) == 0
}

// terminal evaluates an operator about the value at path.
func (s scope) terminal(name string, arg any, path string, negated bool) bool {
	v, state := s.value, present
	if path != "" {
		v, state = walk(v, path)
	}
	switch state {
	case missing:
		want, ok := arg.(bool)
		return name == "$exists" && ok && want == negated
	case barred:
		return false
	case present:
	}
	at := scope{value: v, raw: s.raw || path == "_id", inner: true}
	return at.operator(name, arg) != negated
}

// walk follows a path; a backslash keeps the dot behind it.
func walk(v any, path string) (any, found) {
	const dot = "\x00"
	for _, name := range strings.Split(strings.ReplaceAll(path, `\.`, dot), ".") {
		name = strings.ReplaceAll(strings.ReplaceAll(name, dot, "."), `\`, "")
		switch parent := v.(type) {
		case object:
			state := missing
			for _, m := range parent {
				if m.name == name {
					v, state = m.value, present
					break
				}
			}
			if state == missing {
				return nil, missing
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(parent) {
				return nil, barred
			}
			v = parent[i]
		default:
			return nil, barred
		}
	}
	return v, present
}

func (s scope) operator(name string, arg any) bool {
	switch name {
	case "$eq":
		return s.compare(arg) == 0
	case "$ne":
		return s.compare(arg) != 0
	case "$lt":
		return s.compare(arg) < 0
	case "$lte":
		return s.compare(arg) <= 0
	case "$gt":
		return s.compare(arg) > 0
	case "$gte":
		return s.compare(arg) >= 0
	case "$in":
		return s.in(arg.([]any))
	case "$nin":
		return !s.in(arg.([]any))
	case "$all":
		return s.all(arg.([]any))
	case "$exists":
		return arg.(bool)
	case "$type":
		return arg == s.typeName()
	case "$text", "$default":
		return true
	case "$elemMatch", "$allMatch":
		list, _ := s.value.([]any)
		matched := 0
		for _, e := range list {
			if (scope{e, s.raw, true}).holds(arg, "", false) {
				matched++
			}
		}
		return matched > 0 && (name == "$elemMatch" || matched == len(list))
	case "$keyMapMatch":
		o, _ := s.value.(object)
		for _, m := range o {
			if (scope{m.name, s.raw, true}).holds(arg, "", false) {
				return true
			}
		}
		return false
	}
	return s.other(name, arg)
}

func (s scope) other(name string, arg any) bool {
	switch name {
	case "$size":
		list, ok := s.value.([]any)
		return ok && string(arg.(json.Number)) == strconv.Itoa(len(list))
	case "$mod":
		n, _ := s.value.(json.Number)
		i, ok := new(big.Int).SetString(string(n), 10)
		d, _ := new(big.Int).SetString(string(arg.([]any)[0].(json.Number)), 10)
		r, _ := new(big.Int).SetString(string(arg.([]any)[1].(json.Number)), 10)
		return ok && i.Rem(i, d).Cmp(r) == 0
	case "$regex":
		text, ok := s.value.(string)
		p, _ := compile(arg.(string))
		return ok && p.matches(encode(nil, text))
	case "$beginsWith":
		text, ok := s.value.(string)
		return ok && strings.HasPrefix(text, arg.(string))
	}
	panic("unknown operator " + name)
}

// compare orders the value against arg, always by collation keys but for ids.
func (s scope) compare(arg any) int {
	text, ok := s.value.(string)
	other, okOther := arg.(string)
	if s.raw && (ok || okOther) {
		if ok != okOther {
			return cmp.Compare(boolInt(ok), boolInt(okOther))
		}
		return strings.Compare(text, other)
	}
	if x, ok := s.value.(json.Number); ok {
		if y, ok := arg.(json.Number); ok {
			return exactly(x).Cmp(exactly(y))
		}
	}
	a, err := collate.AppendKey(nil, encode(nil, s.value))
	if err != nil {
		panic(err)
	}
	b, err := collate.AppendKey(nil, encode(nil, arg))
	if err != nil {
		panic(err)
	}
	return bytes.Compare(a, b)
}

func (s scope) in(args []any) bool {
	values, ok := s.value.([]any)
	if !ok {
		values = []any{s.value}
	}
	for _, v := range values {
		for _, arg := range args {
			if (scope{value: v, raw: s.raw}).compare(arg) == 0 {
				return true
			}
		}
	}
	return false
}

func (s scope) all(args []any) bool {
	values, ok := s.value.([]any)
	if !ok || len(args) == 0 {
		return false
	}
	missed := false
	for _, arg := range args {
		there := false
		for _, v := range values {
			there = there || bytes.Equal(encode(nil, v), encode(nil, arg))
		}
		missed = missed || !there
	}
	_, isList := args[0].([]any)
	return !missed || len(args) == 1 && isList && same(args[0], s.value)
}

// exactly is the value of a number, an integer of any size included.
func exactly(n json.Number) *big.Float {
	if i, ok := new(big.Int).SetString(string(n), 10); ok {
		return new(big.Float).SetPrec(256).SetInt(i)
	}
	f, _ := strconv.ParseFloat(string(n), 64)
	return big.NewFloat(f)
}

// same is equality where 1 is 1.0.
func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && exactly(a).Cmp(exactly(b)) == 0
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case object:
		b, ok := b.(object)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i].name != b[i].name || !same(a[i].value, b[i].value) {
				return false
			}
		}
		return true
	}
	return bytes.Equal(encode(nil, a), encode(nil, b))
}

func (s scope) typeName() string {
	switch s.value.(type) {
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case object:
		return "object"
	}
	return "null"
}

// matchSlowly is Match as the slow evaluator sees it.
func matchSlowly(t *testing.T, selector, document []byte) bool {
	t.Helper()
	sel := single(decode(t, selector))
	if o, ok := sel.(object); ok && len(o) == 0 {
		return true
	}
	return scope{value: single(decode(t, document))}.holds(sel, "", false)
}

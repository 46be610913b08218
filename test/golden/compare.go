package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// differ collects the differences between a wanted and a given value.
type differ struct {
	unordered []string
	ignore    []string
	copies    bool // the transcript comes from a server with one copy of each shard, this one may have more
	out       []string
}

func (d *differ) add(format string, args ...any) { d.out = append(d.out, fmt.Sprintf(format, args...)) }

var seqLetter = regexp.MustCompile(`(\{\{seq:\d+):[a-z]+`)

// same compares the values at path.
func (d *differ) same(want, got any, path string) {
	if slices.Contains(d.ignore, strings.Trim(path, ".")) {
		return
	}
	if w, ok := want.(string); ok && (w == "{{any}}" || w == "{{num}}") {
		d.wild(w, got, path)
		return
	}
	switch w := want.(type) {
	case object:
		if g, ok := got.(object); ok {
			d.objects(w, g, path)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			d.arrays(w, g, path)
			return
		}
	case string:
		if w == "{{node}}" && d.copies && slices.Contains([]any{"{{node2}}", "{{node3}}"}, got) {
			return // a replication runs on any of them
		}
		if g, ok := got.(string); ok && seqLetter.ReplaceAllString(w, "$1") == seqLetter.ReplaceAllString(g, "$1") {
			return
		}
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return
		}
	default:
		if want == got {
			return
		}
	}
	d.add("%s: want %s, got %s", path, cut(show(want, false), 300), cut(show(got, false), 300))
}

func (d *differ) wild(want string, got any, path string) {
	_, number := got.(json.Number)
	switch {
	case want == "{{num}}" && got != want && !number:
		d.add("%s: want a number, got %s", path, show(got, false))
	case got == nil:
		d.add("%s: want a value, got null", path)
	}
}

func (d *differ) objects(want, got object, path string) {
	var keys []string
	for _, o := range []object{want, got} {
		for _, m := range o {
			keys = append(keys, m.key)
		}
	}
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		p := path + "." + k
		if slices.Contains(d.ignore, strings.Trim(p, ".")) || d.copies && strings.HasSuffix(path, ".cluster") && strings.Contains("nwr", k) {
			continue
		}
		w, inWant := want.get(k)
		g, inGot := got.get(k)
		switch {
		case !inGot:
			d.add("%s: missing (want %s)", p, cut(show(w, false), 120))
		case !inWant:
			d.add("%s: unexpected %s", p, cut(show(g, false), 120))
		default:
			d.same(w, g, p)
		}
	}
}

func (d *differ) arrays(want, got []any, path string) {
	if slices.Contains(d.unordered, strings.Trim(path, ".")) {
		byText := func(a, b any) int { return strings.Compare(show(a, true), show(b, true)) }
		want, got = slices.SortedFunc(slices.Values(want), byText), slices.SortedFunc(slices.Values(got), byText)
	}
	if len(want) != len(got) {
		d.add("%s: want %d items, got %d: %s", path, len(want), len(got), cut(show(got, false), 200))
	}
	for i := range min(len(want), len(got)) {
		d.same(want[i], got[i], path+"."+strconv.Itoa(i))
	}
}

// inOrder puts lists that may come in any order into the order of the transcript, by the ids of
// their items: what a server makes up is named as it comes.
func inOrder(s *step, body any) any {
	want, err := decode(s.wantBody)
	if err != nil {
		return body
	}
	for _, path := range s.paths("unordered") {
		wanted, _ := at(want, path).([]any)
		got, _ := at(body, path).([]any)
		place := map[string]int{}
		for i, w := range wanted {
			place[idOf(w)] = i
		}
		slices.SortStableFunc(got, func(a, b any) int { return place[idOf(a)] - place[idOf(b)] })
	}
	return body
}

// at returns a member of members.
func at(v any, path []string) any {
	for _, name := range path {
		o, _ := v.(object)
		v, _ = o.get(name)
	}
	return v
}

func idOf(v any) string {
	o, _ := v.(object)
	id, _ := o.get("id")
	text, _ := id.(string)
	return text
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// fits reports whether the path starts as the pattern does, as far as both go.
func fits(path, pattern []string) bool {
	for i := range min(len(path), len(pattern)) {
		if pattern[i] != "*" && pattern[i] != path[i] {
			return false
		}
	}
	return true
}

// without leaves out what the patterns name.
func without(v any, patterns [][]string, path []string) any {
	hit := func(p []string) bool {
		return slices.ContainsFunc(patterns, func(q []string) bool { return len(p) == len(q) && fits(p, q) })
	}
	switch v := v.(type) {
	case object:
		out := object{}
		for _, m := range v {
			if p := append(slices.Clone(path), m.key); !hit(p) {
				out = append(out, member{m.key, without(m.value, patterns, p)})
			}
		}
		return out
	case []any:
		out := []any{}
		for i, x := range v {
			if p := append(slices.Clone(path), strconv.Itoa(i)); !hit(p) {
				out = append(out, without(x, patterns, p))
			}
		}
		return out
	}
	return v
}

// selection is the part of a body that the options pick, any and only leave.
type selection struct {
	pick, wild [][]string
	only       *regexp.Regexp
	onlyAt     string
}

func newSelection(s *step, n *names) (*selection, error) {
	sel := &selection{}
	for opt, dst := range map[string]*[][]string{"pick": &sel.pick, "any": &sel.wild} {
		for _, p := range s.paths(opt) {
			for i := range p {
				filled, err := n.fill(p[i], same)
				if err != nil {
					return nil, err
				}
				p[i] = filled
			}
			*dst = append(*dst, p)
		}
	}
	if !s.has("only") {
		return sel, nil
	}
	where, text, _ := strings.Cut(s.opts["only"], " ")
	text, err := n.fill(text, regexp.QuoteMeta)
	if err != nil {
		return nil, err
	}
	sel.onlyAt = strings.Trim(where, ".")
	sel.only, err = regexp.Compile(text)
	return sel, err
}

// apply returns what counts of v, which stands at path.
func (sel *selection) apply(v any, path []string) any {
	if arr, ok := v.([]any); ok && sel.only != nil && strings.Join(path, ".") == sel.onlyAt {
		v = slices.DeleteFunc(slices.Clone(arr), func(x any) bool { return !sel.only.MatchString(show(x, false)) })
	}
	if v != nil && slices.ContainsFunc(sel.wild, func(q []string) bool { return len(q) == len(path) && fits(path, q) }) {
		if _, ok := v.(json.Number); ok {
			return "{{num}}"
		}
		return "{{any}}"
	}
	keep := func(p []string) bool {
		return sel.pick == nil || slices.ContainsFunc(sel.pick, func(q []string) bool { return fits(p, q) })
	}
	switch v := v.(type) {
	case object:
		out := object{}
		for _, m := range v {
			if p := append(slices.Clone(path), m.key); keep(p) {
				out = append(out, member{m.key, sel.apply(m.value, p)})
			}
		}
		return out
	case []any:
		out := []any{}
		for i, x := range v {
			if p := append(slices.Clone(path), strconv.Itoa(i)); keep(p) {
				out = append(out, sel.apply(x, p))
			}
		}
		return out
	}
	return v
}

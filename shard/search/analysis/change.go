package analysis

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// change is a rule of a stemmer: terms of more than over characters that end in from end in
// to instead.
type change struct {
	over     int
	from, to []rune
	goOn     bool     // a later rule may apply, too
	then     []change // applied to what the rule has left
}

// changes returns rules for terms of more than over characters, written "from>to", and
// "from>" for an ending that is lost.
func changes(over int, rules string) []change {
	var out []change
	for rule := range strings.FieldsSeq(rules) {
		from, to, _ := strings.Cut(rule, ">")
		out = append(out, change{over: over, from: []rune(from), to: []rune(to)})
	}
	return out
}

// goOn has the rules not be the last ones.
func goOn(rules []change) []change {
	for i := range rules {
		rules[i].goOn = true
	}
	return rules
}

// followed has other rules follow the rules.
func followed(rules, then []change) []change {
	for i := range rules {
		rules[i].then = then
	}
	return rules
}

// apply applies the first of the rules that fits, and those after ones that go on. No
// rule makes a term longer.
func apply(term []rune, rules []change) []rune {
	for _, c := range rules {
		if len(term) <= c.over || !endsWith(term, c.from) {
			continue
		}
		term = append(term[:len(term)-len(c.from)], c.to...)
		if !c.goOn {
			return apply(term, c.then)
		}
	}
	return term
}

func endsWith(term, ending []rune) bool {
	return len(term) >= len(ending) && slices.Equal(term[len(term)-len(ending):], ending)
}

// replaced replaces characters above ASCII of a term by the ones at the same places of to.
func replaced(term []rune, from, to []rune) {
	for i, r := range term {
		if r < utf8.RuneSelf {
			continue
		}
		if at := slices.Index(from, r); at >= 0 {
			term[i] = to[at]
		}
	}
}

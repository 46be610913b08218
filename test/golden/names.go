package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// names gives names to what a server makes up, and fills them in again.
type names struct {
	value    map[string]string // name without braces → value
	name     map[string]string // value → name
	literals map[string]bool   // revisions and identifiers that the requests spell out
	count    map[string]int
	captured []header // name, value; in the order of capture
}

func newNames(steps []*step) *names {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	tag := make([]byte, 8)
	for i := range tag {
		tag[i] = letters[rand.IntN(len(letters))]
	}
	n := &names{value: map[string]string{"tag": string(tag)}, name: map[string]string{}, literals: map[string]bool{}, count: map[string]int{}}
	for i := 1; i <= 5; i++ {
		key := "db"
		if i > 1 {
			key = fmt.Sprintf("db%d", i)
		}
		n.value[key] = fmt.Sprintf("golden_%s_%d", tag, i)
		n.name[n.value[key]] = key
	}
	for _, s := range steps {
		text := s.path + " " + s.body
		for _, h := range s.headers {
			text += " " + h.value
		}
		replaceTokens(text, matchRev, func(rev, _ string) string {
			n.literals[rev] = true
			n.literals[rev[strings.IndexByte(rev, '-')+1:]] = true
			return rev
		})
		replaceTokens(text, matchUUID, func(id, _ string) string { n.literals[id] = true; return id })
	}
	return n
}

// label returns the name of the value, a new one when it was not seen before.
func (n *names) label(kind, value string) string {
	if _, ok := n.name[value]; !ok {
		n.count[kind]++
		letters := ""
		for i := n.count[kind]; i > 0; i = (i - 1) / 26 {
			letters = string(rune('a'+(i-1)%26)) + letters
		}
		n.name[value] = kind + ":" + letters
		n.value[kind+":"+letters] = value
	}
	return "{{" + n.name[value] + "}}"
}

// fresh names each value anew, even one that was seen before.
func (n *names) fresh(kind, value string) string {
	n.count[kind]++
	name := fmt.Sprintf("%s:%d", kind, n.count[kind])
	n.value[name] = value
	return "{{" + name + "}}"
}

func (n *names) capture(name, value string) {
	n.captured = slices.DeleteFunc(n.captured, func(h header) bool { return h.name == name || h.value == value })
	n.captured = append(n.captured, header{name, value})
	n.value[name] = value
}

var nameInBraces = regexp.MustCompile(`\{\{([^{}]+)\}\}`)

// fill replaces the names in text by their values.
func (n *names) fill(text string, escape func(string) string) (string, error) {
	var failed error
	out := nameInBraces.ReplaceAllStringFunc(text, func(m string) string {
		name := m[2 : len(m)-2]
		if v, ok := n.value[name]; ok {
			return escape(v)
		}
		if strings.HasPrefix(name, "seq:") { // any sequence with that number will do
			prefix := name[:strings.LastIndexByte(name, ':')+1]
			for _, k := range slices.Sorted(maps.Keys(n.value)) {
				if strings.HasPrefix(k, prefix) {
					return n.value[k]
				}
			}
		}
		failed = fmt.Errorf("%s is not known yet", m)
		return m
	})
	return out, failed
}

func same(s string) string { return s }

var shardSuffix = regexp.MustCompile(`(shards/[0-9a-f]{8}-[0-9a-f]{8}/\{\{db\d?\}\}\S*?)\.\d{10}\b`)

// norm replaces what the server made up by its names.
func (n *names) norm(text string) string {
	for _, h := range n.captured {
		text = strings.ReplaceAll(text, h.value, "{{"+h.name+"}}")
	}
	for _, key := range []string{"db", "db2", "db3", "db4", "db5"} {
		text = strings.ReplaceAll(text, n.value[key], "{{"+key+"}}")
	}
	if host := n.value["host"]; host != "" {
		text = strings.ReplaceAll(text, host, "{{host}}")
	}
	text = strings.ReplaceAll(text, n.value["tag"], "{{tag}}")
	text = shardSuffix.ReplaceAllString(text, "$1.{{suffix}}")
	for _, key := range []string{"node", "node2", "node3"} {
		if v := n.value[key]; v != "" {
			text = strings.ReplaceAll(text, v, "{{"+key+"}}")
		}
	}
	text = replaceTokens(text, matchSeq, func(seq, number string) string { return n.label("seq:"+number, seq) })
	text = replaceTokens(text, matchRev, func(rev, pos string) string {
		if n.literals[rev] {
			return rev
		}
		return n.label("rev:"+pos, rev)
	})
	return replaceTokens(text, matchUUID, func(id, _ string) string {
		if n.literals[id] {
			return id
		}
		return n.label("uuid", id)
	})
}

// matcher returns the length of the token that text starts with and the number
// before its dash, or 0.
type matcher func(text string) (length int, number string)

// replaceTokens calls fn for each token of text. A token does not start behind
// a letter, a digit or a dash.
func replaceTokens(text string, match matcher, fn func(token, number string) string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if i == 0 || !isWord(text[i-1]) && text[i-1] != '-' {
			if n, number := match(text[i:]); n > 0 {
				out.WriteString(fn(text[i:i+n], number))
				i += n
				continue
			}
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

// run returns how many bytes from the start satisfy ok.
func run(text string, ok func(byte) bool) int {
	n := 0
	for n < len(text) && ok(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func matchUUID(text string) (int, string) {
	if n := run(text, isWord); n != 32 || run(text, isHex) != 32 {
		return 0, ""
	}
	return 32, ""
}

func matchRev(text string) (int, string) {
	d := run(text, isDigit)
	if d == 0 || d == len(text) || text[d] != '-' {
		return 0, ""
	}
	if n, _ := matchUUID(text[d+1:]); n == 0 {
		return 0, ""
	}
	return d + 1 + 32, text[:d]
}

// matchSeq matches an update sequence: a number, a dash and at least 16
// characters that are not 32 hexadecimal digits (that would be a revision).
func matchSeq(text string) (int, string) {
	d := run(text, isDigit)
	if d == 0 || d == len(text) || text[d] != '-' {
		return 0, ""
	}
	rest := text[d+1:]
	n := run(rest, func(c byte) bool { return isWord(c) || c == '_' || c == '-' })
	if n < 16 || n == 32 && run(rest, isHex) == 32 {
		return 0, ""
	}
	return d + 1 + n, text[:d]
}

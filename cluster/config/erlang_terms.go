package config

import "strings"

// parseErlangTerms reads the little of Erlang's notation that values use: items
// separated by commas, perhaps in brackets, each a word, a "string", or a
// tuple of these in braces. A word or string is a tuple of one.
func parseErlangTerms(v string) (terms [][]string, ok bool) {
	p := &erlangParser{rest: strings.TrimSpace(v)}
	if p.rest == "" {
		return nil, true
	}
	end := ""
	if p.skip("[") {
		end = "]"
		if p.skip("]") {
			return nil, p.rest == ""
		}
	}
	for {
		t, ok := p.term()
		if !ok {
			return nil, false
		}
		terms = append(terms, t)
		if !p.skip(",") {
			break
		}
	}
	if end != "" && !p.skip(end) {
		return nil, false
	}
	return terms, p.rest == ""
}

type erlangParser struct{ rest string }

// skip drops a token and the white space behind it.
func (p *erlangParser) skip(token string) bool {
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = strings.TrimLeft(rest, " \t")
	}
	return ok
}

func (p *erlangParser) term() ([]string, bool) {
	if !p.skip("{") {
		w, ok := p.word()
		return []string{w}, ok
	}
	var tuple []string
	for {
		w, ok := p.word()
		if !ok {
			return nil, false
		}
		tuple = append(tuple, w)
		if p.skip("}") {
			return tuple, true
		}
		if !p.skip(",") {
			return nil, false
		}
	}
}

// word reads an atom or a string.
func (p *erlangParser) word() (string, bool) {
	if strings.HasPrefix(p.rest, `"`) {
		return p.quoted()
	}
	i := strings.IndexAny(p.rest, ",{}[]\"")
	if i < 0 {
		i = len(p.rest)
	}
	w := strings.TrimSpace(p.rest[:i])
	p.rest = p.rest[i:]
	return w, w != ""
}

func (p *erlangParser) quoted() (string, bool) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; c {
		case '"':
			p.rest = strings.TrimLeft(p.rest[i+1:], " \t")
			return b.String(), true
		case '\\':
			if i++; i == len(p.rest) {
				return "", false
			}
			b.WriteByte(p.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

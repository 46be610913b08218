package automaton

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"divan/storage/fault"
)

// Matcher matches terms by one pattern. It is for one goroutine.
type Matcher struct {
	pattern string
	root    *syntax
	borders []rune // the first character of each class but the first one, ascending
	ascii   [utf8.RuneSelf]int32

	nodes  *nodes
	start  int32
	states map[int32]int // by node: where its transitions are
	next   []int32       // nodes behind each class of a state; -1: not known
	round  uint32        // of derivations
	step   []derivation
	work   int // nodes that were looked at to make states
}

// derivation is the result of deriving a node in a round.
type derivation struct {
	round uint32
	to    int32
}

// Bounds of a Matcher.
const (
	maxTransitions = 1 << 19 // that are remembered
	maxWork        = 1 << 23
)

// Compile reads a pattern. Classes says that \d, \s and \w and their complements are classes of
// characters, as in Lucene 9. An error is a *fault.Error: the pattern cannot be read, or is
// too complex.
func Compile(pattern string, classes bool) (*Matcher, error) {
	root, err := parse(pattern, classes)
	if err != nil {
		return nil, err
	}
	m := &Matcher{pattern: pattern, root: root}
	m.border(root)
	slices.Sort(m.borders)
	m.borders = slices.Compact(m.borders)
	for c := range m.ascii {
		m.ascii[c] = m.search(rune(c))
	}
	m.forget()
	if m.nodes.full {
		return nil, m.tooComplex()
	}
	return m, nil
}

func (m *Matcher) tooComplex() error {
	text := m.pattern
	if len(text) > 100 {
		text = strings.ToValidUTF8(text[:100], "") + "…"
	}
	return fault.New(fault.BadRequest, "The regular expression /"+text+"/ is too complex.")
}

// border notes where spans begin and end.
func (m *Matcher) border(s *syntax) {
	for _, one := range s.spans {
		m.borders = append(m.borders, one.from, one.to+1)
	}
	for _, p := range s.parts {
		m.border(p)
	}
}

// class returns the class of a character.
func (m *Matcher) class(r rune) int32 {
	if r < utf8.RuneSelf {
		return m.ascii[r]
	}
	return m.search(r)
}

func (m *Matcher) search(r rune) int32 {
	return int32(sort.Search(len(m.borders), func(i int) bool { return m.borders[i] > r }))
}

// forget begins with the pattern only.
func (m *Matcher) forget() {
	m.nodes = newNodes(len(m.borders) + 1)
	m.states, m.next, m.step = map[int32]int{}, m.next[:0], m.step[:0]
	m.start = m.build(m.root)
}

// build makes nodes of a pattern.
func (m *Matcher) build(s *syntax) int32 {
	n := m.nodes
	if n.full {
		return nothingNode
	}
	parts := make([]int32, len(s.parts))
	for i, p := range s.parts {
		parts[i] = m.build(p)
	}
	switch s.kind {
	case emptyString:
		return emptyNode
	case characters:
		return n.characters(m.classes(s.spans))
	case concatenation:
		out := emptyNode
		for i := len(parts) - 1; i >= 0; i-- {
			out = n.concat(parts[i], out)
		}
		return out
	case union, intersection:
		return n.some(s.kind, parts)
	case complement:
		return n.not(parts[0])
	case repetition:
		return n.repeat(parts[0], int32(s.min), int32(s.max))
	default:
		return nothingNode
	}
}

// classes returns the classes of the characters of spans, which begin and end at borders.
func (m *Matcher) classes(spans []span) (out []int32) {
	for _, s := range spans {
		for c := m.search(s.from); c <= m.search(s.to); c++ {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Prefix returns what all terms begin with that match.
func (m *Matcher) Prefix() string {
	var out strings.Builder
	for s := m.root; s != nil; {
		first, rest := s, (*syntax)(nil)
		if s.kind == concatenation {
			first, rest = s.parts[0], &syntax{kind: concatenation, parts: s.parts[1:]}
			if len(s.parts) == 2 {
				rest = s.parts[1]
			}
		}
		if first.kind != characters || len(first.spans) != 1 || first.spans[0].from != first.spans[0].to || first.spans[0].from == utf8.RuneError {
			break
		}
		out.WriteRune(first.spans[0].from)
		s = rest
	}
	return out.String()
}

// Match reports whether a whole term matches. An error is a *fault.Error: the pattern is too
// complex.
func (m *Matcher) Match(term []byte) (bool, error) {
	at := m.start
	for len(term) > 0 && at != nothingNode && at != anyNode {
		r, n := utf8.DecodeRune(term)
		term = term[n:]
		var ok bool
		if at, ok = m.behind(at, m.class(r)); !ok {
			return false, m.tooComplex()
		}
	}
	return m.nodes.nullable(at), nil
}

// behind returns what is left of an expression behind a character of a class; ok is false
// when it is too large.
func (m *Matcher) behind(at, class int32) (to int32, ok bool) {
	state, known := m.states[at]
	if known && m.next[state+int(class)] >= 0 {
		return m.next[state+int(class)], true
	}
	if m.work > maxWork {
		return 0, false
	}
	m.round++
	to = m.derive(at, class)
	if m.nodes.full || len(m.next) > maxTransitions {
		if at = m.restart(at); !m.nodes.full {
			to = m.derive(at, class)
		}
		if m.nodes.full {
			m.forget()
			return 0, false
		}
		known = false
	}
	if !known {
		state = len(m.next)
		m.states[at] = state
		for range len(m.borders) + 1 {
			m.next = append(m.next, -1)
		}
	}
	m.next[state+int(class)] = to
	return to, true
}

// restart forgets all but one expression, and returns its new number.
func (m *Matcher) restart(at int32) int32 {
	old := m.nodes
	m.work += len(old.list)
	m.forget()
	copied := map[int32]int32{}
	var again func(id int32) int32
	again = func(id int32) int32 {
		if to, ok := copied[id]; ok || m.nodes.full {
			return to
		}
		x := old.list[id]
		if x.kind != characters {
			parts := make([]int32, len(x.parts))
			for i, p := range x.parts {
				parts[i] = again(p)
			}
			if x.parts = parts; x.kind == union || x.kind == intersection {
				slices.Sort(x.parts)
			}
		}
		copied[id] = m.nodes.intern(x)
		return copied[id]
	}
	return again(at)
}

// derive returns what is left of an expression behind a character of a class.
func (m *Matcher) derive(id, class int32) int32 {
	n := m.nodes
	if n.full {
		return nothingNode
	}
	x := n.list[id]
	m.work += len(x.parts)
	switch x.kind {
	case nothing, emptyString:
		return nothingNode
	case characters:
		if _, ok := slices.BinarySearch(x.parts, class); ok {
			return emptyNode
		}
		return nothingNode
	default:
	}
	if int(id) < len(m.step) && m.step[id].round == m.round {
		return m.step[id].to
	}
	var to int32
	switch x.kind {
	case concatenation:
		to = n.concat(m.derive(x.parts[0], class), x.parts[1])
		if n.nullable(x.parts[0]) {
			to = n.some(union, []int32{to, m.derive(x.parts[1], class)})
		}
	case complement:
		to = n.not(m.derive(x.parts[0], class))
	case repetition:
		most := x.max
		if most > 0 {
			most--
		}
		to = n.concat(m.derive(x.parts[0], class), n.repeat(x.parts[0], max(x.min-1, 0), most))
	default:
		parts := make([]int32, len(x.parts))
		for i, p := range x.parts {
			parts[i] = m.derive(p, class)
		}
		to = n.some(x.kind, parts)
	}
	for len(m.step) <= int(id) {
		m.step = append(m.step, derivation{})
	}
	m.step[id] = derivation{m.round, to}
	return to
}

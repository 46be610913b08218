package syntax

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type kind uint8

const (
	endOfText kind = iota
	andToken
	orToken
	notToken
	plusToken
	minusToken
	operatorToken // + - ! before white space, a word; Search
	openGroup
	closeGroup
	colonToken
	compareToken // = < <= > >=; Nouveau
	atToken      // Nouveau
	functionToken
	starToken // * alone; Search
	caretToken
	fuzzyToken // ~, in Search with its number
	quotedToken
	wordToken
	prefixToken   // word*; Search
	wildcardToken // wo?d*; Search
	regexpToken
	numberToken // after ^; in Nouveau any word that is one
	openRange
	closeRange
	toToken
	boundToken
	quotedBound
)

// shown returns how Lucene names that kind in errors.
func (k kind) shown() string {
	switch k {
	case andToken:
		return "<AND>"
	case orToken:
		return "<OR>"
	case notToken:
		return "<NOT>"
	case operatorToken:
		return "<BAREOPER>"
	case fuzzyToken:
		return "<FUZZY_SLOP>"
	case quotedToken:
		return "<QUOTED>"
	case wordToken:
		return "<TERM>"
	case prefixToken:
		return "<PREFIXTERM>"
	case wildcardToken:
		return "<WILDTERM>"
	case regexpToken:
		return "<REGEXPTERM>"
	case numberToken:
		return "<NUMBER>"
	case boundToken:
		return "<RANGE_GOOP>"
	case quotedBound:
		return "<RANGE_QUOTED>"
	default: // what is always written in the same way
		return ""
	}
}

// token is a part of the text. One that is no token (bad) ends the text.
type token struct {
	kind kind
	text string
	at   int // of its first byte
	bad  bool
}

// state says what the text is made of at a place.
type state uint8

const (
	clauses state = iota
	inRange
	afterCaret // Search only
)

// lexer cuts a text into tokens, in one pass.
type lexer struct {
	dialect Dialect
	text    string
	at      int
	state   state
}

// space returns the length of the white space that s begins with: one character of it.
func space(s string) int {
	switch {
	case s == "":
	case s[0] == ' ', s[0] == '\t', s[0] == '\n', s[0] == '\r':
		return 1
	case strings.HasPrefix(s, "\u3000"):
		return len("\u3000")
	}
	return 0
}

// next returns the next token; at the end of the text, and for ever after, endOfText.
func (l *lexer) next() token {
	if l.state != afterCaret {
		for n := space(l.text[l.at:]); n > 0; n = space(l.text[l.at:]) {
			l.at += n
		}
	}
	t := token{at: l.at}
	rest := l.text[l.at:]
	if rest == "" {
		return t
	}
	var n int
	switch l.state {
	case inRange:
		t.kind, n = l.bound(rest)
	case afterCaret:
		t.kind, n = numberToken, numberLength(rest)
		l.state = clauses
	default:
		t.kind, n = l.clause(rest)
	}
	if n == 0 {
		t.bad = true
		return t
	}
	t.text = rest[:n]
	l.at += n
	return t
}

// numberLength returns the length of the digits, perhaps with a fraction, that s
// begins with.
func numberLength(s string) int {
	n, rest := digits(s, false)
	if n > 0 && strings.HasPrefix(rest, ".") {
		if fraction, _ := digits(rest[1:], false); fraction > 0 {
			n += 1 + fraction
		}
	}
	return n
}

// bound reads a token within the brackets of a range.
func (l *lexer) bound(s string) (kind, int) {
	switch s[0] {
	case ']', '}':
		l.state = clauses
		return closeRange, 1
	case '"':
		if n := delimited(s); n > 0 && endsBound(s[n:]) {
			return quotedBound, n
		}
	}
	n := 0
	for n < len(s) && !endsBound(s[n:]) {
		n++
	}
	if s[:n] == "TO" {
		return toToken, n
	}
	return boundToken, n
}

func endsBound(s string) bool { return s == "" || s[0] == ']' || s[0] == '}' || space(s) > 0 }

// delimited returns the length of what stands between s[0] and the next such byte
// that has no escape before it, with both; 0 when there is none.
func delimited(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return 0
}

// clause reads a token outside of ranges.
func (l *lexer) clause(s string) (kind, int) {
	switch s[0] {
	case '(':
		return openGroup, 1
	case ')':
		return closeGroup, 1
	case ':':
		return colonToken, 1
	case '"':
		return quotedToken, delimited(s)
	case '/':
		return regexpToken, delimited(s)
	case '[', '{':
		l.state = inRange
		return openRange, 1
	case '^':
		if l.dialect == Search {
			l.state = afterCaret
		}
		return caretToken, 1
	case '~':
		if l.dialect == Search {
			return fuzzyToken, 1 + numberLength(s[1:])
		}
		return fuzzyToken, 1
	case '+', '-', '!':
		return l.operator(s)
	case '@', '=', '<', '>':
		if l.dialect == Nouveau {
			return comparison(s)
		}
	}
	return l.word(s)
}

func comparison(s string) (kind, int) {
	switch {
	case s[0] == '@':
		return atToken, 1
	case s[0] != '=' && strings.HasPrefix(s[1:], "="):
		return compareToken, 2
	}
	return compareToken, 1
}

func (l *lexer) operator(s string) (kind, int) {
	switch {
	case l.dialect == Search && space(s[1:]) > 0:
		return operatorToken, 1 + space(s[1:])
	case s[0] == '+':
		return plusToken, 1
	case s[0] == '-':
		return minusToken, 1
	}
	return notToken, 1
}

// startsWord reports whether a word may begin with that byte, or go on with it; + and
// - it may only go on with.
func (l *lexer) startsWord(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '+', '-', '!', '(', ')', ':', '^', '[', ']', '"', '{', '}', '~', '\\', '/':
		return false
	case '@', '<', '>', '=':
		return l.dialect == Search
	}
	return true
}

// word reads a word, with or without wildcards, and what looks like one.
func (l *lexer) word(s string) (kind, int) {
	n, wildcards, last := 0, 0, -1
	for n < len(s) {
		switch c := s[n]; {
		case c == '\\' && n+1 < len(s):
			_, size := utf8.DecodeRuneInString(s[n+1:])
			n += 1 + size
			continue
		case (c == '+' || c == '-') && n > 0, l.startsWord(c) && space(s[n:]) == 0:
		default:
			return l.wordKind(s[:n], wildcards, last), n
		}
		if s[n] == '*' || s[n] == '?' {
			wildcards, last = wildcards+1, n
		}
		n++
	}
	return l.wordKind(s, wildcards, last), n
}

// wordKind says what a word is that has so many wildcards, the last of them there.
func (l *lexer) wordKind(word string, wildcards, last int) kind {
	switch word {
	case "AND", "&&":
		return andToken
	case "OR", "||":
		return orToken
	case "NOT":
		return notToken
	}
	if l.dialect == Nouveau {
		switch {
		case word == "fn" && strings.HasPrefix(l.text[l.at+len(word):], ":"):
			return functionToken
		case plain(word):
			return numberToken
		}
		return wordToken
	}
	switch {
	case wildcards == 0:
		return wordToken
	case word == "*":
		return starToken
	case wildcards == 1 && last == len(word)-1 && word[last] == '*':
		return prefixToken
	}
	return wildcardToken
}

// place says where in the text an error is: the column counts from 0, in UTF-16
// code units.
func (l *lexer) place(at int) string {
	return "at line 1, column " + strconv.Itoa(units(l.text[:at])) + "."
}

// units returns the length of a text in UTF-16 code units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// unexpected says in the form of JavaCC's errors that t cannot stand where it does.
func (l *lexer) unexpected(t token) string {
	switch {
	case t.bad:
		return l.noToken(t.at)
	case t.kind == endOfText:
		return `Encountered "<EOF>" ` + l.place(t.at)
	}
	image := t.kind.shown()
	if image == "" {
		image = `"` + t.text + `"`
	}
	return `Encountered " ` + image + ` "` + t.text + ` "" ` + l.place(t.at)
}

// noToken says that no token begins there: what should have been closed is open to the
// end, or a character is out of place.
func (l *lexer) noToken(at int) string {
	rest := l.text[at:]
	where := "Lexical error at line 1, column "
	switch rest[0] {
	case '"', '/', '\\':
		return where + strconv.Itoa(units(l.text)+1) + ".  Encountered: <EOF> after : " + strconv.Quote(rest)
	}
	r, size := utf8.DecodeRuneInString(rest)
	return where + strconv.Itoa(units(l.text[:at])+1) + ".  Encountered: " + strconv.Quote(rest[:size]) + " (" + strconv.Itoa(int(r)) + `), after : ""`
}

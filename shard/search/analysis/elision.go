package analysis

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// elided removes articles with an apostrophe from the beginning of a term.
func elided(articles string) filter {
	list := strings.Fields(articles)
	return func(term []byte) []byte {
		if isASCII(term) && bytes.IndexByte(term, '\'') < 0 || !utf8.Valid(term) {
			return term
		}
		for i, r := range string(term) {
			if (r == '\'' || r == '’') && slices.Contains(list, string(term[:i])) {
				return term[i+utf8.RuneLen(r):]
			}
		}
		return term
	}
}

// beforeApostrophe cuts a term at its first apostrophe.
func beforeApostrophe(term []byte) []byte {
	if i := bytes.IndexAny(term, "'’"); i >= 0 && utf8.Valid(term) {
		return term[:i]
	}
	return term
}

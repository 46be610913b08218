package analysis

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"
)

// possessive takes 's away.
func possessive(term []byte) []byte {
	if !bytes.HasSuffix(term, []byte("s")) || !utf8.Valid(term) {
		return term
	}
	rest := term[:len(term)-1]
	if r, size := utf8.DecodeLastRune(rest); r == '\'' || r == '’' || r == '＇' {
		return rest[:len(rest)-size]
	}
	return term
}

// porter is Porter's stemmer (An algorithm for suffix stripping, 1980) with the two rules
// that its author added to his program, bli and logi. No rule applies to a word that is
// nothing but its ending.
var porter = sync.OnceValue(func() filter {
	plurals := changes(0, "sses>ss ies>i ss>ss s>")
	second := changes(0, "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous "+
		"ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble logi>log")
	third := changes(0, "icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
	fourth := changes(0, "al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ion> ou> ism> ate> iti> ous> ive> ize>")
	return inRunes(func(term []rune) []rune {
		if len(term) <= 2 {
			return term
		}
		term = measured(term, plurals, -1)
		term = pastAndPresent(term)
		if n := len(term) - 1; n > 0 && term[n] == 'y' && hasVowel(term[:n]) {
			term[n] = 'i'
		}
		term = measured(term, second, 0)
		term = measured(term, third, 0)
		if n := len(term) - 3; n <= 0 || !endsIn(term, "ion") || term[n-1] == 's' || term[n-1] == 't' {
			term = measured(term, fourth, 1)
		}
		return porterEnd(term)
	})
})

// measured applies the first rule whose ending the word has, when what is before the
// ending measures more than over.
func measured(term []rune, rules []change, over int) []rune {
	for _, c := range rules {
		if n := len(term) - len(c.from); n > 0 && endsWith(term, c.from) {
			if over < 0 || measure(term[:n]) > over {
				return append(term[:n], c.to...)
			}
			return term
		}
	}
	return term
}

// pastAndPresent takes ed and ing away, and mends what is left.
func pastAndPresent(term []rune) []rune {
	var stem []rune
	switch n := len(term); {
	case n > 3 && endsIn(term, "eed"):
		if measure(term[:n-3]) > 0 {
			return term[:n-1]
		}
		return term
	case n > 2 && endsIn(term, "ed"):
		stem = term[:n-2]
	case n > 3 && endsIn(term, "ing"):
		stem = term[:n-3]
	}
	if !hasVowel(stem) {
		return term
	}
	n := len(stem)
	last := stem[n-1]
	switch {
	case n > 2 && (endsIn(stem, "at") || endsIn(stem, "bl") || endsIn(stem, "iz")):
		return append(stem, 'e')
	case n > 1 && last == stem[n-2] && isConsonant(stem, n-1) && last != 'l' && last != 's' && last != 'z':
		return stem[:n-1]
	case measure(stem) == 1 && short(stem):
		return append(stem, 'e')
	}
	return stem
}

// porterEnd takes the last e away, and one of two l.
func porterEnd(term []rune) []rune {
	n := len(term) - 1
	if term[n] == 'e' {
		if m := measure(term[:n]); m > 1 || m == 1 && !short(term[:n]) {
			term = term[:n]
		}
	}
	if n = len(term) - 1; n > 1 && term[n] == 'l' && term[n-1] == 'l' && measure(term[:n]) > 1 {
		term = term[:n]
	}
	return term
}

// isConsonant reports whether a letter is none of a, e, i, o, u, and no y behind a
// consonant.
func isConsonant(term []rune, at int) bool {
	ys := 0 // in a row, up to the letter: vowels and consonants alternate
	for at-ys > 0 && term[at-ys] == 'y' {
		ys++
	}
	consonant := true
	switch term[at-ys] {
	case 'a', 'e', 'i', 'o', 'u':
		consonant = false
	}
	return consonant == (ys%2 == 0)
}

func hasVowel(term []rune) bool {
	for i := range term {
		if !isConsonant(term, i) {
			return true
		}
	}
	return false
}

// measure counts how often consonants follow vowels.
func measure(term []rune) int {
	n, afterVowel := 0, false
	for i := range term {
		consonant := isConsonant(term, i)
		if consonant && afterVowel {
			n++
		}
		afterVowel = !consonant
	}
	return n
}

// short reports whether a word ends in a consonant, a vowel and a consonant that is not
// w, x or y.
func short(term []rune) bool {
	n := len(term)
	return n > 2 && isConsonant(term, n-3) && !isConsonant(term, n-2) && isConsonant(term, n-1) &&
		!slices.Contains([]rune("wxy"), term[n-1])
}

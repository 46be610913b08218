package query

import (
	"bytes"
	"cmp"

	"divan/storage/doc"
)

// plain reports whether a string, with its quotes, is printable ASCII without
// escapes. Such strings are equal only when their bytes are, and each of their
// characters weighs on its own.
func plain(text []byte) bool {
	if len(text) < 2 {
		return false
	}
	for _, c := range text[1 : len(text)-1] {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

// ranks holds for each character from space to tilde its place in the root
// collation, as a character; the two cases of a letter share one. The order is
// " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$", digits, letters.
const ranks = " &*6@75)+,2:#\"(3ABCDEFGHIJ%$;<='1KLMNOPQRSTUVWXYZ[\\]^_`abcd-4.9!8KLMNOPQRSTUVWXYZ[\\]^_`abcd/>0?"

// comparePlain orders two plain strings as collate does: by their characters
// first, and only then lower case before upper.
func comparePlain(a, b []byte) int {
	a, b = a[1:len(a)-1], b[1:len(b)-1]
	letterCase := 0
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if c := cmp.Compare(ranks[x-' '], ranks[y-' ']); c != 0 {
			return c
		}
		if letterCase == 0 {
			letterCase = cmp.Compare(y, x) // the upper case letter has the smaller code
		}
	}
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return letterCase
}

// compareBytes orders two strings, with their quotes, by their bytes.
func compareBytes(a, b []byte) int {
	if plain(a) && plain(b) {
		return bytes.Compare(a[1:len(a)-1], b[1:len(b)-1])
	}
	x, _ := doc.Unquote(a)
	y, _ := doc.Unquote(b)
	return cmp.Compare(x, y)
}

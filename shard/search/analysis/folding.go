package analysis

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

// foldingTable has, in each line, what is folded to the characters at its beginning.
// The characters are those of Lucene's ASCIIFoldingFilter.
//
//go:embed folding.txt
var foldingTable string

// foldings returns what the characters become that are folded.
var foldings = sync.OnceValue(func() map[rune]string {
	out := map[rune]string{}
	for line := range strings.Lines(foldingTable) {
		to, from, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		for _, r := range from {
			out[r] = to
		}
	}
	return out
})

// fold replaces letters by what is nearest to them in ASCII.
func fold(term []byte) []byte {
	if isASCII(term) {
		return term
	}
	table := foldings()
	out := make([]byte, 0, 2*len(term))
	for _, r := range string(term) {
		if to, ok := table[r]; ok {
			out = append(out, to...)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

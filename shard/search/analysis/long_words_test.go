package analysis

import (
	"strings"
	"testing"

	"divan/shard/search/syntax"
)

// TestLongWords: a text of one word takes no more than one of many. Where each piece of it looked
// for its end anew, these 4 MB took minutes.
func TestLongWords(t *testing.T) {
	const size = 4 << 20
	for _, text := range []string{strings.Repeat("a", size), strings.Repeat("a.", size/2), strings.Repeat("ก", size/3), strings.Repeat("é", size/2)} {
		for _, dialect := range []syntax.Dialect{syntax.Search, syntax.Nouveau} {
			for _, name := range []string{"standard", "classic", "email", "keyword", "simple", "whitespace", "english", "cjk", "simple_asciifolding"} {
				a, err := Named(name, dialect)
				if err != nil {
					continue // not of this dialect
				}
				var s Stream
				s.Reset(a, text)
				end := 0
				for token, ok := s.Next(); ok; token, ok = s.Next() {
					if token.Start < end {
						t.Fatalf("%v %s: a token from %d to %d, after one that ends at %d", dialect, name, token.Start, token.End, end)
					}
					if end = token.Start; name != "cjk" { // whose pairs overlap
						end = token.End
					}
				}
			}
		}
	}
}

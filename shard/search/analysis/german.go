package analysis

import (
	"slices"
	"sync"
)

// german writes umlauts and their spellings with e as the vowel alone, and ß as ss, and
// takes the endings of cases away: Savoy's light stemmer.
var german = sync.OnceValue(func() filter {
	cases := slices.Concat(
		changes(5, "ern>"),
		changes(4, "em> en> er> es>"),
		changes(3, "e> bs>b ds>d fs>f gs>g hs>h ks>k ls>l ms>m ns>n ts>t"),
	)
	degrees := slices.Concat(
		changes(5, "est>"),
		changes(4, "er> en> bst>b dst>d fst>f gst>g hst>h kst>k lst>l mst>m nst>n tst>t"),
	)
	from, to := []rune("äàáâöòóôïìíîüùúû"), []rune("aaaaooooiiiiuuuu")
	return inRunes(func(term []rune) []rune {
		term = germanVowels(term)
		replaced(term, from, to)
		return apply(apply(term, cases), degrees)
	})
})

// germanVowels drops the e of ae and oe, and of ue where the u does not follow a vowel
// or q.
func germanVowels(term []rune) []rune {
	const (
		plain  = iota
		vowel  // u begins no umlaut
		umlaut // e is part of it
	)
	out := make([]rune, 0, len(term)+2)
	before := plain
	for _, r := range term {
		after := plain
		switch r {
		case 'a', 'o':
			after = umlaut
		case 'u':
			after = vowel
			if before == plain {
				after = umlaut
			}
		case 'e', 'i', 'q', 'y':
			after = vowel
		case 'ä':
			r, after = 'a', vowel
		case 'ö':
			r, after = 'o', vowel
		case 'ü':
			r, after = 'u', vowel
		case 'ß':
			out = append(out, 's')
			r = 's'
		}
		if r != 'e' || before != umlaut {
			out = append(out, r)
		}
		before = after
	}
	return out
}

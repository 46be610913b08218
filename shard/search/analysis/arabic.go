package analysis

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// arabicLetters writes alef, yeh and heh in one way, and without tatweel and vowel marks.
var arabicLetters = strings.NewReplacer(
	"\u0622", "\u0627", "\u0623", "\u0627", "\u0625", "\u0627",
	"\u0649", "\u064a", "\u0629", "\u0647",
	"\u0640", "", "\u064b", "", "\u064c", "", "\u064d", "", "\u064e", "", "\u064f", "", "\u0650", "", "\u0651", "", "\u0652", "",
)

// persianLetters writes yeh, kaf and heh as Arabic does, and without the hamza above.
var persianLetters = strings.NewReplacer(
	"\u06cc", "\u064a", "\u06d2", "\u064a", "\u06a9", "\u0643", "\u06c0", "\u0647", "\u06c1", "\u0647", "\u0654", "",
)

// spelled writes letters of terms in another way.
func spelled(r *strings.Replacer) filter {
	return func(term []byte) []byte {
		if !utf8.Valid(term) {
			return term
		}
		return append(term[:0], r.Replace(string(term))...)
	}
}

// arabic is the light stemmer of Larkey and others (Light stemming for Arabic information
// retrieval, 2007): one prefix and every suffix goes, as long as two letters are left,
// and before a lone waw three.
var arabic = sync.OnceValue(func() filter {
	var prefixes, suffixes [][]rune
	for p := range strings.FieldsSeq("ال وال بال كال فال لل و") {
		prefixes = append(prefixes, []rune(p))
	}
	for s := range strings.FieldsSeq("ها ان ات ون ين يه ية ه ة ي") {
		suffixes = append(suffixes, []rune(s))
	}
	return inRunes(func(term []rune) []rune {
		for _, p := range prefixes {
			if left := len(term) - len(p); left >= 2 && (left >= 3 || len(p) > 1) && slices.Equal(term[:len(p)], p) {
				term = term[len(p):]
				break
			}
		}
		for _, s := range suffixes {
			if len(term)-len(s) >= 2 && endsWith(term, s) {
				term = term[:len(term)-len(s)]
			}
		}
		return term
	})
})

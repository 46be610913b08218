package analysis

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// indicRules has the letters of Indic scripts that are written as one letter and as two
// or three: those, and the one.
//
//go:embed indic.txt
var indicRules string

// indic writes letters of Indic scripts as one that may be written as several.
var indic = sync.OnceValue(func() filter {
	type rule struct {
		from []rune
		to   rune
	}
	rules := map[rune][]rule{} // by the first letter
	for line := range strings.Lines(indicRules) {
		runes := []rune(strings.TrimSuffix(line, "\n"))
		from := runes[:len(runes)-2]
		rules[from[0]] = append(rules[from[0]], rule{from, runes[len(runes)-1]})
	}
	return inRunes(func(term []rune) []rune {
		for i := 0; i < len(term); i++ {
			for _, c := range rules[term[i]] {
				if rest := term[i:]; len(rest) >= len(c.from) && slices.Equal(rest[:len(c.from)], c.from) {
					rest[0] = c.to
					term = slices.Delete(term, i+1, i+len(c.from))
					break
				}
			}
		}
		return term
	})
})

// hindiLetters drops nukta, virama and joiners, writes a dead n and a candrabindu as
// anusvara, and long, short and candra vowels in one way (Larkey and others, Hindi CLIR in
// thirty days, 2003).
var hindiLetters = strings.NewReplacer(
	"\u0928\u094d", "\u0902", "\u0901", "\u0902",
	"\u093c", "", "\u094d", "", "\u200c", "", "\u200d", "",
	"\u0929", "\u0928", "\u0931", "\u0930", "\u0934", "\u0933", "\u0958", "\u0915", "\u0959", "\u0916", "\u095a", "\u0917",
	"\u095b", "\u091c", "\u095c", "\u0921", "\u095d", "\u0922", "\u095e", "\u092b", "\u095f", "\u092f",
	"\u0906", "\u0905", "\u0972", "\u0905", "\u0908", "\u0907", "\u090a", "\u0909", "\u0960", "\u090b", "\u0961", "\u090c",
	"\u090d", "\u090f", "\u090e", "\u090f", "\u0910", "\u090f", "\u0911", "\u0913", "\u0912", "\u0913", "\u0914", "\u0913",
	"\u0940", "\u093f", "\u0942", "\u0941", "\u0944", "\u0943", "\u0963", "\u0962",
	"\u0945", "\u0947", "\u0946", "\u0947", "\u0948", "\u0947", "\u0949", "\u094b", "\u094a", "\u094b", "\u094c", "\u094b",
)

// hindi takes the endings of cases and verbs away, a longer one rather than a shorter one
// (Ramanathan and Rao, A lightweight stemmer for Hindi, 2003).
var hindi = sync.OnceValue(func() filter {
	rules := slices.Concat(
		changes(6, "ाएंगी> ाएंगे> ाऊंगी> ाऊंगा> ाइयाँ> ाइयों> ाइयां>"),
		changes(5, "ाएगी> ाएगा> ाओगी> ाओगे> एंगी> ेंगी> एंगे> ेंगे> ूंगी> ूंगा> ातीं> नाओं> नाएं> ताओं> ताएं> ियाँ> ियों> ियां>"),
		changes(4, "ाकर> ाइए> ाईं> ाया> ेगी> ेगा> ोगी> ोगे> ाने> ाना> ाते> ाती> ाता> तीं> ाओं> ाएं> ुओं> ुएं> ुआं>"),
		changes(3, "कर> ाओ> िए> ाई> ाए> ने> नी> ना> ते> ीं> ती> ता> ाँ> ां> ों> ें>"),
		changes(2, "ो> े> ू> ु> ी> ि> ा>"),
	)
	return inRunes(func(term []rune) []rune { return apply(term, rules) })
})

package analysis

import (
	"slices"
	"sync"
	"unicode/utf8"
)

// inRunes applies a stemmer that returns how long the stem is to a term; it may change
// the characters.
func inRunes(stem func(term []rune) []rune) filter {
	return func(term []byte) []byte {
		if !utf8.Valid(term) {
			return term
		}
		runes := stem([]rune(string(term)))
		term = term[:0]
		for _, r := range runes {
			term = utf8.AppendRune(term, r)
		}
		return term
	}
}

// greek removes accents, and makes the sigma at the end of words a common one.
func greek(term []byte) []byte {
	return inRunes(func(runes []rune) []rune {
		for i, r := range runes {
			switch r {
			case 'ά':
				runes[i] = 'α'
			case 'έ':
				runes[i] = 'ε'
			case 'ή':
				runes[i] = 'η'
			case 'ί', 'ϊ', 'ΐ':
				runes[i] = 'ι'
			case 'ό':
				runes[i] = 'ο'
			case 'ύ', 'ϋ', 'ΰ':
				runes[i] = 'υ'
			case 'ώ':
				runes[i] = 'ω'
			case 'ς':
				runes[i] = 'σ'
			}
		}
		return runes
	})(term)
}

func endsIn(term []rune, text string) bool {
	n := len(term) - utf8.RuneCountInString(text)
	return n >= 0 && string(term[n:]) == text
}

// czech is the light stemmer of Dolamic and Savoy: cases and possessives.
var czech = sync.OnceValue(func() filter {
	cases := slices.Concat(
		changes(7, "atech>"),
		changes(6, "ětem> etem> atům>"),
		changes(5, "ech> ich> ích> ého> ěmi> emi> ému> ěte> ete> ěti> eti> ího> iho> ími> ímu> imu> ách> ata> aty> ých> ama> ami> ové> ovi> ými>"),
		changes(4, "em> es> ém> ím> ům> at> ám> os> us> ým> mi> ou>"),
		changes(3, "a> e> i> o> u> ů> y> á> é> í> ý> ě>"),
	)
	possessives := changes(5, "ov> in> ův>")
	return inRunes(func(term []rune) []rune { return czechSounds(apply(apply(term, cases), possessives)) })
})

// czechSounds undoes what endings do to the sounds before them.
func czechSounds(term []rune) []rune {
	n := len(term)
	if n == 0 {
		return term
	}
	switch {
	case endsIn(term, "čt"):
		term[n-2], term[n-1] = 'c', 'k'
	case endsIn(term, "št"):
		term[n-2], term[n-1] = 's', 'k'
	case term[n-1] == 'c', term[n-1] == 'č':
		term[n-1] = 'k'
	case term[n-1] == 'z', term[n-1] == 'ž':
		term[n-1] = 'h'
	case n > 1 && term[n-2] == 'e':
		term[n-2] = term[n-1]
		return term[:n-1]
	case n > 2 && term[n-2] == 'ů':
		term[n-2] = 'o'
	}
	return term
}

// bulgarian is the light stemmer of Savoy: articles, plurals, and what sounds change.
var bulgarian = sync.OnceValue(func() filter {
	articles := slices.Concat(changes(6, "ият>"), changes(5, "ът> то> те> та> ия>"), changes(4, "ят>"))
	last, vowels := changes(3, "я>"), changes(3, "а> о> е>")
	return inRunes(func(term []rune) []rune {
		if len(term) < 4 {
			return term
		}
		if len(term) > 5 && endsIn(term, "ища") {
			return term[:len(term)-3]
		}
		term = bulgarianPlural(apply(term, articles))
		return bulgarianSounds(apply(apply(term, last), vowels))
	})
})

// bulgarianSounds undoes what endings do to the sounds before them.
func bulgarianSounds(term []rune) []rune {
	n := len(term)
	switch {
	case n > 4 && endsIn(term, "ен"):
		term[n-2] = 'н'
		term = term[:n-1]
	case n > 5 && term[n-2] == 'ъ':
		term[n-2] = term[n-1]
		term = term[:n-1]
	}
	return term
}

func bulgarianPlural(term []rune) []rune {
	n := len(term)
	change := func(at int, to rune, cut int) []rune {
		term[n-at] = to
		return term[:n-cut]
	}
	switch {
	case n > 6 && (endsIn(term, "овци") || endsIn(term, "ове")):
		return term[:n-3]
	case n > 6 && endsIn(term, "еве"):
		return change(3, 'й', 2)
	case n > 5 && endsIn(term, "ища"):
		return term[:n-3]
	case n > 5 && endsIn(term, "та"):
		return term[:n-2]
	case n > 5 && endsIn(term, "ци"):
		return change(2, 'к', 1)
	case n > 5 && endsIn(term, "зи"):
		return change(2, 'г', 1)
	case n > 5 && term[n-3] == 'е' && term[n-1] == 'и':
		return change(3, 'я', 1)
	case n > 4 && endsIn(term, "си"):
		return change(2, 'х', 1)
	case n > 4 && term[n-1] == 'и':
		return term[:n-1]
	}
	return term
}

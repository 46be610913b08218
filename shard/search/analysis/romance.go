package analysis

import (
	"slices"
	"sync"
	"unicode"
)

// The light stemmers of this file are Jacques Savoy's (A stemming procedure and stopword
// list for general French corpora, 1999; Light stemming approaches for the French,
// Portuguese, German and Hungarian languages, 2006), with Lucene's limits of length.

// french takes plurals, feminine forms and endings of derived words away.
var french = sync.OnceValue(func() filter {
	rules := slices.Concat(
		changes(9, "issement>ir"),
		changes(8, "issant>ir"),
		followed(changes(6, "ement>e"), changes(3, "ive>if")),
		changes(11, "ficatrice>fier"),
		changes(10, "ficateur>fier"),
		changes(9, "catrice>quer"),
		changes(8, "cateur>quer atrice>er"),
		changes(7, "ateur>er"),
		goOn(changes(6, "trice>teur")),
		changes(5, "ième>"),
		changes(7, "teuse>ter"),
		changes(6, "teur>ter"),
		changes(5, "euse>eu"),
		changes(8, "ère>er"),
		changes(7, "ive>if"),
		changes(4, "folle>fou molle>mou"),
		changes(9, "nnelle>n nnel>n"),
		goOn(changes(4, "ète>et")),
		goOn(changes(8, "ique>")),
		changes(8, "esse>e"),
		changes(7, "inage>in"),
		followed(changes(9, "isation>"), changes(5, "ual>uel")),
		changes(9, "isateur>"),
		changes(8, "ation> ition>"),
	)
	plurals := slices.Concat(goOn(changes(5, "x>")), goOn(changes(3, "x> s>")))
	return inRunes(func(term []rune) []rune {
		if n := len(term); n > 5 && endsIn(term, "aux") && term[n-4] != 'e' {
			term[n-2] = 'l'
		}
		return frenchEnd(apply(apply(term, plurals), rules))
	})
})

// frenchEnd takes accents, doubled letters and the last vowel away.
func frenchEnd(term []rune) []rune {
	if len(term) > 4 {
		for i := 0; i < len(term); i++ {
			plain := frenchLetter(term[i])
			if changed := plain != term[i]; changed || i == 0 {
				term[i] = plain
				term = slices.CompactFunc(term, func(a, b rune) bool { return a == b && unicode.IsLetter(a) })
			}
		}
	}
	if len(term) > 4 && endsIn(term, "ie") {
		term = term[:len(term)-2]
	}
	if len(term) <= 4 {
		return term
	}
	for _, r := range "ree" {
		if term[len(term)-1] == r {
			term = term[:len(term)-1]
		}
	}
	if n := len(term); term[n-1] == term[n-2] && unicode.IsLetter(term[n-1]) {
		term = term[:n-1]
	}
	return term
}

func frenchLetter(r rune) rune {
	switch r {
	case 'à', 'á', 'â':
		return 'a'
	case 'ô':
		return 'o'
	case 'è', 'é', 'ê':
		return 'e'
	case 'ù', 'û':
		return 'u'
	case 'î':
		return 'i'
	case 'ç':
		return 'c'
	}
	return r
}

// italian takes the last vowel away, and accents.
var italian = sync.OnceValue(func() filter {
	rules := changes(0, "ie> he> hi> ii> ia> io> e> i> a> o>")
	from, to := []rune("àáâäòóôöèéêëùúûüìíîï"), []rune("aaaaooooeeeeuuuuiiii")
	return inRunes(func(term []rune) []rune {
		if len(term) < 6 {
			return term
		}
		replaced(term, from, to)
		return apply(term, rules)
	})
})

// portuguese takes plurals, feminine forms and accents away.
var portuguese = sync.OnceValue(func() filter {
	plurals := slices.Concat(
		changes(4, "res>r ses>s les>l zes>z"),
		changes(3, "ns>m"),
		changes(4, "eis>el éis>el ais>al óis>ol is>il"),
		changes(3, "ões>ão ães>ão"),
		changes(6, "mente>"),
		changes(3, "s>"),
	)
	feminine := slices.Concat(
		changes(7, "inha>inho iaca>iaco eira>eiro"),
		changes(6, "osa>oso ica>ico ida>ido ada>ado iva>ivo ama>amo ona>ão ora>or esa>ês na>no"),
	)
	last := changes(4, "e> a> o>")
	from, to := []rune("àáâäãòóôöõèéêëùúûüìíîïç"), []rune("aaaaaoooooeeeeuuuuiiiic")
	return inRunes(func(term []rune) []rune {
		if len(term) < 4 {
			return term
		}
		term = apply(apply(apply(term, plurals), feminine), last)
		replaced(term, from, to)
		return term
	})
})

// spanish takes plurals and the last vowel away.
var spanish = sync.OnceValue(func() filter {
	rules := changes(4, "eses>es ces>z os> as> es> o> a> e>")
	return inRunes(func(term []rune) []rune { return apply(term, rules) })
})

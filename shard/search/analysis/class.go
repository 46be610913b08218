package analysis

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is the class of a character for the borders of words (UAX #29, the
// property Word_Break), as far as the rules need it.
type class uint8

const (
	other class = iota
	letter
	hebrew
	digit
	katakana
	connector // joins letters and digits: the underscore
	extend    // belongs to the character before it
	joiner    // ZWJ, the same, and joins emoji
	midLetter
	midNumber
	midBoth
	singleQuote
	doubleQuote
	han       // a word of one character; not only of Chinese
	hiragana  // the same
	southEast // scripts without spaces that need a dictionary
	regional  // two of them are a flag
	emoji
	textEmoji // an emoji only with a variation selector
)

// tabled is how many characters are in the table; above are Han, and little else.
const tabled = 0x20000

// classes is the table, computed from Go's Unicode tables by the definitions of UAX #29,
// section 4.1.
var classes = sync.OnceValue(func() *[tabled]class {
	out := new([tabled]class)
	set := func(c class, tables ...*unicode.RangeTable) {
		for _, table := range tables {
			for _, r := range table.R16 {
				for i := uint32(r.Lo); i <= uint32(r.Hi); i += uint32(r.Stride) {
					out[i] = c
				}
			}
			for _, r := range table.R32 {
				for i := r.Lo; i <= r.Hi && i < tabled; i += r.Stride {
					out[i] = c
				}
			}
		}
	}
	runes := func(c class, text string) {
		for _, r := range text {
			out[r] = c
		}
	}
	pictures(out)
	set(letter, unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	symbolLetters(out)
	set(southEast, southEastern(unicode.Thai, unicode.Lao, unicode.Myanmar, unicode.Khmer, unicode.Tai_Le, unicode.New_Tai_Lue, unicode.Tai_Tham, unicode.Tai_Viet, unicode.Ahom))
	set(hiragana, unicode.Hiragana)
	set(han, unicode.Han, unicode.Ideographic)
	runes(letter, "\u3005\u303b\U00016fe3") // marks of repetition
	set(katakana, unicode.Katakana)
	runes(katakana, "\u3031\u3032\u3033\u3034\u3035\u309b\u309c\u30a0\u30fc\uff70")
	for r := range rune(tabled) {
		if out[r] == letter && unicode.Is(unicode.Hebrew, r) && unicode.Is(unicode.Lo, r) {
			out[r] = hebrew
		}
	}
	set(digit, unicode.Nd)
	runes(digit, "\u066b")
	set(connector, unicode.Pc)
	runes(connector, "\u202f")
	set(extend, unicode.Cf, unicode.M, unicode.Other_Grapheme_Extend)
	for r := rune(0x1f3fb); r <= 0x1f3ff; r++ { // the colours of skin
		out[r] = extend
	}
	for r := rune(0x1f1e6); r <= 0x1f1ff; r++ {
		out[r] = regional
	}
	out['\u200b'], out['\u200d'] = other, joiner
	runes(midLetter, ":\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a")
	runes(midNumber, ",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b")
	runes(midBoth, ".\u2018\u2019\u2024\ufe52\uff07\uff0e")
	out['\''], out['"'] = singleQuote, doubleQuote
	return out
})

// southEastern returns the letters of those scripts; their marks extend them, and their
// digits are digits.
func southEastern(scripts ...*unicode.RangeTable) *unicode.RangeTable {
	out := &unicode.RangeTable{}
	for _, script := range scripts {
		for _, r := range script.R16 {
			for i := r.Lo; i <= r.Hi; i += r.Stride {
				if unicode.IsLetter(rune(i)) {
					out.R16 = append(out.R16, unicode.Range16{Lo: i, Hi: i, Stride: 1})
				}
			}
		}
		for _, r := range script.R32 {
			for i := r.Lo; i <= r.Hi; i += r.Stride {
				if unicode.IsLetter(rune(i)) {
					out.R32 = append(out.R32, unicode.Range32{Lo: i, Hi: i, Stride: 1})
				}
			}
		}
	}
	return out
}

// symbolLetters marks what is no letter and counts as one: marks of pronunciation, and
// some Armenian punctuation.
func symbolLetters(out *[tabled]class) {
	for _, r := range [][2]rune{
		{0x2c2, 0x2c5},
		{0x2d2, 0x2d7},
		{0x2de, 0x2df},
		{0x2e5, 0x2eb},
		{0x2ed, 0x2ed},
		{0x2ef, 0x2ff},
		{0x55a, 0x55c},
		{0x55e, 0x55e},
		{0x58a, 0x58a},
		{0x5f3, 0x5f3},
		{0xa708, 0xa716},
		{0xa720, 0xa721},
		{0xa789, 0xa78a},
		{0xab5b, 0xab5b},
	} {
		for i := r[0]; i <= r[1]; i++ {
			out[i] = letter
		}
	}
}

// pictures marks emoji: the blocks that hold them, with what is not yet assigned there.
func pictures(out *[tabled]class) {
	for _, r := range [][2]rune{{0x231a, 0x231b}, {0x23e9, 0x23f3}, {0x2600, 0x27bf}, {0x2b05, 0x2b55}, {0x1f000, 0x1f0ff}, {0x1f10d, 0x1f1ad}, {0x1f200, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f774, 0x1faff}} {
		for i := r[0]; i <= r[1]; i++ {
			out[i] = emoji
		}
	}
	for _, r := range "©®™〰〽‼⁉ℹ↔↕↖↗↘↙↩↪⌨⏏Ⓜ▪▫▶◀◻◼◽◾⤴⤵㊗㊙" {
		out[r] = textEmoji
	}
}

// classAt returns the class and the length in bytes of the character at i.
func (s *Stream) classAt(i int) (class, int) {
	if c := s.text[i]; c < utf8.RuneSelf {
		return s.classes[c], 1
	}
	r, n := utf8.DecodeRuneInString(s.text[i:])
	switch {
	case r < tabled:
		return s.classes[r], n
	case unicode.Is(unicode.Han, r):
		return han, n
	case unicode.Is(unicode.M, r) || 0xe0001 <= r && r <= 0xe007f:
		return extend, n
	}
	return other, n
}

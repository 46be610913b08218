package analysis

import (
	"strings"
	"sync"
)

// fullKatakana has the letters of half width, U+FF65 to U+FF9F, in full width.
const fullKatakana = "・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン\u3099\u309a"

// width makes characters of full and half width common ones.
var width = sync.OnceValue(func() filter {
	full := []rune(fullKatakana)
	convert := inRunes(func(term []rune) []rune {
		out := term[:0]
		for _, r := range term {
			switch {
			case '！' <= r && r <= '～':
				r -= '！' - '!'
			case '･' <= r && r <= 'ﾟ':
				if n := len(out); n > 0 && r >= 'ﾞ' {
					if marked := withMark(out[n-1], r == 'ﾟ'); marked != 0 {
						out[n-1] = marked
						continue
					}
				}
				r = full[r-'･']
			}
			out = append(out, r)
		}
		return out
	})
	return func(term []byte) []byte {
		if isASCII(term) {
			return term
		}
		return convert(term)
	}
})

// withMark returns a letter of Katakana with a mark, the semi-voiced one or the voiced one; 0: there
// is none. Unicode has the voiced one behind the plain one, and the semi-voiced one behind that.
func withMark(r rune, semi bool) rune {
	switch {
	case strings.ContainsRune("ハヒフヘホ", r) && semi:
		return r + 2
	case semi:
		return 0
	case r == 'ウ':
		return 'ヴ'
	case strings.ContainsRune("カキクケコサシスセソタチツテトハヒフヘホヽ", r):
		return r + 1
	case strings.ContainsRune("ワヰヱヲ", r):
		return r + ('ヷ' - 'ワ')
	}
	return 0
}

package automaton

import (
	"strconv"
)

// maxDigits is how long the bounds of an interval may be.
const maxDigits = 18

// interval reads n-m> and returns the numbers from one to the other, in either order. With
// bounds of the same length they have so many digits; otherwise zeros may stand in front.
func (p *parser) interval() *syntax {
	low := p.digits()
	dash := p.take('-')
	high := p.digits()
	if low == "" || !dash || high == "" || !p.take('>') || len(low) > maxDigits || len(high) > maxDigits {
		p.fail("an interval of numbers of up to " + strconv.Itoa(maxDigits) + " digits expected at position " + strconv.Itoa(p.at))
		return &syntax{kind: nothing}
	}
	if len(low) == len(high) {
		return between(min(low, high), max(low, high))
	}
	a, _ := strconv.ParseUint(low, 10, 64) // they are digits, and not too many
	b, _ := strconv.ParseUint(high, 10, 64)
	a, b = min(a, b), max(a, b)
	numbers := &syntax{kind: union, parts: []*syntax{}}
	for least := uint64(0); least <= b; {
		most := max(10*least, 10) - 1 // of as many digits
		if from, to := max(a, least), min(b, most); from <= to {
			numbers.parts = append(numbers.parts, between(strconv.FormatUint(from, 10), strconv.FormatUint(to, 10)))
		}
		least = most + 1
	}
	zeros := &syntax{kind: repetition, max: -1, parts: []*syntax{exactly("0")}}
	return &syntax{kind: concatenation, parts: []*syntax{zeros, numbers}}
}

// between returns the numbers of so many digits from one to another.
func between(low, high string) *syntax {
	switch {
	case low == "":
		return &syntax{kind: emptyString}
	case low[0] == high[0]:
		return then(low[0], low[0], between(low[1:], high[1:]))
	}
	out := []*syntax{then(low[0], low[0], atLeast(low[1:])), then(high[0], high[0], atMost(high[1:]))}
	if low[0]+1 < high[0] {
		out = append(out, then(low[0]+1, high[0]-1, anyDigits(len(low)-1)))
	}
	return &syntax{kind: union, parts: out}
}

func atLeast(low string) *syntax {
	if low == "" {
		return &syntax{kind: emptyString}
	}
	out := []*syntax{then(low[0], low[0], atLeast(low[1:]))}
	if low[0] < '9' {
		out = append(out, then(low[0]+1, '9', anyDigits(len(low)-1)))
	}
	return &syntax{kind: union, parts: out}
}

func atMost(high string) *syntax {
	if high == "" {
		return &syntax{kind: emptyString}
	}
	out := []*syntax{then(high[0], high[0], atMost(high[1:]))}
	if high[0] > '0' {
		out = append(out, then('0', high[0]-1, anyDigits(len(high)-1)))
	}
	return &syntax{kind: union, parts: out}
}

// then returns a digit and what follows.
func then(from, to byte, rest *syntax) *syntax {
	digit := &syntax{kind: characters, spans: []span{{rune(from), rune(to)}}}
	return &syntax{kind: concatenation, parts: []*syntax{digit, rest}}
}

func anyDigits(n int) *syntax {
	digit := &syntax{kind: characters, spans: []span{{'0', '9'}}}
	return &syntax{kind: repetition, min: n, max: n, parts: []*syntax{digit}}
}

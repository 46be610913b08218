package query

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// What a pattern keeps in memory, in bytes, rounded up.
const (
	linearMemory = 1024 // a pattern in linear time, besides its program
	instMemory   = 64   // an instruction
	runeMemory   = 4    // a character, or an end of a range of them
	branchMemory = 6    // the same, with the instruction that it leads to

	fullMemory = 4096 // a pattern for the engine that looks around
	fullByte   = 192  // a byte of its text
	pageMemory = 2048 // a table of 256 characters, of those it can start with
	maxPages   = 50   // the engine looks at no more of them
)

// onePassSize bounds the programs that regexp rewrites so that they never go
// back. That is for what is anchored, and each instruction then has a table of
// what can come next.
const onePassSize = 1000

// takePattern takes what a pattern will keep, before it is compiled.
func (b *budget) takePattern(text string) error {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return b.take(fullWeight(text))
	}
	var w weight
	insts := w.add(tree) + 2 // the first fails, the last matches
	n := linearMemory + len(text) + instMemory*insts + runeMemory*w.runes
	if w.anchored {
		n += min(insts, onePassSize) * (instMemory + branchMemory*w.starts)
	}
	return b.take(n)
}

// fullWeight returns the memory that a pattern keeps in the engine with
// lookaround. That engine repeats by counting, so its program is no longer than
// the text.
func fullWeight(text string) int {
	pages := utf8.RuneCountInString(text) + strings.Count(text, `\`)
	for i := range len(text) {
		if text[i] < utf8.RuneSelf {
			pages--
		}
	}
	return fullMemory + fullByte*len(text) + pageMemory*min(pages, maxPages)
}

// weight is the size of a pattern's tree, besides its instructions.
type weight struct {
	runes    int  // characters and ends of ranges in it
	starts   int  // the same, of those that its parts can start with
	anchored bool // it may be
}

// add adds a tree, and returns a bound on the instructions of its program.
func (w *weight) add(re *syntax.Regexp) (insts int) {
	for _, sub := range re.Sub {
		insts += w.add(sub)
	}
	w.runes += len(re.Rune)
	switch re.Op {
	case syntax.OpLiteral:
		w.starts += 2
		if re.Flags&syntax.FoldCase != 0 {
			w.starts += 6 // no character has more than four cases
		}
		return max(len(re.Rune), 1)
	case syntax.OpCharClass:
		w.starts += len(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.starts += 4
	case syntax.OpBeginText:
		w.anchored = true
	case syntax.OpRepeat:
		copies := max(re.Min, re.Max, 1)
		return copies*insts + copies - re.Min + 2
	case syntax.OpAlternate:
		return insts + len(re.Sub)
	case syntax.OpConcat:
		return max(insts, 1)
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return insts + 2
	default:
	}
	return 1
}

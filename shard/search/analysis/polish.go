package analysis

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"io"
	"slices"
	"sync"
)

// polishFile is the table of Stempel, Andrzej Białecki's stemmer, that was learned from
// 20,000 words (getopt.org/stempel, as Lucene distributes it, Apache License 2.0).
//
//go:embed polish.tbl.gz
var polishFile []byte

// stempel is a table of commands that make the stem of a word: tries one after the other,
// each with those for what the ones before it have left.
type stempel struct {
	forward bool // from the beginning of the word
	tries   []trie
}

// trie leads along the letters of a word to a command.
type trie struct {
	forward  bool
	root     int32
	commands [][]rune // pairs of an operation and its parameter
	rows     []int32  // where the cells of each begin; and the end of the last one
	cells    []cell   // of a row by letter
}

type cell struct {
	letter        uint16
	command, next int32 // negative: none
}

// polishTable reads the table when it is first needed; nil, never, when it cannot.
var polishTable = sync.OnceValue(func() *stempel {
	z, err := gzip.NewReader(bytes.NewReader(polishFile))
	if err != nil {
		return nil
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil
	}
	r := &tableReader{data}
	r.text() // the method
	out := &stempel{forward: r.flag()}
	r.number() // how many letters the method advances
	for range r.number() {
		out.tries = append(out.tries, r.trie())
	}
	return out
})

// tableReader reads what Java's DataOutput wrote.
type tableReader struct{ rest []byte }

func (r *tableReader) next(n int) []byte {
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *tableReader) flag() bool { return r.next(1)[0] != 0 }

func (r *tableReader) number() int32 { return int32(binary.BigEndian.Uint32(r.next(4))) } //nolint:gosec // as it was written

func (r *tableReader) letter() uint16 { return binary.BigEndian.Uint16(r.next(2)) }

// text reads a string. Java's encoding is UTF-8 where no character is zero or above
// U+FFFF, and none is here.
func (r *tableReader) text() string { return string(r.next(int(r.letter()))) }

func (r *tableReader) trie() trie {
	t := trie{forward: r.flag(), root: r.number()}
	for range r.number() {
		t.commands = append(t.commands, []rune(r.text()))
	}
	for range r.number() {
		begin := len(t.cells)
		t.rows = append(t.rows, int32(begin)) //nolint:gosec // the table has two megabytes
		for range r.number() {
			c := cell{letter: r.letter(), command: r.number()}
			r.number() // how often the trainer came by
			c.next = r.number()
			r.number() // how many letters the trainer skipped
			t.cells = append(t.cells, c)
		}
		slices.SortFunc(t.cells[begin:], func(a, b cell) int { return int(a.letter) - int(b.letter) })
	}
	t.rows = append(t.rows, int32(len(t.cells))) //nolint:gosec // see above
	return t
}

// last returns the last command on the way of a word; nil: there is none.
func (t *trie) last(word []rune) (command []rune) {
	row := t.root
	for i := range word {
		r := word[i]
		if !t.forward {
			r = word[len(word)-1-i]
		}
		cells := t.cells[t.rows[row]:t.rows[row+1]]
		at, ok := slices.BinarySearchFunc(cells, r, func(c cell, r rune) int { return int(rune(c.letter) - r) })
		if !ok {
			return command
		}
		if c := cells[at].command; c >= 0 {
			command = t.commands[c]
		}
		if row = cells[at].next; row < 0 {
			return command
		}
	}
	return command
}

// command returns what makes the stem of a word: the commands of the tries, each of
// which sees what the commands before it do not touch.
func (s *stempel) command(word []rune) (all []rune) {
	var before []rune
	left, seen := word, word
	for i := range s.tries {
		command := s.tries[i].last(seen)
		if len(command) < 2 { // none, or the mark of the end
			return all
		}
		if n := len(before); n > 0 && (before[n-2] == '-' || before[n-2] == 'D') && before[n-2] == command[0] {
			return all
		}
		if command[0] == '-' {
			n := touched(before) + touched(command)
			if n > len(left) {
				return all
			}
			if s.forward {
				left = left[n:]
			} else {
				left = left[:len(left)-n]
			}
		}
		all = append(all, command...)
		if before = command; len(left) > 0 {
			seen = left
		}
	}
	return all
}

// touched returns how many letters of a word a command passes, deletes or replaces.
func touched(command []rune) int {
	n := 0
	for i := 0; i+1 < len(command); i += 2 {
		switch command[i] {
		case '-', 'D':
			n += int(command[i+1]-'a') + 1
		case 'R':
			n++
		}
	}
	return n
}

// stem makes the stem of a word: from its end on, letters are passed, replaced, deleted
// and inserted. What leads out of the word ends it.
func (s *stempel) stem(word []rune) []rune {
	command := s.command(word)
	at := len(word) - 1
	for i := 0; i+1 < len(command); i += 2 {
		param := command[i+1]
		count := int(param-'a') + 1
		switch command[i] {
		case '-':
			at -= count - 1
		case 'R':
			if at < 0 || at >= len(word) {
				return word
			}
			word[at] = param
		case 'D':
			end := at + 1
			at -= count - 1
			if at < 0 || at >= len(word) {
				return word
			}
			word = slices.Delete(word, at, end)
		case 'I':
			at++
			if at < 0 || at > len(word) {
				return word
			}
			word = slices.Insert(word, at, param)
		}
		at--
	}
	return word
}

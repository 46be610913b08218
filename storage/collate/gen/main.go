// Command gen packs what ICU knows of its root collation into tables.bin.gz.
//
// The three C programs in icu print ICU's data; they need ICU's headers
// (Debian: libicu-dev), and the version of ICU is the version of the collation:
//
//	for p in elements combining compressible; do cc -O2 -o /tmp/$p icu/$p.c -licuuc -licui18n && /tmp/$p >/tmp/$p.txt; done
//	go run . /tmp/elements.txt /tmp/combining.txt /tmp/compressible.txt ../tables.bin.gz
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// These must be those of package collate.
const (
	blockBits  = 6
	contextual = 1 << 31
	unassigned = 0xffffffff
	commonBoth = 0x05000500
)

// rule is a contraction, or a prefix rule of two characters.
type rule struct {
	runes []rune
	ces   []uint64
}

// collation is the content of the dump.
type collation struct {
	own          map[rune][]uint64
	contractions []rule
	prefixes     []rule
	special      map[rune]bool // first of a contraction, or changed by a prefix
	starts       map[rune]bool // first of a contraction
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: gen ELEMENTS COMBINING COMPRESSIBLE OUT")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	c, err := readElements(args[0])
	if err != nil {
		return err
	}
	var out bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&out, binary.LittleEndian, v); err != nil {
			panic(err) // a bytes.Buffer takes everything, and all values have a fixed size
		}
	}
	c.put(put)
	if err := putNumbers(put, args[1], 10, func(f []int64) []uint32 {
		return []uint32{uint32(f[0]), uint32(f[1]<<8 | f[2])}
	}); err != nil {
		return err
	}
	text, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	leads := strings.Fields(string(text))
	put(uint32(len(leads)))
	for _, s := range leads {
		v, err := strconv.ParseUint(s, 16, 8)
		if err != nil {
			return err
		}
		put(uint32(v))
	}
	var zipped bytes.Buffer
	zw, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := zw.Write(out.Bytes()); err != nil {
		return err
	}
	if err := zw.Close(); err != nil {
		return err
	}
	return os.WriteFile(args[3], zipped.Bytes(), 0o644)
}

func elementsOf(fields []string) ([]uint64, error) {
	out := []uint64{}
	for _, s := range fields {
		v, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func readElements(name string) (*collation, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	c := &collation{own: map[rune][]uint64{}, special: map[rune]bool{}, starts: map[rune]bool{}}
	known := map[string]bool{}
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		fields := strings.Fields(scan.Text())
		switch fields[0] {
		case "C":
			cp, err := strconv.ParseUint(fields[1], 16, 32)
			if err != nil {
				return nil, err
			}
			if c.own[rune(cp)], err = elementsOf(fields[2:]); err != nil {
				return nil, err
			}
		case "K", "P":
			if err := c.addRule(fields, known); err != nil {
				return nil, err
			}
		}
	}
	return c, scan.Err()
}

// addRule takes a line "K runes : elements" (contraction) or "P …" (the same,
// with the prefix rules among them).
func (c *collation) addRule(fields []string, known map[string]bool) error {
	var rs []rune
	i := 1
	for ; fields[i] != ":"; i++ {
		cp, err := strconv.ParseUint(fields[i], 16, 32)
		if err != nil {
			return err
		}
		rs = append(rs, rune(cp))
	}
	ces, err := elementsOf(fields[i+1:])
	if err != nil {
		return err
	}
	switch {
	case fields[0] == "K":
		known[string(rs)] = true
		c.contractions = append(c.contractions, rule{rs, ces})
		c.special[rs[0]], c.starts[rs[0]] = true, true
	case !known[string(rs)]:
		c.prefixes = append(c.prefixes, rule{rs, ces[len(c.own[rs[0]]):]})
		c.special[rs[1]] = true
	}
	return nil
}

// computed is the element of a character that ICU knows nothing of.
func computed(r rune) uint64 {
	x := uint32(r) + 1
	p := 2 + (x%18)*14
	x /= 18
	p |= (2 + (x % 254)) << 8
	x /= 254
	p |= (4 + (x % 251)) << 16
	p |= 0xfe << 24
	return uint64(p)<<32 | commonBoth
}

func (c *collation) put(put func(any)) {
	var index []uint16
	var blocks []uint32
	p, seen := pool{at: map[string]uint32{}}, map[string]uint16{}
	for b := range 0x110000 >> blockBits {
		var block [1 << blockBits]uint32
		for i := range block {
			block[i] = c.entry(rune(b<<blockBits+i), &p)
		}
		key := fmt.Sprint(block)
		nr, ok := seen[key]
		if !ok {
			nr = uint16(len(blocks) >> blockBits)
			blocks = append(blocks, block[:]...)
			seen[key] = nr
		}
		index = append(index, nr)
	}
	put(uint32(len(index)))
	put(uint32(len(blocks)))
	put(index)
	put(blocks)
	putElements(put, p.ces)
	put(uint32(len(c.contractions)))
	for _, k := range c.contractions {
		put(uint32(len(k.runes)))
		put(k.runes)
		putElements(put, k.ces)
	}
	put(uint32(len(c.prefixes)))
	for _, p := range c.prefixes {
		put(p.runes)
		putElements(put, p.ces)
	}
}

// pool holds the elements of all characters; the same sequence stands in it
// once.
type pool struct {
	ces []uint64
	at  map[string]uint32 // where a sequence begins, by its text
}

func (p *pool) add(ces []uint64) uint32 {
	key := fmt.Sprint(ces)
	at, ok := p.at[key]
	if !ok {
		at = uint32(len(p.ces))
		p.ces = append(p.ces, ces...)
		p.at[key] = at
	}
	return at
}

// entry returns what a block says of a character, as package collate explains.
func (c *collation) entry(r rune, p *pool) uint32 {
	own := c.own[r]
	switch {
	case r >= 0xd800 && r < 0xe000:
		return unassigned
	case r >= 0xac00 && r <= 0xd7a3: // composed of its Jamo
		return 0
	case len(own) == 1 && own[0] == computed(r) && !c.starts[r]:
		return unassigned
	case len(own) == 0 && c.starts[r]:
		return contextual
	case len(own) == 0:
		return 0
	}
	e := p.add(own)<<5 | uint32(len(own))
	if c.special[r] {
		e |= contextual
	}
	return e
}

func putElements(put func(any), ces []uint64) {
	put(uint32(len(ces)))
	put(ces)
}

// putNumbers writes the lines of a file of numbers, the first hexadecimal.
func putNumbers(put func(any), name string, base int, pack func([]int64) []uint32) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	put(uint32(len(lines)))
	for _, line := range lines {
		var numbers []int64
		for i, s := range strings.Fields(line) {
			b := base
			if i == 0 {
				b = 16
			}
			v, err := strconv.ParseInt(s, b, 64)
			if err != nil {
				return err
			}
			numbers = append(numbers, v)
		}
		put(pack(numbers))
	}
	return nil
}

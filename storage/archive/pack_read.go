package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"divan/storage/bitflip"
)

// Pack is a pack that is read.
type Pack struct {
	r       io.ReaderAt
	last    span
	entries uint64
}

// OpenPack reads the footer of a pack of so many plain bytes.
func OpenPack(r io.ReaderAt, size int64) (*Pack, error) {
	if size < int64(len(packMagic)+footerSize) {
		return nil, damaged("a pack is cut")
	}
	magic := make([]byte, len(packMagic))
	if err := readAt(r, magic, 0); err != nil {
		return nil, err
	}
	footer := make([]byte, footerSize)
	end := uint64(size) - uint64(footerSize)
	if err := readAt(r, footer, end); err != nil {
		return nil, err
	}
	sumAt := footerSize - len(packEnd) - 4
	if string(magic) != packMagic || string(footer[sumAt+4:]) != packEnd ||
		bitflip.Sum(footer[:sumAt]) != binary.BigEndian.Uint32(footer[sumAt:]) {
		return nil, damaged("a pack is cut, or is none")
	}
	p := &Pack{r: r, entries: binary.BigEndian.Uint64(footer[12:])}
	p.last = span{binary.BigEndian.Uint64(footer), uint64(binary.BigEndian.Uint32(footer[8:]))}
	if p.last.offset > end || p.last.end() != end {
		return nil, damaged("the footer of a pack makes no sense")
	}
	return p, nil
}

// readAt fills b.
func readAt(r io.ReaderAt, b []byte, offset uint64) error {
	n, err := r.ReadAt(b, int64(offset))
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return damaged("a pack is cut")
	}
	return fmt.Errorf("read a pack: %w", err)
}

// Len is the number of entries.
func (p *Pack) Len() uint64 { return p.entries }

// All yields the entries by blocks of the index, the last block first; the offsets of a block
// ascend. An error ends it, and what came before it may lack some.
func (p *Pack) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		left, at := p.entries, p.last
		for at.length > 0 {
			entries, before, err := p.block(at)
			if err == nil && uint64(len(entries)) > left {
				err = damaged("an index has too many entries")
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			left -= uint64(len(entries))
			at = before
		}
		if left > 0 {
			yield(Entry{}, damaged("an index lacks entries"))
		}
	}
}

// block reads a block of the index. The one before it lies before it, so there is an end.
func (p *Pack) block(at span) (entries []Entry, before span, err error) {
	if at.length < 4 || at.length > uint64(maxBlock) {
		return nil, span{}, damaged("a block of an index has an absurd length")
	}
	text := make([]byte, at.length)
	if err := readAt(p.r, text, at.offset); err != nil {
		return nil, span{}, err
	}
	body := text[:len(text)-4]
	if bitflip.Sum(body) != binary.BigEndian.Uint32(text[len(body):]) {
		return nil, span{}, damaged("the sum of an index is another one")
	}
	c := cursor{b: body}
	version := c.byte()
	before = span{c.uvarint(), c.uvarint()}
	rows := c.uvarint()
	fits := before.offset <= at.offset && before.length <= at.offset && before.end() <= at.offset && (before.length > 0 || before.offset == 0)
	if c.bad || version != valueVersion || !fits || rows == 0 || rows > blockRows || rows > uint64(len(c.b)/rowFixed) {
		return nil, span{}, damaged("an index does not decode")
	}
	next := before.end()
	entries = make([]Entry, rows)
	for i := range entries {
		e := &entries[i]
		e.Label = Label{Kind: Kind(c.byte()), Database: c.uuid(), Range: c.rng(), Seq: c.uvarint()}
		e.Extent = Extent{Offset: next, Length: c.uvarint(), Sum: c.sum()}
		if c.bad || e.Kind == 0 || !e.Range.valid() || e.Length > at.offset-next {
			return nil, span{}, damaged("an index does not decode")
		}
		next += e.Length
	}
	if len(c.b) > 0 || next != at.offset {
		return nil, span{}, damaged("an index does not fit its entries")
	}
	return entries, before, nil
}

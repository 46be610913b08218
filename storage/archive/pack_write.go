package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"

	"divan/storage/bitflip"
)

const (
	packMagic = "DIVANPK1"
	packEnd   = "DIVANEND"
	// blockRows is how many entries the index has in a block. Blocks lie among the entries, so
	// that neither side holds more of an index than a block.
	blockRows = 512
	rowFixed  = 1 + len(UUID{}) + 4 + 4 + len(Sum{})
	// maxBlock bounds a block: its head, rows and sum.
	maxBlock   = 1 + 3*binary.MaxVarintLen64 + blockRows*(rowFixed+2*binary.MaxVarintLen64) + 4
	footerSize = 8 + 4 + 8 + 4 + len(packEnd)
)

// span is where a block lies; the zero span is none.
type span struct{ offset, length uint64 }

func (s span) end() uint64 {
	if s.length == 0 {
		return uint64(len(packMagic))
	}
	return s.offset + s.length
}

// PackWriter writes a pack: Begin, Write and End for each entry, then Close. After an error the
// pack is of no use. Whether it is left on the target is up to the caller: without a page that
// refers to it, it is garbage.
type PackWriter struct {
	w       io.Writer
	err     error // the first
	size    uint64
	begun   bool // an entry
	entry   Entry
	hash    hash.Hash // of the entry
	rows    []byte    // of the block that comes next
	row     int
	last    span
	entries uint64
}

// NewPackWriter returns a writer of a pack into w. Pieces go to w as they come.
func NewPackWriter(w io.Writer) *PackWriter {
	p := &PackWriter{w: w, hash: sha256.New()}
	p.put([]byte(packMagic))
	return p
}

// Size is how many bytes have been written.
func (p *PackWriter) Size() uint64 { return p.size }

func (p *PackWriter) put(b []byte) int {
	if p.err != nil {
		return 0
	}
	n, err := p.w.Write(b)
	p.size += uint64(n)
	p.err = err
	return n
}

// Begin begins an entry.
func (p *PackWriter) Begin(l Label) error {
	switch {
	case p.err != nil:
	case p.begun:
		p.err = errors.New("write a pack: an entry has not ended")
	case l.Kind == 0 || !l.Range.valid():
		p.err = errors.New("write a pack: the label of an entry makes no sense")
	}
	p.begun = true
	p.entry = Entry{Label: l, Extent: Extent{Offset: p.size}}
	p.hash.Reset()
	return p.err
}

// Write implements io.Writer: it writes bytes of the entry.
func (p *PackWriter) Write(b []byte) (int, error) {
	if !p.begun && p.err == nil {
		p.err = errors.New("write a pack: no entry has begun")
	}
	n := p.put(b)
	_, _ = p.hash.Write(b[:n]) // never fails
	return n, p.err
}

// End ends the entry and returns it.
func (p *PackWriter) End() (Entry, error) {
	if !p.begun && p.err == nil {
		p.err = errors.New("write a pack: no entry has begun")
	}
	if p.err != nil {
		return Entry{}, p.err
	}
	p.begun = false
	p.entry.Length = p.size - p.entry.Offset
	p.hash.Sum(p.entry.Sum[:0])
	p.rows = appendRow(p.rows, &p.entry)
	p.entries++
	if p.row++; p.row == blockRows {
		p.putBlock()
	}
	return p.entry, p.err
}

func appendRow(dst []byte, e *Entry) []byte {
	dst = append(dst, byte(e.Kind))
	dst = append(dst, e.Database[:]...)
	dst = appendRange(dst, e.Range)
	dst = binary.AppendUvarint(dst, e.Seq)
	dst = binary.AppendUvarint(dst, e.Length)
	return append(dst, e.Sum[:]...)
}

// putBlock writes a block of the index. It lies behind its entries and before all others, so
// offsets follow from lengths, and each byte of a pack is under some sum.
func (p *PackWriter) putBlock() {
	block := []byte{valueVersion}
	for _, v := range [...]uint64{p.last.offset, p.last.length, uint64(p.row)} {
		block = binary.AppendUvarint(block, v)
	}
	block = append(block, p.rows...)
	block = binary.BigEndian.AppendUint32(block, bitflip.Sum(block))
	p.last = span{p.size, uint64(len(block))}
	p.put(block)
	p.rows, p.row = p.rows[:0], 0
}

// Close writes what is left of the index, and the footer.
func (p *PackWriter) Close() error {
	if p.begun && p.err == nil {
		p.err = errors.New("write a pack: an entry has not ended")
	}
	if p.row > 0 && p.err == nil {
		p.putBlock()
	}
	footer := binary.BigEndian.AppendUint64(nil, p.last.offset)
	footer = binary.BigEndian.AppendUint32(footer, uint32(p.last.length))
	footer = binary.BigEndian.AppendUint64(footer, p.entries)
	footer = binary.BigEndian.AppendUint32(footer, bitflip.Sum(footer))
	p.put(append(footer, packEnd...))
	return p.err
}

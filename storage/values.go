package storage

import (
	"encoding/binary"

	"divan/storage/doc"
	"divan/storage/fault"
)

// This file holds the stored values that storage itself defines; records and
// revisions are encoded by package doc. FORMAT.md is its table.

const valueVersion = 0x10 // upper four bits of the first byte; the lower ones are flags

// corrupt is the error for stored bytes that do not decode.
func corrupt(what string) error {
	return fault.New(fault.Corruption, "stored "+what+" does not decode")
}

// cursor reads varints and strings; bad stays set after the first failure.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) byte() byte {
	if v := c.take(1); v != nil {
		return v[0]
	}
	return 0
}

// Counters are the totals of a store as of one batch.
type Counters struct {
	Live, Deleted    uint64 // documents by the state of their winner
	Seq              uint64 // last update sequence
	PurgeSeq         uint64 // last purge sequence
	PurgeTrimmed     uint64 // purge entries up to this sequence are gone
	External, Active int64  // bytes, sums over all documents as their records have them
}

// plus returns the counters after a batch that adds d. Sequences only grow.
func (c Counters) plus(d *Counters) Counters {
	return Counters{
		Live: c.Live + d.Live, Deleted: c.Deleted + d.Deleted, // may wrap around and back
		Seq:          max(c.Seq, d.Seq),
		PurgeSeq:     max(c.PurgeSeq, d.PurgeSeq),
		PurgeTrimmed: max(c.PurgeTrimmed, d.PurgeTrimmed),
		External:     c.External + d.External, Active: c.Active + d.Active,
	}
}

// appendCounters writes the meta entry: version, batch number, the fields in
// order.
func appendCounters(dst []byte, batch uint64, c *Counters) []byte {
	dst = append(dst, valueVersion)
	dst = binary.AppendUvarint(dst, batch)
	for _, v := range [...]uint64{c.Live, c.Deleted, c.Seq, c.PurgeSeq, c.PurgeTrimmed} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = binary.AppendVarint(dst, c.External)
	return binary.AppendVarint(dst, c.Active)
}

func decodeCounters(b []byte) (batch uint64, c Counters, err error) {
	r := cursor{b: b}
	version := r.byte()
	batch = r.uvarint()
	for _, p := range [...]*uint64{&c.Live, &c.Deleted, &c.Seq, &c.PurgeSeq, &c.PurgeTrimmed} {
		*p = r.uvarint()
	}
	c.External, c.Active = r.varint(), r.varint()
	if r.bad || version != valueVersion || len(r.b) != 0 {
		return 0, Counters{}, corrupt("counters")
	}
	return batch, c, nil
}

// Leaf is one leaf revision in a sequence entry.
type Leaf struct {
	Rev     doc.Rev
	Deleted bool
}

// Change is one entry of the sequence: the newest edit of a document.
type Change struct {
	Seq     uint64
	ID      []byte
	Deleted bool   // the winner is a tombstone
	Leaves  []Leaf // winner first
}

// flags of a sequence entry and of its leaves
const (
	changeDeleted = 0x01
	leafDeleted   = 0x01
)

// appendChange writes a sequence entry: version and flags, id, then the leaves
// with the winner first, each flags, position and id.
func appendChange(dst []byte, rec *doc.Record) []byte {
	head := byte(valueVersion)
	if rec.Deleted {
		head |= changeDeleted
	}
	dst = append(dst, head)
	dst = binary.AppendUvarint(dst, uint64(len(rec.ID)))
	dst = append(dst, rec.ID...)
	leaves := rec.Tree.Leaves()
	dst = binary.AppendUvarint(dst, uint64(len(leaves)))
	for i := range leaves {
		var flags byte
		if leaves[i].Deleted {
			flags = leafDeleted
		}
		dst = append(dst, flags)
		dst = appendRev(dst, leaves[i].Rev)
	}
	return dst
}

// decodeChange reads a sequence entry into c, reusing c.Leaves. c.ID aliases b.
func decodeChange(b []byte, c *Change) error {
	r := cursor{b: b}
	head := r.byte()
	c.Deleted = head&changeDeleted != 0
	c.ID = r.take(r.uvarint())
	n := r.uvarint()
	if r.bad || head&^changeDeleted != valueVersion || n > uint64(len(r.b)) {
		return corrupt("sequence entry")
	}
	c.Leaves = c.Leaves[:0]
	for range n {
		deleted := r.byte()&leafDeleted != 0
		c.Leaves = append(c.Leaves, Leaf{Rev: r.rev(), Deleted: deleted})
	}
	if r.bad || len(r.b) != 0 {
		return corrupt("sequence entry")
	}
	return nil
}

func appendRev(dst []byte, rev doc.Rev) []byte {
	dst = binary.AppendUvarint(dst, rev.Pos)
	dst = binary.AppendUvarint(dst, uint64(len(rev.ID)))
	return append(dst, rev.ID...)
}

func (c *cursor) rev() doc.Rev {
	pos := c.uvarint()
	return doc.Rev{Pos: pos, ID: string(c.take(c.uvarint()))}
}

// Purge is one entry of the purge log.
type Purge struct {
	Seq  uint64   // purge sequence, not an update sequence
	UUID [16]byte // names the request, so that a repeated one is known
	ID   string
	Revs []doc.Rev
	// Paths is what is known of the revisions that were removed: each with its
	// ancestors, as far as some copy knew them. A later entry of the same UUID
	// has all that an earlier one has.
	Paths []doc.Path
}

// purgePaths in the version byte of a purge tells that paths follow.
const purgePaths = 0x01

func appendPurge(dst []byte, p *Purge) []byte {
	head := byte(valueVersion)
	if len(p.Paths) > 0 {
		head |= purgePaths
	}
	dst = append(dst, head)
	dst = append(dst, p.UUID[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(p.ID)))
	dst = append(dst, p.ID...)
	dst = binary.AppendUvarint(dst, uint64(len(p.Revs)))
	for _, rev := range p.Revs {
		dst = appendRev(dst, rev)
	}
	if len(p.Paths) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.Paths)))
	for _, path := range p.Paths {
		dst = binary.AppendUvarint(dst, path.Start)
		dst = binary.AppendUvarint(dst, uint64(len(path.IDs)))
		for _, id := range path.IDs {
			dst = binary.AppendUvarint(dst, uint64(len(id)))
			dst = append(dst, id...)
		}
	}
	return dst
}

func decodePurge(seq uint64, b []byte) (Purge, error) {
	r := cursor{b: b}
	p := Purge{Seq: seq}
	head := r.byte()
	copy(p.UUID[:], r.take(uint64(len(p.UUID))))
	p.ID = string(r.take(r.uvarint()))
	n := r.uvarint()
	if r.bad || head&^purgePaths != valueVersion || n > uint64(len(r.b)) {
		return Purge{}, corrupt("purge")
	}
	p.Revs = make([]doc.Rev, 0, n)
	for range n {
		p.Revs = append(p.Revs, r.rev())
	}
	if head&purgePaths != 0 {
		p.Paths = r.paths()
	}
	if r.bad || len(r.b) != 0 {
		return Purge{}, corrupt("purge")
	}
	return p, nil
}

// paths reads the paths of a purge; at least one, or the value is bad.
func (c *cursor) paths() []doc.Path {
	n := c.uvarint()
	if c.bad || n == 0 || n > uint64(len(c.b)) {
		c.bad = true
		return nil
	}
	paths := make([]doc.Path, n)
	for i := range paths {
		paths[i].Start = c.uvarint()
		count := c.uvarint()
		if c.bad || count > uint64(len(c.b)) {
			c.bad = true
			return nil
		}
		paths[i].IDs = make([]string, count)
		for k := range paths[i].IDs {
			paths[i].IDs[k] = string(c.take(c.uvarint()))
		}
	}
	return paths
}

// Sums are totals over a range of documents. External and Active are bytes;
// they are kept only by a store with CreateOptions.Partitioned.
type Sums struct {
	Live, Deleted, External, Active int64
}

func (s *Sums) add(o Sums) {
	s.Live += o.Live
	s.Deleted += o.Deleted
	s.External += o.External
	s.Active += o.Active
}

func (s Sums) neg() Sums { return Sums{-s.Live, -s.Deleted, -s.External, -s.Active} }

func (s Sums) zero() bool { return s == Sums{} }

// appendSums writes the value of an aggregate: signed varints, trailing zeros
// left out.
func appendSums(dst []byte, s Sums) []byte {
	v := [...]int64{s.Live, s.Deleted, s.External, s.Active}
	n := len(v)
	for n > 0 && v[n-1] == 0 {
		n--
	}
	for _, x := range v[:n] {
		dst = binary.AppendVarint(dst, x)
	}
	return dst
}

func decodeSums(b []byte) (Sums, error) {
	var s Sums
	r := cursor{b: b}
	for _, p := range [...]*int64{&s.Live, &s.Deleted, &s.External, &s.Active} {
		if len(r.b) == 0 {
			break
		}
		*p = r.varint()
	}
	if r.bad || len(r.b) != 0 {
		return Sums{}, corrupt("aggregate")
	}
	return s, nil
}

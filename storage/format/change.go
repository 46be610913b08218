package format

import (
	"encoding/binary"

	"divan/storage/doc"
)

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

// AppendChange writes a sequence entry: version and flags, id, then the leaves
// with the winner first, each flags, position and id.
func AppendChange(dst []byte, rec *doc.Record) []byte {
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

// DecodeChange reads a sequence entry into c, reusing c.Leaves. c.ID aliases b.
func DecodeChange(b []byte, c *Change) error {
	r := cursor{b: b}
	head := r.byte()
	c.Deleted = head&changeDeleted != 0
	c.ID = r.take(r.uvarint())
	n := r.uvarint()
	if r.bad || head&^changeDeleted != valueVersion || n > uint64(len(r.b)) {
		return Corrupt("sequence entry")
	}
	c.Leaves = c.Leaves[:0]
	for range n {
		deleted := r.byte()&leafDeleted != 0
		c.Leaves = append(c.Leaves, Leaf{Rev: r.rev(), Deleted: deleted})
	}
	if r.bad || len(r.b) != 0 {
		return Corrupt("sequence entry")
	}
	return nil
}

// ChangeID returns the id that a sequence entry names. It aliases b.
func ChangeID(b []byte) ([]byte, error) {
	r := cursor{b: b}
	head := r.byte()
	id := r.take(r.uvarint())
	if r.bad || head&^changeDeleted != valueVersion {
		return nil, Corrupt("sequence entry")
	}
	return id, nil
}

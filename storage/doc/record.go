package doc

import (
	"encoding/binary"
)

// InlineLimit is the size in bytes of the largest encoded revision that is
// kept inside the record of its document: a body of about 1 KB and its
// overhead, so that reading a usual document is one lookup.
const InlineLimit = 1400

// Record is everything the documents keyspace holds for one document.
type Record struct {
	ID      string
	Seq     uint64 // update sequence of the last change
	Winner  Rev
	Deleted bool // the winner is a tombstone, so every leaf is
	Tree    Tree
	Below   Below // which revisions are in blocks
	// Partial: Tree does not have them, and is one path that begins at Below.Tip.
	Partial bool
	// Inline is the encoded Revision of the winner, nil when that is larger
	// than InlineLimit or not stored.
	Inline []byte
	// External and Active are the sizes in bytes of all leaves: of their JSON
	// text and attachments, and of what is stored for them.
	External, Active int64
}

// Head is the part of a Record that serves reads of the winner. Decoding it
// does not touch the tree.
type Head struct {
	Seq              uint64
	Winner           Rev
	Deleted          bool
	External, Active int64
	Inline           []byte // aliases the decoded bytes; nil when there is none
}

// The first byte of an encoded record: version and flags.
const (
	recordVersion = 0x10
	recordDeleted = 0x01
	recordInline  = 0x02
	recordLongID  = 0x04 // the winner's id has not 16 bytes: uvarint length first
	recordBlocks  = 0x08 // older revisions are in blocks
)

// AppendBinary appends the stored form; the id is not part of it (it is the
// key). The tree comes last, so that DecodeHead never reads it:
//
//	byte    version and flags
//	uvarint seq; uvarint winner position; winner id
//	uvarint external, active
//	uvarint length and bytes of Inline, when flagged
//	uvarint Below.Floor, when flagged
//	tree, from Below.Tip on when flagged
func (r *Record) AppendBinary(dst []byte) []byte {
	at := len(dst)
	dst = r.appendHead(dst, r.Inline != nil)
	if r.Inline != nil {
		dst = binary.AppendUvarint(dst, uint64(len(r.Inline)))
		dst = append(dst, r.Inline...)
	}
	if r.Below == (Below{}) {
		return r.Tree.appendBinary(dst)
	}
	dst[at] |= recordBlocks
	dst = binary.AppendUvarint(dst, r.Below.Floor)
	return r.Tree.appendPart(dst, int(r.Below.Tip-r.Tree.nodes[0].pos), len(r.Tree.nodes))
}

// AppendHead appends the part of the stored form that DecodeHead reads, without
// Inline.
func (r *Record) AppendHead(dst []byte) []byte { return r.appendHead(dst, false) }

func (r *Record) appendHead(dst []byte, inline bool) []byte {
	head := byte(recordVersion)
	if r.Deleted {
		head |= recordDeleted
	}
	if inline {
		head |= recordInline
	}
	if len(r.Winner.ID) != rawIDLen {
		head |= recordLongID
	}
	dst = append(dst, head)
	dst = binary.AppendUvarint(dst, r.Seq)
	dst = binary.AppendUvarint(dst, r.Winner.Pos)
	if head&recordLongID != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(r.Winner.ID)))
	}
	dst = append(dst, r.Winner.ID...)
	dst = binary.AppendUvarint(dst, uint64(r.External))
	return binary.AppendUvarint(dst, uint64(r.Active))
}

// DecodeHead reads the front of an encoded record into h, overwriting every
// field. h.Inline aliases b. The error is fault.Corruption; h is then zero.
func DecodeHead(b []byte, h *Head) error {
	r := reader{b: b}
	r.head(h)
	if r.bad {
		*h = Head{}
		return damaged("document record")
	}
	return nil
}

// skipHead goes to the tree.
func (r *reader) skipHead() {
	flags := r.byte()
	r.uvarint()
	r.uvarint()
	n := uint64(rawIDLen)
	if flags&recordLongID != 0 {
		n = r.uvarint()
	}
	r.take(n)
	r.uvarint()
	r.uvarint()
	if flags&recordInline != 0 {
		r.bytes()
	}
	if flags&recordBlocks != 0 {
		r.uvarint()
	}
}

func (r *reader) head(h *Head) {
	flags := r.byte()
	if flags&versionMask != recordVersion {
		r.fail()
		return
	}
	h.Deleted = flags&recordDeleted != 0
	h.Seq = r.uvarint()
	h.Winner.Pos = r.uvarint()
	n := uint64(rawIDLen)
	if flags&recordLongID != 0 {
		n = r.uvarint()
	}
	id := r.take(n)
	// A caller that decodes row after row often meets the same short ids
	// again (1-…), and then keeps the string it has.
	if string(id) != h.Winner.ID {
		h.Winner.ID = string(id)
	}
	h.External = int64(r.uvarint())
	h.Active = int64(r.uvarint())
	h.Inline = nil
	if flags&recordInline != 0 {
		h.Inline = r.bytes()
	}
}

// Branched reports whether the tree of an encoded record has more than one leaf:
// only then has the document lost revisions to name. It allocates nothing.
func Branched(record []byte) bool {
	r := reader{b: record}
	r.skipHead()
	return r.branched()
}

// HasBlocks reports whether older revisions of an encoded record are in blocks.
func HasBlocks(record []byte) bool { return len(record) > 0 && record[0]&recordBlocks != 0 }

// StoredOutside reports whether a revision of an encoded record has its content in
// the bodies keyspace. The record has no blocks. It allocates nothing.
func StoredOutside(record []byte) bool {
	if len(record) == 0 {
		return false
	}
	r := reader{b: record}
	r.skipHead()
	n := r.stored()
	if record[0]&recordInline != 0 {
		n--
	}
	return n > 0
}

// DecodeRecord reads the stored form of the document id: Partial when revisions are in
// blocks. Inline aliases b; the tree and the winner's name do not. The error is
// fault.Corruption.
func DecodeRecord(id string, b []byte) (Record, error) {
	r := reader{b: b}
	var h Head
	r.head(&h)
	if r.bad {
		return Record{}, damaged("document record")
	}
	rec := Record{
		ID: id, Seq: h.Seq, Winner: h.Winner, Deleted: h.Deleted, Inline: h.Inline,
		External: h.External, Active: h.Active,
	}
	if HasBlocks(b) {
		rec.Partial, rec.Below.Floor = true, r.uvarint()
	}
	r.tree(&rec.Tree)
	if r.bad || len(r.b) != 0 || rec.Partial && !rec.setTip() {
		return Record{}, damaged("document record")
	}
	return rec, nil
}

// Package keyspace builds and takes apart the keys of a store, and is the only place that
// does. FORMAT.md is its table; a golden test of package storage holds both together.
package keyspace

import (
	"bytes"
	"encoding/binary"

	"divan/storage/doc"
)

// Every key starts with one byte for the keyspace and one reserved byte, the
// bucket, which is zero: a later version may cut a store by buckets without
// rewriting this one.
const (
	Attachments = 'a' // id, content key, chunk → stored bytes
	Bodies      = 'b' // id, revision → revision
	Docs        = 'd' // id → record
	Aggregates  = 'g' // kind, level, border → sums
	Heads       = 'h' // id → front of the record, without the body
	Local       = 'l' // id → text
	Meta        = 'm' // name → value
	Purges      = 'p' // purge sequence → purge
	History     = 'r' // id, number of the block → older revisions of a long history
	Sequence    = 's' // update sequence → change
	Uploads     = 'u' // id, content key → empty; content that perhaps no revision refers to yet
)

// Bucket is the second byte of every key.
const Bucket = 0

// Kinds and levels of aggregates, the third and fourth byte of their keys.
const (
	AggDocs  = 'd' // border: a document id
	AggSeqs  = 's' // border: an update sequence, 8 bytes big-endian
	LevelLow = 1   // a block of about 32 documents, or of 256 sequences
	LevelTop = 2   // a block of about 2048 documents, or of 65536 sequences
)

// Names of meta entries.
const (
	MetaCounters = "counters" // the totals of the store
	MetaOrigins  = "origins"  // the stores that it continues; none: there is no entry
	MetaSince    = "since"    // only in a dump: where the one has ended that it comes after
)

// PrefixLen is the length of keyspace and bucket.
const PrefixLen = 2

// Start is the smallest key of a keyspace.
func Start(space byte) []byte { return []byte{space, Bucket} }

// End is the first key beyond a keyspace.
func End(space byte) []byte { return []byte{space, Bucket + 1} }

// AppendSpace appends keyspace and bucket.
func AppendSpace(dst []byte, space byte) []byte { return append(dst, space, Bucket) }

// AppendDoc appends the key of a record.
func AppendDoc(dst []byte, id string) []byte {
	return append(AppendSpace(dst, Docs), id...)
}

// AppendHead appends the key of a head.
func AppendHead(dst []byte, id string) []byte {
	return append(AppendSpace(dst, Heads), id...)
}

// AppendLocal appends the key of a local document.
func AppendLocal(dst []byte, id string) []byte {
	return append(AppendSpace(dst, Local), id...)
}

// AppendSeq appends the key of a change.
func AppendSeq(dst []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendSpace(dst, Sequence), seq)
}

// AppendPurge appends the key of an entry of the purge log.
func AppendPurge(dst []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendSpace(dst, Purges), seq)
}

// AppendMeta appends the key of a meta entry.
func AppendMeta(dst []byte, name string) []byte {
	return append(AppendSpace(dst, Meta), name...)
}

// AppendAgg appends the key of the sums of a block.
func AppendAgg(dst []byte, kind, level byte, border string) []byte {
	return append(append(AppendSpace(dst, Aggregates), kind, level), border...)
}

// AggBorder is the border in an aggregate's key.
func AggBorder(key []byte) []byte { return key[PrefixLen+2:] }

// Tail returns the part of a key that follows keyspace and bucket: the id of a
// document or local document.
func Tail(key []byte) []byte { return key[PrefixLen:] }

// Seq is the number in a sequence or purge key.
func Seq(key []byte) (uint64, bool) {
	if len(key) != PrefixLen+8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[PrefixLen:]), true
}

// An id that is followed by more is written so that no id is a prefix of
// another and the order of ids is kept: a zero byte becomes 00 ff, the end is
// 00 01.
const (
	escapeByte = 0x00
	escapeZero = 0xff
	escapeEnd  = 0x01
)

// AppendEscaped appends an id that is followed by more.
func AppendEscaped(dst []byte, id string) []byte {
	for i := range len(id) {
		if id[i] == escapeByte {
			dst = append(dst, escapeByte, escapeZero)
			continue
		}
		dst = append(dst, id[i])
	}
	return append(dst, escapeByte, escapeEnd)
}

// CutEscaped takes an escaped id off b. The id aliases b unless it holds zero
// bytes.
func CutEscaped(b []byte) (id, rest []byte, ok bool) {
	end := bytes.IndexByte(b, escapeByte)
	if end < 0 || end+1 >= len(b) {
		return nil, nil, false
	}
	if b[end+1] == escapeEnd {
		return b[:end], b[end+2:], true
	}
	id = make([]byte, 0, len(b))
	for i := 0; i+1 < len(b); i++ {
		if b[i] != escapeByte {
			id = append(id, b[i])
			continue
		}
		i++
		switch b[i] {
		case escapeEnd:
			return id, b[i+1:], true
		case escapeZero:
			id = append(id, 0)
		default:
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// AppendBody orders a document's bodies by position, then id.
func AppendBody(dst []byte, id string, rev doc.Rev) []byte {
	dst = AppendEscaped(AppendSpace(dst, Bodies), id)
	dst = binary.BigEndian.AppendUint64(dst, rev.Pos)
	return append(dst, rev.ID...)
}

// CutBody takes a body key apart; id may alias key, rev does not.
func CutBody(key []byte) (id []byte, rev doc.Rev, ok bool) {
	id, rest, ok := CutEscaped(key[PrefixLen:])
	if !ok || len(rest) < 8 {
		return nil, doc.Rev{}, false
	}
	return id, doc.Rev{Pos: binary.BigEndian.Uint64(rest), ID: string(rest[8:])}, true
}

// AppendBlock appends the key of a block of a document's history.
func AppendBlock(dst []byte, id string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendEscaped(AppendSpace(dst, History), id), number)
}

// CutBlock takes the key of such a block apart; id may alias key.
func CutBlock(key []byte) (id []byte, number uint64, ok bool) {
	id, rest, ok := CutEscaped(key[PrefixLen:])
	if !ok || len(rest) != 8 {
		return nil, 0, false
	}
	return id, binary.BigEndian.Uint64(rest), true
}

// ContentKey names one attachment content inside its document.
type ContentKey = [16]byte

// ChunkSize is the size in bytes of every chunk of a content but the last.
const ChunkSize = 256 << 10

// AppendContent is the common prefix of all chunks of one content.
func AppendContent(dst []byte, id string, key ContentKey) []byte {
	dst = AppendEscaped(AppendSpace(dst, Attachments), id)
	return append(dst, key[:]...)
}

// AppendChunk appends the key of a chunk.
func AppendChunk(dst []byte, id string, key ContentKey, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(AppendContent(dst, id, key), chunk)
}

// ContentEnd is the first key beyond the chunks of one content: no chunk has
// the number 2^32-1.
func ContentEnd(id string, key ContentKey) []byte {
	return AppendChunk(nil, id, key, LastChunk)
}

// LastChunk is above every chunk number in use: 256 KB times it is a petabyte.
const LastChunk = 1<<32 - 1

// CutChunk takes a chunk key apart; id may alias key.
func CutChunk(k []byte) (id []byte, key ContentKey, chunk uint32, ok bool) {
	id, rest, ok := CutEscaped(k[PrefixLen:])
	if !ok || len(rest) != len(key)+4 {
		return nil, key, 0, false
	}
	copy(key[:], rest)
	return id, key, binary.BigEndian.Uint32(rest[len(key):]), true
}

// Upload is the key that says that a content is an upload.
func Upload(id string, key ContentKey) []byte {
	return append(AppendEscaped(AppendSpace(nil, Uploads), id), key[:]...)
}

// CutUpload takes an upload key apart; id may alias key.
func CutUpload(k []byte) (id []byte, key ContentKey, ok bool) {
	id, rest, ok := CutEscaped(k[PrefixLen:])
	if !ok || len(rest) != len(key) {
		return nil, key, false
	}
	copy(key[:], rest)
	return id, key, true
}

// OfDoc is the smallest key of the document in a keyspace whose keys
// start with the escaped id, and OfDocEnd the first beyond it.
func OfDoc(space byte, id string) []byte {
	return AppendEscaped(AppendSpace(nil, space), id)
}

// OfDocEnd is the first key beyond those of OfDoc.
func OfDocEnd(space byte, id string) []byte {
	end := OfDoc(space, id)
	end[len(end)-1]++
	return end
}

// SeqBorder is the border of the block of that size (a power of two, as shift)
// that holds seq.
func SeqBorder(seq uint64, shift uint) [8]byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seq>>shift<<shift)
	return b
}

package storage

import (
	"bytes"
	"encoding/binary"

	"divan/storage/doc"
)

// This file is the only place that builds or takes apart a key. FORMAT.md is
// its table; a golden test holds both together.
//
// Every key starts with one byte for the keyspace and one reserved byte, the
// bucket, which is zero: a later version may cut a store by buckets without
// rewriting this one.
const (
	spaceAttachments = 'a' // id, content key, chunk → stored bytes
	spaceBodies      = 'b' // id, revision → revision
	spaceDocs        = 'd' // id → record
	spaceAggregates  = 'g' // kind, level, border → sums
	spaceHeads       = 'h' // id → front of the record, without the body
	spaceLocal       = 'l' // id → text
	spaceMeta        = 'm' // name → value
	spacePurges      = 'p' // purge sequence → purge
	spaceSequence    = 's' // update sequence → change
	spaceUploads     = 'u' // id, content key → empty; content that perhaps no revision refers to yet
)

const bucket = 0

// Kinds and levels of aggregates, the third and fourth byte of their keys.
const (
	aggDocs  = 'd' // border: a document id
	aggSeqs  = 's' // border: an update sequence, 8 bytes big-endian
	levelLow = 1   // a block of about 32 documents, or of 256 sequences
	levelTop = 2   // a block of about 2048 documents, or of 65536 sequences
)

// Names of meta entries.
const (
	metaCounters = "counters" // the totals of the store
	metaOrigins  = "origins"  // the stores that it continues; none: there is no entry
)

const prefixLen = 2

// spaceStart is the smallest key of a keyspace, spaceEnd the first beyond it.
func spaceStart(space byte) []byte { return []byte{space, bucket} }
func spaceEnd(space byte) []byte   { return []byte{space, bucket + 1} }

func appendSpace(dst []byte, space byte) []byte { return append(dst, space, bucket) }

func appendDocKey(dst []byte, id string) []byte {
	return append(appendSpace(dst, spaceDocs), id...)
}

func appendHeadKey(dst []byte, id string) []byte {
	return append(appendSpace(dst, spaceHeads), id...)
}

func appendLocalKey(dst []byte, id string) []byte {
	return append(appendSpace(dst, spaceLocal), id...)
}

func appendSeqKey(dst []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendSpace(dst, spaceSequence), seq)
}

func appendPurgeKey(dst []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendSpace(dst, spacePurges), seq)
}

func appendMetaKey(dst []byte, name string) []byte {
	return append(appendSpace(dst, spaceMeta), name...)
}

func appendAggKey(dst []byte, kind, level byte, border string) []byte {
	return append(append(appendSpace(dst, spaceAggregates), kind, level), border...)
}

// aggBorder is the border in an aggregate's key.
func aggBorder(key []byte) []byte { return key[prefixLen+2:] }

// keyTail is what follows keyspace and bucket: the id of a document or local
// document.
func keyTail(key []byte) []byte { return key[prefixLen:] }

// keySeq is the number in a sequence or purge key.
func keySeq(key []byte) (uint64, bool) {
	if len(key) != prefixLen+8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[prefixLen:]), true
}

// An id that is followed by more is written so that no id is a prefix of
// another and the order of ids is kept: a zero byte becomes 00 ff, the end is
// 00 01.
const (
	escapeByte = 0x00
	escapeZero = 0xff
	escapeEnd  = 0x01
)

func appendEscaped(dst []byte, id string) []byte {
	for i := range len(id) {
		if id[i] == escapeByte {
			dst = append(dst, escapeByte, escapeZero)
			continue
		}
		dst = append(dst, id[i])
	}
	return append(dst, escapeByte, escapeEnd)
}

// cutEscaped takes an escaped id off b. The id aliases b unless it holds zero
// bytes.
func cutEscaped(b []byte) (id, rest []byte, ok bool) {
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

// appendBodyKey orders a document's bodies by position, then id.
func appendBodyKey(dst []byte, id string, rev doc.Rev) []byte {
	dst = appendEscaped(appendSpace(dst, spaceBodies), id)
	dst = binary.BigEndian.AppendUint64(dst, rev.Pos)
	return append(dst, rev.ID...)
}

// cutBodyKey takes a body key apart; id may alias key, rev does not.
func cutBodyKey(key []byte) (id []byte, rev doc.Rev, ok bool) {
	id, rest, ok := cutEscaped(key[prefixLen:])
	if !ok || len(rest) < 8 {
		return nil, doc.Rev{}, false
	}
	return id, doc.Rev{Pos: binary.BigEndian.Uint64(rest), ID: string(rest[8:])}, true
}

// contentKey names one attachment content inside its document.
type contentKey = [16]byte

// chunkSize is the size in bytes of every chunk of a content but the last.
const chunkSize = 256 << 10

// appendContent is the common prefix of all chunks of one content.
func appendContent(dst []byte, id string, key contentKey) []byte {
	dst = appendEscaped(appendSpace(dst, spaceAttachments), id)
	return append(dst, key[:]...)
}

func appendChunkKey(dst []byte, id string, key contentKey, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(appendContent(dst, id, key), chunk)
}

// contentEnd is the first key beyond the chunks of one content: no chunk has
// the number 2^32-1.
func contentEnd(id string, key contentKey) []byte {
	return appendChunkKey(nil, id, key, lastChunk)
}

// lastChunk is above every chunk number in use: 256 KB times it is a petabyte.
const lastChunk = 1<<32 - 1

// cutChunkKey takes a chunk key apart; id may alias key.
func cutChunkKey(k []byte) (id []byte, key contentKey, chunk uint32, ok bool) {
	id, rest, ok := cutEscaped(k[prefixLen:])
	if !ok || len(rest) != len(key)+4 {
		return nil, key, 0, false
	}
	copy(key[:], rest)
	return id, key, binary.BigEndian.Uint32(rest[len(key):]), true
}

func uploadKey(id string, key contentKey) []byte {
	return append(appendEscaped(appendSpace(nil, spaceUploads), id), key[:]...)
}

// cutUploadKey takes an upload key apart; id may alias key.
func cutUploadKey(k []byte) (id []byte, key contentKey, ok bool) {
	id, rest, ok := cutEscaped(k[prefixLen:])
	if !ok || len(rest) != len(key) {
		return nil, key, false
	}
	copy(key[:], rest)
	return id, key, true
}

// docSpace is the smallest key of the document in a keyspace whose keys
// start with the escaped id, and docSpaceEnd the first beyond it.
func docSpace(space byte, id string) []byte {
	return appendEscaped(appendSpace(nil, space), id)
}

func docSpaceEnd(space byte, id string) []byte {
	end := docSpace(space, id)
	end[len(end)-1]++
	return end
}

// seqBorder is the border of the block of that size (a power of two, as shift)
// that holds seq.
func seqBorder(seq uint64, shift uint) [8]byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seq>>shift<<shift)
	return b
}

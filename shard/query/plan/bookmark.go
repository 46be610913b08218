package plan

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"hash/fnv"
)

// NoBookmark is the bookmark of an answer without rows.
const NoBookmark = "nil"

// Bookmark is a place behind a row of an answer. It names the index that the row
// was read from, so that the next page comes from the same one, on any node, also
// when another index would be chosen by then.
type Bookmark struct {
	Index uint64 // Index.fingerprint, with the direction
	Sort  []byte // sort key of the row, empty for _all_docs
	ID    string
}

// bookmarkVersion changes with the form of bookmarks or of sort keys.
const bookmarkVersion = 1

// checkSize is the length of the checksum that ends a bookmark.
const checkSize = 4

// String returns the bookmark as clients get it.
func (b *Bookmark) String() string {
	out := make([]byte, 0, 32+len(b.Sort)+len(b.ID))
	out = append(out, bookmarkVersion)
	out = binary.BigEndian.AppendUint64(out, b.Index)
	out = binary.AppendUvarint(out, uint64(len(b.Sort)))
	out = append(append(out, b.Sort...), b.ID...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	return base64.RawURLEncoding.EncodeToString(out)
}

func decodeBookmark(text string) (*Bookmark, bool) {
	in, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(in) < 1+8+1+checkSize || in[0] != bookmarkVersion {
		return nil, false
	}
	in, sum := in[:len(in)-checkSize], binary.BigEndian.Uint32(in[len(in)-checkSize:])
	if crc32.ChecksumIEEE(in) != sum {
		return nil, false
	}
	b := &Bookmark{Index: binary.BigEndian.Uint64(in[1:])}
	in = in[1+8:]
	size, n := binary.Uvarint(in)
	if n <= 0 || size > uint64(len(in)-n) {
		return nil, false
	}
	in = in[n:]
	b.Sort, b.ID = in[:size:size], string(in[size:])
	return b, true
}

// fingerprint tells an index, and a direction of reading it, from others.
func (x *Index) fingerprint(desc bool) uint64 {
	h := fnv.New64a()
	write := func(s string) {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(s)))) // it never fails
		_, _ = h.Write([]byte(s))
	}
	write(x.Design)
	write(x.Name)
	write(string(x.partial))
	for _, c := range x.Columns {
		write(c.Name)
	}
	if x.text != nil {
		write(x.Kind.String())
		write(string(x.text.shown))
	}
	if desc {
		write("desc")
	}
	return h.Sum64()
}

package archive

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"math"
)

// Kind says what the bytes of an entry are. Numbers are never used again for something else.
type Kind uint8

// The kinds of entries.
const (
	KindTable    Kind = 1 // an sstable with keys of a store
	KindBatches  Kind = 2 // the batches of a small store
	KindLocals   Kind = 3 // all local documents of a range
	KindFill     Kind = 4 // what the leading copy lacks of other copies of its range
	KindMetadata Kind = 5 // the metadata of the cluster
	KindContents Kind = 6 // names of contents that tables or batches refer to, see Content
)

// Range is a part of the hashes of document ids; both ends are in it.
type Range struct{ Begin, End uint32 }

// Covers reports whether all of another range is in this one.
func (r Range) Covers(o Range) bool { return r.Begin <= o.Begin && o.End <= r.End }

func (r Range) valid() bool { return r.Begin <= r.End }

// Label says of what an entry is. That of metadata has a zero database and range.
type Label struct {
	Kind     Kind
	Database UUID
	Range    Range
	Seq      uint64 // update sequence of the copy up to which the entry goes
}

// Extent is where an entry lies in the plain bytes of its pack, and their sum.
type Extent struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
	Sum    Sum    `json:"sum"` // SHA-256
}

// Entry is an entry of a pack.
type Entry struct {
	Label
	Extent
}

// Ref names an entry of a pack.
type Ref struct {
	Pack *Object `json:"pack"`
	Kind Kind    `json:"kind"`
	Extent
}

func (e *Extent) valid() bool {
	return e.Offset >= uint64(len(packMagic)) && e.Offset <= math.MaxInt64 && e.Length <= math.MaxInt64-e.Offset
}

func (r *Ref) valid() bool {
	return r.Pack != nil && r.Pack.Name.Class == ClassPack && r.Extent.valid()
}

// Reader reads an entry from the plain bytes of its pack. Bytes count only once it has returned
// io.EOF: before that the sum has not been compared.
func (e *Extent) Reader(pack io.ReaderAt) io.Reader {
	r := &entryReader{hash: sha256.New(), want: e.Sum}
	if e.valid() {
		r.from = io.NewSectionReader(pack, int64(e.Offset), int64(e.Length))
	}
	return r
}

type entryReader struct {
	from *io.SectionReader // nil: there is no such place
	hash hash.Hash
	want Sum
}

// Read implements io.Reader.
func (r *entryReader) Read(b []byte) (int, error) {
	if r.from == nil {
		return 0, damaged("an entry is nowhere")
	}
	n, err := r.from.Read(b)
	_, _ = r.hash.Write(b[:n]) // never fails
	if errors.Is(err, io.EOF) && Sum(r.hash.Sum(nil)) != r.want {
		err = damaged("the sum of an entry is another one")
	}
	return n, err
}

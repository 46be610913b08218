package postings

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"divan/storage"
)

// Totals are the figures that an index keeps of itself.
type Totals struct {
	Next  Number // of the next document
	Live  uint64 // documents
	Bytes uint64 // that were written to the last chunk, about
}

// totalsVersion is the format of all that an index holds. One of another format is damaged to
// readers and writers: it is built anew.
const totalsVersion = 1

func (t *Totals) append(dst []byte) []byte {
	dst = append(dst, totalsVersion)
	for _, v := range [...]uint64{uint64(t.Next), t.Live, t.Bytes} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func decodeTotals(b []byte) (t Totals, err error) {
	if len(b) == 0 || b[0] != totalsVersion {
		return t, errDamaged()
	}
	b = b[1:]
	var v [3]uint64
	for i, limit := range [...]uint64{1 << 48, 1 << 48, 1 << 63} {
		var ok bool
		if v[i], b, ok = cutUvarint(b, limit); !ok {
			return t, errDamaged()
		}
	}
	if len(b) > 0 {
		return t, errDamaged()
	}
	return Totals{Number(v[0]), v[1], v[2]}, nil
}

// getter is an index, or a snapshot of one.
type getter interface {
	Get(dst, key []byte) (value []byte, ok bool, err error)
}

func readTotals(from getter) (Totals, error) {
	var buf [64]byte
	b, ok, err := from.Get(buf[:0], []byte(totalsKey))
	if err != nil || !ok {
		return Totals{}, err
	}
	return decodeTotals(b)
}

// Reader reads an index as of a snapshot. It belongs to one goroutine.
type Reader struct {
	Totals
	snap    *storage.IndexSnapshot
	space   Space // nil: nothing is counted
	chunks  []chunk
	key     []byte
	ids     ids
	columns map[columnName]*Values
}

// NewReader returns a reader of a snapshot, which stays the caller's. What it holds counts in a
// space; nil: it does not count. A reader of which ID or Values was called is closed before the
// snapshot.
func NewReader(snap *storage.IndexSnapshot, space Space) (*Reader, error) {
	t, err := readTotals(snap)
	if err != nil {
		return nil, err
	}
	r := &Reader{Totals: t, snap: snap, space: space}
	return r, r.readChunks()
}

// chunk is one that has documents.
type chunk struct{ number, size uint32 }

func (r *Reader) readChunks() error {
	err := r.each([]byte{spaceSize}, nil, func(key, value []byte) (bool, error) {
		if len(key) != 4 || len(value) != 4 {
			return false, errDamaged()
		}
		c := chunk{binary.BigEndian.Uint32(key), binary.BigEndian.Uint32(value)}
		if r.chunks = append(r.chunks, c); c.number >= r.Next.Chunk() || c.size > ChunkSize {
			return false, errDamaged()
		}
		return true, nil
	})
	if size := r.Next.Offset(); size > 0 {
		r.chunks = append(r.chunks, chunk{r.Next.Chunk(), size})
	}
	return err
}

// Versions returns how many versions of documents the index holds, dead ones too.
func (r *Reader) Versions() (n uint64) {
	for _, c := range r.chunks {
		n += uint64(c.size)
	}
	return n
}

// Chunks yields the chunks that have documents, ascending.
func (r *Reader) Chunks() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, c := range r.chunks {
			if !yield(c.number) {
				return
			}
		}
	}
}

// Size returns how many offsets of a chunk were given out: those from 0 on.
func (r *Reader) Size(number uint32) uint32 {
	i, ok := slices.BinarySearchFunc(r.chunks, number, func(c chunk, n uint32) int { return cmp.Compare(c.number, n) })
	if !ok {
		return 0
	}
	return r.chunks[i].size
}

// List returns the value of the list of a term in a chunk, which is closed when it is read no
// more. It is empty where there is no such list.
func (r *Reader) List(chunk uint32, field string, term []byte) (Held, error) {
	r.key = append(appendListsKey(r.key[:0], chunk, field), term...)
	return r.hold(r.key)
}

// Terms calls f for the terms of a field in a chunk, ascending from one on, with the
// values of their lists, as long as it returns true. Both are valid during the call.
func (r *Reader) Terms(chunk uint32, field string, from []byte, f func(term, list []byte) (more bool, err error)) error {
	return r.each(appendListsKey(nil, chunk, field), from, f)
}

// Dead adds the dead offsets of a chunk to a set.
func (r *Reader) Dead(chunk uint32, s *Set) error {
	r.key = appendDeadKey(r.key[:0], chunk)
	value, back, err := r.snap.Borrow(r.key)
	if err != nil || back == nil {
		return err
	}
	if len(value)%offsetBytes != 0 {
		return errors.Join(errDamaged(), back.Close())
	}
	for ; len(value) > 0; value = value[offsetBytes:] {
		s.Add(uint32(binary.BigEndian.Uint16(value)))
	}
	return back.Close()
}

// Number returns the number of a document by its id.
func (r *Reader) Number(id string) (n Number, ok bool, err error) {
	r.key = appendIDKey(r.key[:0], id)
	var buf [8]byte
	b, ok, err := r.snap.Get(buf[:0], r.key)
	if err != nil || !ok {
		return 0, false, err
	}
	n, err = decodeNumber(b)
	return n, err == nil, err
}

// IDs calls f for the documents that are not dead in the order of their ids, from one on, as
// long as it returns true. An id is valid during the call.
func (r *Reader) IDs(from string, f func(id []byte, n Number) (more bool, err error)) error {
	return r.each([]byte{spaceID}, []byte(from), func(id, value []byte) (bool, error) {
		n, err := decodeNumber(value)
		if err != nil {
			return false, err
		}
		return f(id, n)
	})
}

// Stored is a stored field.
type Stored struct {
	Name  string
	Value []byte
}

// Stored returns the stored fields of a document that are wanted, in the order in which they were
// added.
func (r *Reader) Stored(n Number, wanted func(name []byte) bool) (out []Stored, err error) {
	r.key = appendStoredKey(r.key[:0], n)
	all, err := r.hold(r.key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	for rest := all.Bytes; len(rest) > 0; {
		name, behind, ok := cutText(rest)
		if !ok {
			return nil, errDamaged()
		}
		value, behind, ok := cutText(behind)
		if !ok {
			return nil, errDamaged()
		}
		if wanted(name) {
			out = append(out, Stored{string(name), bytes.Clone(value)})
		}
		rest = behind
	}
	return out, nil
}

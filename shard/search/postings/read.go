package postings

import (
	"encoding/binary"
	"errors"
	"io"

	"divan/storage"
)

// Totals are what an index knows of itself.
type Totals struct {
	Next  Number // of the next document
	Live  uint64 // documents
	Bytes uint64 // that were written to lists of the last chunk
}

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
	snap *storage.IndexSnapshot
	key  []byte

	ids     []byte // a block of them
	idsAt   [1 << idBits]uint32
	idsHave int
	idsOf   Number // the first number of the block
}

// NewReader returns a reader of a snapshot, which stays the caller's.
func NewReader(snap *storage.IndexSnapshot) (*Reader, error) {
	t, err := readTotals(snap)
	if err != nil {
		return nil, err
	}
	return &Reader{Totals: t, snap: snap}, nil
}

// Chunks returns how many chunks there are: those from 0 on.
func (r *Reader) Chunks() uint32 { return (r.Next + ChunkSize - 1).Chunk() }

// Size returns how many offsets of a chunk were given out: those from 0 on.
func (r *Reader) Size(chunk uint32) (uint32, error) {
	if chunk == r.Next.Chunk() {
		return r.Next.Offset(), nil
	}
	r.key = appendSizeKey(r.key[:0], chunk)
	var buf [2]byte
	b, ok, err := r.snap.Get(buf[:0], r.key)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return ChunkSize, nil
	case len(b) != len(buf):
		return 0, errDamaged()
	}
	return uint32(binary.BigEndian.Uint16(b)), nil
}

// List begins the list of a term in a chunk. What is returned is closed when the list is
// read no more; nil: there is no such list, and l is empty.
func (r *Reader) List(l *List, chunk uint32, field string, term []byte) (io.Closer, error) {
	r.key = append(appendListsKey(r.key[:0], chunk, field), term...)
	value, back, err := r.snap.Borrow(r.key)
	l.Reset(value)
	return back, err
}

// Frequency returns how many documents have a term, dead ones too.
func (r *Reader) Frequency(field string, term []byte) (n int, err error) {
	for chunk := range r.Chunks() {
		r.key = append(appendListsKey(r.key[:0], chunk, field), term...)
		value, back, err := r.snap.Borrow(r.key)
		if err != nil {
			return 0, err
		}
		if back == nil {
			continue
		}
		docs, err := count(value)
		if err := errors.Join(err, back.Close()); err != nil {
			return 0, err
		}
		n += docs
	}
	return n, nil
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

// ID returns the id of a document; it is valid until the next call.
func (r *Reader) ID(n Number) ([]byte, error) {
	first := n &^ (1<<idBits - 1)
	if r.idsHave == 0 || r.idsOf != first {
		if err := r.readIDs(first); err != nil {
			return nil, err
		}
	}
	i := int(n - first)
	if i >= r.idsHave {
		return nil, errDamaged()
	}
	id, _, _ := cutText(r.ids[r.idsAt[i]:]) // it was read once
	return id, nil
}

func (r *Reader) readIDs(first Number) (err error) {
	r.key = appendIDsKey(r.key[:0], first)
	r.idsHave, r.idsOf = 0, first
	if r.ids, _, err = r.snap.Get(r.ids[:0], r.key); err != nil {
		return err
	}
	n := 0
	for rest := r.ids; len(rest) > 0; n++ {
		if n == len(r.idsAt) {
			return errDamaged()
		}
		r.idsAt[n] = uint32(len(r.ids) - len(rest))
		var ok bool
		if _, rest, ok = cutText(rest); !ok {
			return errDamaged()
		}
	}
	r.idsHave = n
	return nil
}

// Stored is a stored field.
type Stored struct {
	Name  string
	Value []byte
}

// Stored returns the stored fields of a document, in the order in which they were added.
func (r *Reader) Stored(n Number) (out []Stored, err error) {
	r.key = appendStoredKey(r.key[:0], n)
	rest, _, err := r.snap.Get(nil, r.key)
	if err != nil {
		return nil, err
	}
	for len(rest) > 0 {
		name, behind, ok := cutText(rest)
		if !ok {
			return nil, errDamaged()
		}
		value, behind, ok := cutText(behind)
		if !ok {
			return nil, errDamaged()
		}
		out, rest = append(out, Stored{string(name), value}), behind
	}
	return out, nil
}

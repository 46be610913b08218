package postings

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"divan/storage"
)

// emptiedAtOnce is how many chunks are emptied at the end of an update at most: a chunk takes
// up to a second.
const emptiedAtOnce = 4

// Empty moves the documents that are not dead of chunks that are at least half dead behind
// all others, and deletes the chunks; each in a batch of its own. It looks at those in which
// this Writer let documents die, and at one other, so that what is left now is found later.
// All that was applied is committed.
func (w *Writer) Empty(ctx context.Context) (err error) {
	clear(w.pending)
	if len(w.touched) == 0 {
		return nil
	}
	snap, err := w.x.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	r, err := NewReader(snap, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if n := uint64(len(r.chunks)); n > 0 {
		w.touched[r.chunks[uint64(r.Next)%n].number] = struct{}{}
	}
	left := emptiedAtOnce
	for _, chunk := range slices.Sorted(maps.Keys(w.touched)) {
		if chunk >= r.Next.Chunk() || left == 0 {
			break
		}
		emptied, err := w.emptyChunk(ctx, r, chunk)
		if err != nil {
			return err
		}
		if emptied {
			left--
		}
	}
	clear(w.touched)
	return nil
}

// emptyChunk empties a chunk of a snapshot, if half of it is dead. The last chunk is none.
func (w *Writer) emptyChunk(ctx context.Context, r *Reader, chunk uint32) (bool, error) {
	m, size := &mover{w: w, r: r, chunk: chunk}, r.Size(chunk)
	if err := r.Dead(chunk, &m.dead); err != nil {
		return false, err
	}
	live := size - uint32(m.dead.Len())
	if size == 0 || live > size/2 {
		return false, nil
	}
	b := w.x.NewBatch(false)
	defer b.Close()
	if w.totals.Bytes >= w.chunkBytes || w.totals.Next.Offset()+live > ChunkSize {
		w.end(b)
	}
	m.to, m.size = w.totals.Next, size
	for _, move := range [...]func(*storage.IndexBatch) error{m.documents, m.columns, m.lists} {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if err := move(b); err != nil {
			return false, err
		}
	}
	for _, space := range [...]byte{spaceColumn, spaceList, spaceIDs, spaceStored, spaceDead, spaceSize} {
		prefix := binary.BigEndian.AppendUint32([]byte{space}, chunk)
		b.DeleteRange(prefix, prefixEnd(prefix))
	}
	w.moved(b, live)
	return true, b.Commit(ctx)
}

// mover moves a chunk.
type mover struct {
	w     *Writer
	r     *Reader
	chunk uint32
	size  uint32
	dead  Set
	to    Number            // of the first document
	moved [ChunkSize]uint16 // by offset: how many are moved before it
	key   []byte
}

// documents moves ids and stored fields.
func (m *mover) documents(b *storage.IndexBatch) error {
	w, n, block := m.w, m.to, []byte(nil)
	flush := func() {
		if len(block) > 0 {
			m.key = appendIDsKey(m.key[:0], n-1)
			b.Merge(m.key, block)
			w.totals.Bytes += uint64(len(block))
			block = block[:0]
		}
	}
	for offset := range m.size {
		m.moved[offset] = uint16(n - m.to)
		if m.dead.Has(offset) {
			continue
		}
		old := At(m.chunk, offset)
		id, err := m.r.ID(old)
		if err != nil {
			return err
		}
		m.key, w.buf = appendIDKey(m.key[:0], string(id)), appendNumber(w.buf[:0], n)
		b.Set(m.key, w.buf)
		block = appendField(block, string(id))
		m.key = appendStoredKey(m.key[:0], old)
		stored, ok, err := m.r.snap.Get(w.buf[:0], m.key)
		if err != nil {
			return err
		}
		if w.buf = stored; ok {
			m.key = appendStoredKey(m.key[:0], n)
			b.Set(m.key, stored)
			w.totals.Bytes += uint64(len(stored))
		}
		if n++; n&(1<<idBits-1) == 0 {
			flush()
		}
	}
	flush()
	return nil
}

// columns moves the columns of all fields.
func (m *mover) columns(b *storage.IndexBatch) error {
	w, c, block := m.w, column{}, Number(0)
	w.buf = w.buf[:0]
	err := m.r.each(binary.BigEndian.AppendUint32([]byte{spaceColumn}, m.chunk), nil, func(key, entries []byte) (bool, error) {
		if len(key) == 0 {
			return false, errDamaged()
		}
		field, rest, ok := cutText(key[1:])
		if !ok || len(rest) != 1 || rest[0] >= ChunkSize>>columnBits {
			return false, errDamaged()
		}
		if kind := Column(key[0]); kind != c.kind || string(field) != c.field {
			w.block(b, &c, block)
			c = column{kind: kind, field: string(field)}
		}
		for base := uint32(rest[0]) << columnBits; len(entries) > 0; {
			offset, _, behind, ok := cutEntry(c.kind, entries)
			if !ok || offset >= 1<<columnBits {
				return false, errDamaged()
			}
			value := entries[offsetBytes : len(entries)-len(behind)]
			entries = behind
			if offset += base; offset >= m.size || m.dead.Has(offset) {
				continue
			}
			n := m.to + Number(m.moved[offset])
			if at := n >> columnBits; at != block {
				w.block(b, &c, block)
				block = at
			}
			w.buf = append(binary.BigEndian.AppendUint16(w.buf, uint16(n&(1<<columnBits-1))), value...)
		}
		return true, nil
	})
	w.block(b, &c, block)
	return err
}

// lists moves the lists of all terms.
func (m *mover) lists(b *storage.IndexBatch) error {
	w := m.w
	m.key = binary.BigEndian.AppendUint32(append(m.key[:0], spaceList), m.to.Chunk())
	prefix := len(m.key)
	var l List
	var r run
	var positions []uint32
	lengths := fieldLengths{of: make([]byte, ChunkSize)}
	return m.r.each(binary.BigEndian.AppendUint32([]byte{spaceList}, m.chunk), nil, func(key, value []byte) (bool, error) {
		if field, other := lengths.begin(key); other {
			err := m.r.EachValue(m.chunk, Lengths, field, func(offset uint32, value []byte) { lengths.of[offset] = value[0] })
			if err != nil {
				return false, err
			}
		}
		l.Reset(value)
		w.buf = w.buf[:0]
		for d := l.Seek(0); d < End; d = l.Seek(d + 1) {
			if d >= m.size || m.dead.Has(d) {
				continue
			}
			positions = l.Positions(positions[:0])
			if r.docs == runDocs {
				w.buf = r.append(w.buf, 0)
				r.reset()
			}
			r.add(m.to.Offset()+uint32(m.moved[d]), positions, lengths.of[d])
		}
		if r.docs > 0 {
			w.buf = r.append(w.buf, 0)
			r.reset()
		}
		if len(w.buf) > 0 {
			m.key = append(m.key[:prefix], key...)
			b.Merge(m.key, w.buf)
			w.totals.Bytes += uint64(len(w.buf))
		}
		return true, l.Err()
	})
}

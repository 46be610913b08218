package postings

import (
	"encoding/binary"

	"divan/storage"
)

// chunkBytes is how many bytes of lists end a chunk.
const chunkBytes = 32 << 20

// Writer adds documents to an index. It belongs to one update and one goroutine.
type Writer struct {
	x      *storage.Index
	totals Totals
	// pending are the documents of the batch, which is not committed; length is how long
	// it was left.
	pending  map[string]pending
	length   int
	dead     map[uint32][]byte // by chunk
	key, buf []byte
}

// pending is a document as the batch leaves it.
type pending struct {
	number Number
	live   bool
}

// NewWriter returns a writer that goes on where the index is.
func NewWriter(x *storage.Index) (*Writer, error) {
	t, err := readTotals(x)
	if err != nil {
		return nil, err
	}
	return &Writer{x: x, totals: t, pending: map[string]pending{}, dead: map[uint32][]byte{}}, nil
}

// Apply adds documents to a batch in the place of what the index holds of them. fresh says
// that it holds nothing of them, and that none comes twice.
func (w *Writer) Apply(b *storage.IndexBatch, in *Inverted, fresh bool) error {
	if b.Len() != w.length { // it was committed
		clear(w.pending)
	}
	t := &w.totals
	if t.Bytes >= chunkBytes || t.Next.Offset()+in.live > ChunkSize {
		w.end(b)
	}
	if err := w.documents(b, in, fresh); err != nil {
		return err
	}
	for i := range in.columns {
		if err := w.column(b, &in.columns[i]); err != nil {
			return err
		}
	}
	if err := w.lists(b, in); err != nil {
		return err
	}
	t.Next += Number(in.live)
	if t.Bytes += uint64(len(in.runs)); t.Next.Offset() == 0 {
		t.Bytes = 0
	}
	w.buf = t.append(w.buf[:0])
	b.Set([]byte(totalsKey), w.buf)
	w.length = b.Len()
	return nil
}

// end begins another chunk, and stores how large the last one is.
func (w *Writer) end(b *storage.IndexBatch) {
	t := &w.totals
	if size := t.Next.Offset(); size > 0 {
		w.key = appendSizeKey(w.key[:0], t.Next.Chunk())
		w.buf = binary.BigEndian.AppendUint16(w.buf[:0], uint16(size))
		b.Set(w.key, w.buf)
		t.Next = At(t.Next.Chunk()+1, 0)
	}
	t.Bytes = 0
}

// documents writes ids and stored fields, and what is dead.
func (w *Writer) documents(b *storage.IndexBatch, in *Inverted, fresh bool) error {
	clear(w.dead)
	n, block := w.totals.Next, []byte(nil)
	for i := range in.docs {
		d := &in.docs[i]
		w.key = appendIDKey(w.key[:0], d.id)
		if !fresh {
			if err := w.remove(d.id); err != nil {
				return err
			}
			w.pending[d.id] = pending{n, !d.deleted}
		}
		if d.deleted {
			b.Delete(w.key)
			continue
		}
		w.totals.Live++
		w.buf = appendNumber(w.buf[:0], n)
		b.Set(w.key, w.buf)
		if len(d.stored) > 0 {
			w.key = appendStoredKey(w.key[:0], n)
			b.Set(w.key, d.stored)
		}
		block = appendField(block, d.id)
		if n++; n&(1<<idBits-1) == 0 {
			w.key = appendIDsKey(w.key[:0], n-1)
			b.Merge(w.key, block)
			block = block[:0]
		}
	}
	if len(block) > 0 {
		w.key = appendIDsKey(w.key[:0], n-1)
		b.Merge(w.key, block)
	}
	for chunk, offsets := range w.dead {
		w.key = appendDeadKey(w.key[:0], chunk)
		b.Merge(w.key, offsets)
	}
	return nil
}

// remove notes that the version of a document that the index holds is dead.
func (w *Writer) remove(id string) error {
	p, ok := w.pending[id]
	if !ok {
		var err error
		if w.buf, p.live, err = w.x.Get(w.buf[:0], w.key); err != nil {
			return err
		}
		if p.live {
			if p.number, err = decodeNumber(w.buf); err != nil {
				return err
			}
		}
	}
	if !p.live {
		return nil
	}
	if w.totals.Live == 0 {
		return errDamaged()
	}
	w.totals.Live--
	chunk := p.number.Chunk()
	w.dead[chunk] = binary.BigEndian.AppendUint16(w.dead[chunk], uint16(p.number.Offset()))
	return nil
}

// column writes the entries of a column, block by block.
func (w *Writer) column(b *storage.IndexBatch, c *column) error {
	w.buf = w.buf[:0]
	block := Number(0)
	for rest := c.entries; len(rest) > 0; {
		document, _, behind, ok := cutEntry(c.kind, rest)
		if !ok {
			return errDamaged()
		}
		n := w.totals.Next + Number(document)
		if at := n >> columnBits; at != block {
			w.block(b, c, block)
			block = at
		}
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(n&(1<<columnBits-1)))
		w.buf = append(w.buf, rest[offsetBytes:len(rest)-len(behind)]...)
		rest = behind
	}
	w.block(b, c, block)
	return nil
}

func (w *Writer) block(b *storage.IndexBatch, c *column, block Number) {
	if len(w.buf) == 0 {
		return
	}
	n := block << columnBits
	w.key = append(appendColumnKey(w.key[:0], n.Chunk(), c.kind, c.field), byte(n.Offset()>>columnBits))
	b.Merge(w.key, w.buf)
	w.buf = w.buf[:0]
}

// lists writes the runs of all terms.
func (w *Writer) lists(b *storage.IndexBatch, in *Inverted) error {
	w.key = binary.BigEndian.AppendUint32(append(w.key[:0], spaceList), w.totals.Next.Chunk())
	prefix, from := len(w.key), 0
	for i := range in.terms {
		t := &in.terms[i]
		w.buf = w.buf[:0]
		for rest := in.runs[from:t.end]; len(rest) > 0; {
			var r run
			var ok bool
			if r, rest, ok = cutRun(rest); !ok {
				return errDamaged()
			}
			w.buf = r.append(w.buf, w.totals.Next.Offset())
		}
		from = t.end
		w.key = append(w.key[:prefix], t.key...)
		b.Merge(w.key, w.buf)
	}
	return nil
}

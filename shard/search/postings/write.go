package postings

import (
	"encoding/binary"
	"strings"

	"divan/storage"
)

// ChunkBytes is how many bytes end a chunk. Emptying one may take as much memory, and takes
// half of that in most cases.
const ChunkBytes = 32 << 20

// Writer adds documents to an index. It belongs to one update and one goroutine.
type Writer struct {
	x          *storage.Index
	chunkBytes uint64 // that end a chunk
	totals     Totals
	// pending are the documents of the batch, which is not committed; length is how long
	// it was left.
	pending  map[string]pending
	length   int
	dead     map[uint32][]byte // by chunk
	gathered []gathered
	touched  map[uint32]struct{} // chunks in which a document died
	fields   map[string]FieldTotals
	key, buf []byte
}

// pending is a document as the batch leaves it.
type pending struct {
	number Number
	live   bool
}

// NewWriter returns a writer that goes on where the index is. So many bytes end a chunk:
// ChunkBytes, but for tests.
func NewWriter(x *storage.Index, chunkBytes uint64) (*Writer, error) {
	t, err := readTotals(x)
	if err != nil {
		return nil, err
	}
	return &Writer{
		x: x, chunkBytes: chunkBytes, totals: t, pending: map[string]pending{}, dead: map[uint32][]byte{},
		touched: map[uint32]struct{}{}, fields: map[string]FieldTotals{},
	}, nil
}

// Apply adds documents to a batch in the place of what the index holds of them. fresh says
// that it holds nothing of them, and that none comes twice. A *WrongType leaves all as it was.
// The lists of documents are added by Flush.
func (w *Writer) Apply(b *storage.IndexBatch, in *Inverted, fresh bool) error {
	if b.Len() != w.length { // it was committed
		clear(w.pending)
	}
	if err := w.check(in); err != nil {
		return err
	}
	t := &w.totals
	if t.Bytes >= w.chunkBytes || t.Next.Offset()+in.live > ChunkSize {
		if err := w.Flush(b); err != nil {
			return err
		}
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
	w.gathered = append(w.gathered, gathered{in.terms, in.runs, t.Next})
	for i := range in.types {
		f := &in.types[i]
		sum := w.fields[f.name]
		sum.Type, sum.Docs, sum.Terms = f.Type, sum.Docs+f.Docs, sum.Terms+f.Terms
		w.fields[f.name] = sum
		w.key, w.buf = appendFieldKey(w.key[:0], f.name), sum.append(w.buf[:0])
		b.Set(w.key, w.buf)
	}
	t.Bytes += uint64(len(in.runs))
	w.moved(b, in.live)
	if w.length = b.Len(); t.Next.Offset() == 0 {
		return w.Flush(b)
	}
	return nil
}

// moved goes on behind so many documents, which were written.
func (w *Writer) moved(b *storage.IndexBatch, live uint32) {
	t := &w.totals
	if t.Next += Number(live); live > 0 && t.Next.Offset() == 0 {
		w.size(b, t.Next.Chunk()-1, ChunkSize)
		t.Bytes = 0
	}
	w.buf = t.append(w.buf[:0])
	b.Set([]byte(totalsKey), w.buf)
}

// size stores how large a chunk is, which is at its end.
func (w *Writer) size(b *storage.IndexBatch, chunk, size uint32) {
	w.key = appendSizeKey(w.key[:0], chunk)
	w.buf = binary.BigEndian.AppendUint32(w.buf[:0], size)
	b.Set(w.key, w.buf)
}

// end begins another chunk, and stores how large the last one is.
func (w *Writer) end(b *storage.IndexBatch) {
	t := &w.totals
	if size := t.Next.Offset(); size > 0 {
		w.size(b, t.Next.Chunk(), size)
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
			w.pending[strings.Clone(d.id)] = pending{n, !d.deleted}
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
			w.totals.Bytes += uint64(len(d.stored))
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
		w.touched[chunk] = struct{}{}
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
	w.totals.Bytes += uint64(len(w.buf))
	w.buf = w.buf[:0]
}

package core

import (
	"io"
	"runtime"
	"sync"
)

// bodyPiece is how many bytes readPieces reads of a large body at a time. A client's
// word about the length counts as far.
const bodyPiece = 1 << 20

// piecePool lends pieces of bodies. The garbage of large bodies would have the collector
// at work all the time, and every goroutine that allocates assist it.
type piecePool struct{ pool sync.Pool }

func (p *piecePool) get() *[bodyPiece]byte {
	if b, ok := p.pool.Get().(*[bodyPiece]byte); ok {
		return b
	}
	return new([bodyPiece]byte)
}

// pieces are those of one body.
type pieces struct {
	pool *piecePool
	lent []*[bodyPiece]byte
}

// next returns an empty piece.
func (p *pieces) next() []byte {
	b := p.pool.get()
	p.lent = append(p.lent, b)
	return b[:0]
}

// giveBack returns the pieces to the pool; the caller must not touch their bytes again.
func (p *pieces) giveBack() {
	for _, b := range p.lent {
		p.pool.pool.Put(b)
	}
	p.lent = nil
}

// joined returns total bytes of the pieces as one slice. A single piece is not given back,
// as the result is that piece.
func (p *pieces) joined(last []byte, total int) []byte {
	if len(p.lent) <= 1 {
		p.lent = nil
		return last
	}
	out := make([]byte, 0, total)
	for _, b := range p.lent[:len(p.lent)-1] {
		out = append(out, b[:]...)
	}
	return append(out, last...)
}

// readPieces reads everything up to limit bytes. With a known length it allocates
// once, but never more than bodyPiece on the client's word alone. A large body
// is read in pieces, so that nothing has to be copied while it grows.
func (b *Body) readPieces(r io.Reader, length, limit int64) ([]byte, error) {
	if length > limit {
		return nil, errTooLarge
	}
	full := pieces{pool: &b.pools.pieces}
	defer full.giveBack()
	size := int64(512)
	if length >= 0 {
		size = min(length+1, bodyPiece) // space to see the end without growing
	}
	if err := b.memory.Take(int(size)); err != nil {
		return nil, err
	}
	var buf []byte
	if size < bodyPiece {
		buf = make([]byte, 0, size)
	} else {
		buf = full.next()
	}
	for total := int64(0); ; {
		if total > bodyPiece {
			runtime.Gosched() // as largeBody does
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if total += int64(n); total > limit {
			return nil, errTooLarge
		}
		if err == io.EOF {
			return full.joined(buf, int(total)), nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) < cap(buf) {
			continue
		}
		if err := b.memory.Take(cap(buf)); err != nil {
			return nil, err
		}
		switch {
		case cap(buf) >= bodyPiece:
			buf = full.next()
		case 2*cap(buf) >= bodyPiece:
			buf = append(full.next(), buf...)
		default:
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
	}
}

// textPool lends buffers for the texts of documents in large bodies, for the same
// reason.
type textPool struct{ pool sync.Pool }

// What a text has to have to be lent again, in bytes.
const (
	leastText = 256 << 10
	mostText  = 32 << 20
)

// BorrowText returns a buffer of any size that is to be given to ReturnText.
func (b *Body) BorrowText() *[]byte {
	if text, ok := b.pools.texts.pool.Get().(*[]byte); ok {
		return text
	}
	return new([]byte)
}

// ReturnText takes a buffer back; the caller must not touch its bytes again.
func (b *Body) ReturnText(text *[]byte) {
	if n := cap(*text); n >= leastText && n <= mostText {
		b.pools.texts.pool.Put(text)
	}
}

package postings

import (
	"errors"
	"io"
)

// Space counts the bytes that a Reader holds of an index.
type Space interface {
	// Has reports whether there are so many bytes left, at once.
	Has(bytes int) bool
	// Take takes bytes, and may wait until there are so many. The error says that there never
	// will be.
	Take(bytes int) error
	// Give gives back what Take took.
	Give(bytes int)
}

// Held is a value of an index that is read without a copy. Its bytes count as long as it is held.
// The zero value holds nothing.
type Held struct {
	Bytes []byte
	back  io.Closer
	space Space
}

// Close gives the value back. It may be called more than once.
func (h *Held) Close() error {
	if h.back == nil {
		return nil
	}
	back := h.back
	if h.space != nil {
		h.space.Give(len(h.Bytes))
	}
	*h = Held{}
	return back.Close()
}

// hold reads the value of a key; there is none where Held holds nothing. A value for which there
// is no space at once is not kept while the space is waited for: it is read again.
func (r *Reader) hold(key []byte) (Held, error) {
	for taken := 0; ; {
		value, back, err := r.snap.Borrow(key)
		if err != nil || back == nil {
			r.give(taken)
			return Held{}, err
		}
		more := len(value) - taken
		if r.space == nil || more <= 0 || r.space.Has(more) {
			h := Held{value, back, r.space}
			return h, r.count(&h, more)
		}
		if err := back.Close(); err != nil {
			return Held{}, err
		}
		if err := r.space.Take(more); err != nil {
			return Held{}, err
		}
		taken = len(value)
	}
}

// count takes what is not taken yet of the bytes of a value that there is space for.
func (r *Reader) count(h *Held, more int) error {
	if r.space == nil || more == 0 {
		return nil
	}
	if err := r.space.Take(more); err != nil {
		h.space = nil // nothing of it counts
		return errors.Join(err, h.Close())
	}
	return nil
}

func (r *Reader) give(bytes int) {
	if r.space != nil && bytes > 0 {
		r.space.Give(bytes)
	}
}

package archive

import (
	"crypto/sha256"
	"hash"
	"io"
)

// Object is a shared object as the target has it.
type Object struct {
	Name Name   `json:"name"`
	Size uint64 `json:"size"`   // of the stored bytes
	Sum  Sum    `json:"sha256"` // of the stored bytes
}

// Measure passes the stored bytes of an object on to the target and takes their size and sum.
type Measure struct {
	w    io.Writer
	size uint64
	hash hash.Hash
}

// NewMeasure returns a Measure that writes to w.
func NewMeasure(w io.Writer) *Measure { return &Measure{w: w, hash: sha256.New()} }

// Write implements io.Writer.
func (m *Measure) Write(b []byte) (int, error) {
	n, err := m.w.Write(b)
	m.size += uint64(n)
	_, _ = m.hash.Write(b[:n]) // never fails
	return n, err
}

// Object returns the object that the bytes so far are.
func (m *Measure) Object(name Name) Object {
	o := Object{Name: name, Size: m.size}
	m.hash.Sum(o.Sum[:0])
	return o
}

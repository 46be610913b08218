package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Content is a content that is an object of its own.
type Content struct {
	ID   Sum    // of its name
	Size uint64 // of its plain bytes
}

const contentRow = len(Sum{}) + 8

// AppendContent adds to the bytes of an entry of the kind KindContents.
func AppendContent(dst []byte, c Content) []byte {
	return binary.BigEndian.AppendUint64(append(dst, c.ID[:]...), c.Size)
}

// ReadContents calls fn for each content of an entry. What fn heard counts only when there is no
// error: see [Extent.Reader].
func ReadContents(entry io.Reader, fn func(Content) error) error {
	r := bufio.NewReader(entry)
	var row [contentRow]byte
	for {
		_, err := io.ReadFull(r, row[:])
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return damaged("a list of contents is cut")
		default:
			return err
		}
		c := Content{Size: binary.BigEndian.Uint64(row[len(Sum{}):])}
		copy(c.ID[:], row[:])
		if err := fn(c); err != nil {
			return err
		}
	}
}

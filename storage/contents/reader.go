// Package contents reads what is stored of attachments.
package contents

import (
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/fault"
	"divan/storage/keyspace"
)

// Reader streams a content of one moment: a delete meanwhile does not
// touch it. It holds one chunk at a time, belongs to one goroutine, and implements io.WriterTo, which
// copies nothing. Where the content ends too early it gives io.ErrUnexpectedEOF.
type Reader struct {
	release func()
	it      *pebble.Iterator
	data    []byte // what is left of the current chunk; aliases the iterator
	want    uint32 // number of the next chunk
	left    int64  // bytes still to deliver; -1: all
	err     error
}

// Open returns length bytes of a content from offset on, all that follow when length is negative. The
// error is fault.NotFound when there is no
// such content.
func Open(from pebble.Reader, id string, key [16]byte, offset, length int64) (*Reader, error) {
	if offset < 0 {
		return nil, fmt.Errorf("open attachment: negative offset %d", offset)
	}
	it, err := from.NewIter(&pebble.IterOptions{
		LowerBound: keyspace.AppendContent(nil, id, key), UpperBound: keyspace.ContentEnd(id, key),
	})
	if err != nil {
		return nil, fmt.Errorf("open attachment: %w", err)
	}
	r := &Reader{it: it, left: max(length, -1), release: func() {}}
	if err := r.start(id, key, offset); err != nil {
		_ = it.Close() // the first error says what happened
		return nil, err
	}
	return r, nil
}

// Release has Close call a function.
func (r *Reader) Release(release func()) { r.release = release }

// start goes to the chunk that holds offset.
func (r *Reader) start(id string, key keyspace.ContentKey, offset int64) error {
	if !r.it.First() {
		if err := r.it.Error(); err != nil {
			return fmt.Errorf("open attachment: %w", err)
		}
		return fault.New(fault.NotFound, "Document is missing attachment")
	}
	if offset/keyspace.ChunkSize >= keyspace.LastChunk {
		r.err = io.EOF
		return nil
	}
	r.want = uint32(offset / keyspace.ChunkSize)
	found := true
	if r.want > 0 {
		found = r.it.SeekGE(keyspace.AppendChunk(nil, id, key, r.want))
	}
	r.load(found)
	if r.err == nil {
		r.data = r.data[min(offset%keyspace.ChunkSize, int64(len(r.data))):]
	}
	return nil
}

// load takes the chunk at the iterator, which is at one when found.
func (r *Reader) load(found bool) {
	r.data = nil
	if !found {
		if r.err = r.it.Error(); r.err == nil {
			r.err = io.EOF
		}
		return
	}
	_, _, chunk, ok := keyspace.CutChunk(r.it.Key())
	if !ok || chunk != r.want {
		r.err = fault.New(fault.Corruption, "A part of the attachment is missing.")
		return
	}
	r.want++
	r.data, r.err = r.it.ValueAndErr()
}

// more makes sure that data holds something; false when nothing follows.
func (r *Reader) more() bool {
	for r.left != 0 && len(r.data) == 0 && r.err == nil {
		r.load(r.it.Next())
	}
	if r.left == 0 {
		return false
	}
	if int64(len(r.data)) > r.left && r.left > 0 {
		r.data = r.data[:r.left]
	}
	return len(r.data) > 0
}

// end is the error at the end of the stream.
func (r *Reader) end() error {
	switch {
	case r.left == 0:
		return io.EOF
	case r.err == io.EOF && r.left > 0: //nolint:errorlint // set here, never wrapped
		return io.ErrUnexpectedEOF
	}
	return r.err
}

// took notes that n bytes of data are delivered.
func (r *Reader) took(n int) {
	r.data = r.data[n:]
	if r.left > 0 {
		r.left -= int64(n)
	}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !r.more() {
		return 0, r.end()
	}
	n := copy(p, r.data)
	r.took(n)
	return n, nil
}

// WriteTo implements io.WriterTo.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for r.more() {
		n, err := w.Write(r.data)
		total += int64(n)
		r.took(n)
		if err != nil {
			return total, err
		}
	}
	if err := r.end(); err != io.EOF { //nolint:errorlint // io.EOF is never wrapped
		return total, err
	}
	return total, nil
}

// Close implements io.Closer.
func (r *Reader) Close() error {
	if r.it == nil {
		return nil
	}
	err := r.it.Close()
	r.it, r.data, r.left = nil, nil, 0
	r.release()
	return err
}

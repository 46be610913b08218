// Package zlib compresses as zlib does, byte for byte: the digest of an
// attachment is that of its compressed bytes and enters revision ids, so it has
// to be what CouchDB makes. Other deflates, compress/flate among them, give
// other bytes. The work is done by a translation of zlib to Go, which has its
// memory outside of Go's heap.
package zlib

import (
	"fmt"
	"io"
	"runtime"
	"unsafe"

	"modernc.org/libc"
	z "modernc.org/z/lib"
)

const (
	version  = "1.2.11" // of the interface, as deflateInit2 asks for it
	gzipBits = 15 + 16  // a window of 2^15 bytes, with gzip's header and trailer
	memLevel = 8
	block    = 32 << 10 // bytes of input, and of output, at a time
)

// BestCompression is the highest level.
const BestCompression = z.Z_BEST_COMPRESSION

// Writer writes a gzip stream without name and time. It holds 330 KB, which
// go when the Writer is collected. It is for one goroutine at a time.
type Writer struct {
	c   compressor
	out io.Writer
	err error
}

// compressor is the memory outside of Go's heap.
type compressor struct {
	tls     *libc.TLS
	stream  uintptr // a z.Z_stream
	in, out uintptr // of block bytes each
}

// NewWriter returns a Writer of that level, 1 to BestCompression.
func NewWriter(out io.Writer, level int) (*Writer, error) {
	c := compressor{tls: libc.NewTLS()}
	size := unsafe.Sizeof(z.Z_stream{})
	c.stream = libc.Xcalloc(c.tls, 1, z.Size_t(size))
	c.in = libc.Xmalloc(c.tls, block)
	c.out = libc.Xmalloc(c.tls, block)
	name, err := libc.CString(version)
	if err != nil || c.stream == 0 || c.in == 0 || c.out == 0 {
		c.free()
		return nil, fmt.Errorf("zlib: out of memory: %w", err)
	}
	code := z.XdeflateInit2_(c.tls, c.stream, int32(level), z.Z_DEFLATED, gzipBits, memLevel, z.Z_DEFAULT_STRATEGY, name, int32(size))
	libc.Xfree(c.tls, name)
	if code != z.Z_OK {
		c.free()
		return nil, fmt.Errorf("zlib: level %d: code %d", level, code)
	}
	w := &Writer{c: c, out: out}
	runtime.AddCleanup(w, compressor.end, c)
	return w, nil
}

// end gives back everything.
func (c compressor) end() {
	z.XdeflateEnd(c.tls, c.stream)
	c.free()
}

func (c compressor) free() {
	for _, p := range []uintptr{c.stream, c.in, c.out} {
		libc.Xfree(c.tls, p)
	}
	c.tls.Close()
}

// state is the stream, in a way that vet takes: the conversion is sound, since
// the memory is not Go's.
func (c compressor) state() *z.Z_stream { return *(**z.Z_stream)(unsafe.Pointer(&c.stream)) }

// Reset begins another stream of the same level.
func (w *Writer) Reset(out io.Writer) {
	w.out, w.err = out, nil
	if code := z.XdeflateReset(w.c.tls, w.c.stream); code != z.Z_OK {
		w.err = fmt.Errorf("zlib: reset: code %d", code)
	}
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) && w.err == nil {
		n := copy(libc.GoBytes(w.c.in, block), p[done:])
		w.deflate(n, z.Z_NO_FLUSH)
		done += n
	}
	return done, w.err
}

// Close ends the stream; Reset begins another one.
func (w *Writer) Close() error {
	if w.err == nil {
		w.deflate(0, z.Z_FINISH)
	}
	return w.err
}

// deflate compresses n bytes of c.in and writes what comes out.
func (w *Writer) deflate(n int, flush int32) {
	s := w.c.state()
	s.Fnext_in, s.Favail_in = w.c.in, uint32(n)
	for full := true; full && w.err == nil; {
		s.Fnext_out, s.Favail_out = w.c.out, block
		z.Xdeflate(w.c.tls, w.c.stream, flush) // cannot fail with a sound state
		full = s.Favail_out == 0
		if made := block - int(s.Favail_out); made > 0 {
			_, w.err = w.out.Write(libc.GoBytes(w.c.out, made))
		}
	}
	runtime.KeepAlive(w) // the cleanup frees what s points to
}

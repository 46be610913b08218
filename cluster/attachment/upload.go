package attachment

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"divan/cluster/config"
	"divan/cluster/zlib"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

const (
	// MaxInline is the most bytes of content, before compression, that
	// travel with the edit in EditAttachment.Data; more is written to the
	// copies while it comes in.
	MaxInline = 64 << 10

	// BlockSize is how many bytes are handed from stage to stage.
	BlockSize = 256 << 10

	blocks = 4 // in flight: one per stage and one to spare
)

// Options describe the content of one attachment as it comes in.
type Options struct {
	Name        string
	ContentType string // empty: application/octet-stream
	Encoding    string // "" or "identity": as it is; "gzip": stored untouched
	Length      int64  // bytes announced; -1 when not announced
	MaxSize     int64  // bytes accepted; 0: [couchdb] max_attachment_size
	Identity    int64  // with gzip: bytes that it is said to inflate to; -1: not said
	Stored      bool   // it goes to the copies however small it is: there is no memory to keep it in
}

// Document is where an attachment goes.
type Document struct {
	Database Database
	ID       string
	Copies   []ring.Replica // of its shard
}

// Uploader stores the content of attachments. It is safe for concurrent use.
type Uploader struct {
	Config *config.Holder
	gzips  gzips
}

// Upload reads the content of an attachment and returns what an edit needs to refer to it. Content
// of a compressible type is stored compressed. Content of up to MaxInline bytes stays in Data, if
// it may; more is streamed to all copies of the document's shard, where it is durable when Upload
// returns, and must be given to Discard if no edit takes it. A few blocks of memory are held, for
// content of any size.
//
// Refusals: fault.BadContentType for another encoding, fault.AttachmentTooLarge
// with the name, fault.BadRequest "attachment shorter than expected" and
// "attachment longer than expected". An error of r is returned as it is.
func (up *Uploader) Upload(ctx context.Context, to Document, o Options, r io.Reader) (shard.EditAttachment, error) {
	cfg := up.Config.Load()
	if o.MaxSize <= 0 {
		o.MaxSize = cfg.CouchDB.MaxAttachmentSize
	}
	if o.ContentType == "" {
		o.ContentType = "application/octet-stream"
	}
	if o.Length > o.MaxSize {
		return shard.EditAttachment{}, fault.New(fault.AttachmentTooLarge, o.Name)
	}
	u := &upload{Document: to, gzips: &up.gzips, sum: md5.New(), stored: o.Stored}
	u.att.Name, u.att.ContentType = o.Name, o.ContentType
	in := &counted{r: r, name: o.Name, length: o.Length, limit: o.MaxSize}
	tail := &tailReader{}
	level := 0
	switch o.Encoding {
	case "", "identity":
		if cfg.Attachments.Compressible(o.ContentType) {
			level, u.att.Gzip = cfg.Attachments.CompressionLevel, true
		}
	case "gzip":
		u.att.Gzip = true
		tail.r, in.r = r, tail
	default:
		return shard.EditAttachment{}, fault.New(fault.BadContentType, "Only gzip and identity content-encodings are supported")
	}
	if err := u.take(ctx, in, level); err != nil {
		u.abort()
		return shard.EditAttachment{}, err
	}
	u.att.Length = in.n
	if tail.r != nil && o.Identity >= 0 && tail.inflated() == uint32(o.Identity) {
		u.att.Length = o.Identity
	}
	return u.att, nil
}

// tailReader remembers the last four bytes of a gzip stream: the number of
// bytes that it inflates to, modulo 2^32. A length that contradicts it would
// be announced to every client that takes no gzip.
type tailReader struct {
	r    io.Reader
	last [4]byte
}

// Read implements io.Reader.
func (t *tailReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if n >= len(t.last) {
		copy(t.last[:], p[n-len(t.last):n])
	} else {
		copy(t.last[:], t.last[n:])
		copy(t.last[len(t.last)-n:], p[:n])
	}
	return n, err
}

func (t *tailReader) inflated() uint32 { return binary.LittleEndian.Uint32(t.last[:]) }

// counted is the client's stream with its length checked while it is read.
type counted struct {
	r             io.Reader
	name          string
	n             int64
	length, limit int64
}

// Read implements io.Reader; the end of the stream is an error when it comes
// too early.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	switch {
	case c.n > c.limit:
		return 0, fault.New(fault.AttachmentTooLarge, c.name)
	case c.length >= 0 && c.n > c.length:
		return 0, fault.New(fault.BadRequest, "attachment longer than expected")
	case errors.Is(err, io.EOF) && c.n < c.length:
		return 0, fault.New(fault.BadRequest, "attachment shorter than expected")
	}
	return n, err
}

// head reads the beginning: at most one byte more than can be kept inline. The
// error is io.EOF when that is all there is.
func (c *counted) head() ([]byte, error) {
	size := int64(4 << 10) // when nothing is known
	if c.length >= 0 {
		size = c.length + 1 // sees the end, too
	}
	buf := make([]byte, 0, min(size, MaxInline+1))
	for {
		n, err := readFull(c, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil || len(buf) > MaxInline {
			return buf, err
		}
		buf = append(make([]byte, 0, min(4*cap(buf), MaxInline+1)), buf...)
	}
}

// upload is the way of one attachment to the copies.
type upload struct {
	Document
	gzips  *gzips
	sum    hash.Hash
	att    shard.EditAttachment
	stored bool        // nothing is kept, see Options.Stored
	sinks  []*copySink // open ones, once the content outgrew Data
	failed []*copySink // those that were given up
}

// take reads the content and stores it, compressed when level is not 0.
func (u *upload) take(ctx context.Context, in *counted, level int) error {
	head, err := in.head()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err != nil && len(head) <= MaxInline && (!u.stored || len(head) == 0) {
		return u.keep(head, level)
	}
	rest := io.MultiReader(bytes.NewReader(head), in)
	if level == 0 {
		return u.stream(ctx, rest)
	}
	pr, pw := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { pw.CloseWithError(u.gzips.compress(pw, rest, level)) })
	err = u.stream(ctx, pr)
	pr.CloseWithError(errStopped) // ends the goroutine when stream gave up first
	wg.Wait()
	return err
}

var errStopped = errors.New("attachment: upload given up")

// keep puts small content into the edit itself.
func (u *upload) keep(content []byte, level int) error {
	if level > 0 {
		var zip bytes.Buffer
		if err := u.gzips.compress(&zip, bytes.NewReader(content), level); err != nil {
			return err
		}
		content = zip.Bytes()
	}
	u.att.Data = slices.Clip(content)
	u.att.Digest = md5.Sum(content)
	u.att.StoredLength = int64(len(content))
	rand.Read(u.att.Key[:]) // never fails, says its documentation
	return nil
}

// readFull reads until p is full or r ends or fails; at the end of r the error is
// io.EOF, however much was read before.
func readFull(r io.Reader, p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k, err := r.Read(p[n:])
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// stream brings the stored bytes to all copies, in blocks that go round
// through three stages at once: reading (this goroutine), hashing, writing.
// MD5 is the slowest of them on one core.
func (u *upload) stream(ctx context.Context, r io.Reader) error {
	rand.Read(u.att.Key[:]) // never fails, says its documentation
	if err := u.open(ctx); err != nil {
		return err
	}
	var (
		free   = make(chan []byte, blocks) // every channel has space for all blocks, so that no stage waits to hand over
		read   = make(chan []byte, blocks)
		hashed = make(chan []byte, blocks)
		failed = make(chan error, 1)
		wg     sync.WaitGroup
	)
	wg.Go(func() {
		defer close(hashed)
		for b := range read {
			u.sum.Write(b)
			hashed <- b
		}
	})
	wg.Go(func() {
		var err error
		for b := range hashed {
			if err == nil {
				if err = u.write(b); err != nil {
					failed <- err
				}
			}
			if u.held(b) {
				b = make([]byte, BlockSize)
			}
			free <- b[:cap(b)]
		}
	})
	err := u.pump(ctx, r, free, read, failed)
	close(read)
	wg.Wait()
	if err == nil {
		select {
		case err = <-failed:
		default:
		}
	}
	if err != nil {
		return err
	}
	u.sum.Sum(u.att.Digest[:0])
	return u.close()
}

// pump reads r into the blocks that come back until it ends. A block is made when
// none has come back: small content needs one or two of them.
func (u *upload) pump(ctx context.Context, r io.Reader, free <-chan []byte, read chan<- []byte, failed <-chan error) error {
	for made := 0; ; {
		var b []byte
		if made < blocks && len(free) == 0 {
			b = make([]byte, BlockSize)
			made++
		} else {
			select {
			case b = <-free:
			case err := <-failed:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		n, err := readFull(r, b)
		u.att.StoredLength += int64(n)
		if n > 0 {
			read <- b[:n]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// gzips keeps compressors, by level: to make one takes longer than to compress
// what is small.
type gzips [zlib.BestCompression + 1]sync.Pool

// compress writes the compression of r. An error of r is returned as it is.
func (g *gzips) compress(w io.Writer, r io.Reader, level int) error {
	zip, ok := g[level].Get().(*zlib.Writer)
	if ok {
		zip.Reset(w)
	} else {
		var err error
		if zip, err = zlib.NewWriter(w, level); err != nil {
			return fmt.Errorf("compress attachment: %w", err)
		}
	}
	_, err := io.Copy(zip, r)
	if closeErr := zip.Close(); err == nil {
		err = closeErr
	}
	g[level].Put(zip)
	return err
}

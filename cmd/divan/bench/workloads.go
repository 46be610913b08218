package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// create makes the database of that name; one that is there already is fine.
func (b *bench) create(name string) error {
	a := b.newCall()
	defer a.release()
	if err := a.do(fasthttp.MethodPut, b.createPath(name), nil); err != nil {
		return err
	}
	return a.expect(fasthttp.StatusCreated, fasthttp.StatusAccepted, fasthttp.StatusPreconditionFailed)
}

func (b *bench) createPath(name string) string {
	path := "/" + b.prefix + name
	if b.cfg.Q > 0 {
		path += "?q=" + strconv.Itoa(b.cfg.Q)
	}
	return path
}

// docID returns the id of document i: 32 hexadecimal digits, as CouchDB's own
// sequential algorithm makes them (a prefix and a counter), or, when random ids
// are wanted, spread over the key space.
func (b *bench) docID(i int64) string {
	if b.cfg.RandomIDs {
		return fmt.Sprintf("%016x%016x", mix(uint64(i)), i)
	}
	return fmt.Sprintf("%.26s%06x", b.idPrefix, i)
}

// mix is the finalizer of splitmix64: a bijection that looks random.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// appendDoc appends a document of about the wanted size: a few fields of
// different types and text that compresses as text does.
func (b *bench) appendDoc(dst []byte, id, rev string, n int64) []byte {
	start := len(dst)
	dst = append(dst, '{')
	if id != "" {
		dst = append(append(append(dst, `"_id":"`...), id...), `",`...)
	}
	if rev != "" {
		dst = append(append(append(dst, `"_rev":"`...), rev...), `",`...)
	}
	dst = append(dst, `"type":"reading","n":`...)
	dst = strconv.AppendInt(dst, n, 10)
	dst = append(dst, `,"value":`...)
	dst = strconv.AppendFloat(dst, float64(mix(uint64(n))%1_000_000)/1000, 'f', 3, 64)
	dst = append(dst, `,"tags":["alpha","beta","gamma"],"text":"`...)
	words := [...]string{"river ", "stone ", "winter ", "garden ", "letter ", "mirror ", "summer ", "window "}
	for i := uint64(n); len(dst)-start < b.cfg.DocSize-2; i++ {
		dst = append(dst, words[mix(i)%uint64(len(words))]...)
	}
	return append(dst, `"}`...)
}

func (b *bench) put(ctx context.Context, r *recorder) error {
	if err := b.create("put"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Duration)
	defer cancel()
	var next atomic.Int64
	err := b.parallel(ctx, b.cfg.Clients, r, func(int) client {
		var body []byte
		return func(a *call, _ int64) (int64, error) {
			n := next.Add(1) - 1
			body = b.appendDoc(body[:0], "", "", n)
			_, _, err := a.exchange(fasthttp.MethodPut, "/"+b.prefix+"put/"+b.docID(n), body, fasthttp.StatusCreated)
			return 1, err
		}
	})
	b.puts = next.Load()
	return err
}

// update writes each client's own documents again and again.
func (b *bench) update(ctx context.Context, r *recorder) error {
	if err := b.create("put"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Duration)
	defer cancel()
	const own = 100
	return b.parallel(ctx, b.cfg.Clients, r, func(nr int) client {
		revs := make([]string, own)
		var body []byte
		return func(a *call, i int64) (int64, error) {
			n := int(i % own)
			body = b.appendDoc(body[:0], "", revs[n], i)
			_, _, err := a.exchange(fasthttp.MethodPut, fmt.Sprintf("/%sput/u-%d-%d", b.prefix, nr, n), body, fasthttp.StatusCreated)
			if err != nil {
				return 0, err
			}
			revs[n] = string(trimQuotes(a.resp.Header.Peek("ETag")))
			if i < own { // the first round creates them
				return 0, nil
			}
			return 1, nil
		}
	})
}

func trimQuotes(b []byte) []byte {
	if len(b) >= 2 && b[0] == '"' {
		return b[1 : len(b)-1]
	}
	return b
}

func (b *bench) bulk(ctx context.Context, r *recorder) error {
	if err := b.create("bulk"); err != nil {
		return err
	}
	var next atomic.Int64
	err := b.parallel(ctx, min(b.cfg.Clients, 8), r, func(int) client {
		var body []byte
		return func(a *call, _ int64) (int64, error) {
			first := next.Add(int64(b.cfg.Batch)) - int64(b.cfg.Batch)
			n := min(int64(b.cfg.Batch), int64(b.cfg.Docs)-first)
			if n <= 0 {
				return 0, io.EOF
			}
			body = append(body[:0], `{"docs":[`...)
			for i := range n {
				if i > 0 {
					body = append(body, ',')
				}
				body = b.appendDoc(body, b.docID(first+i), "", first+i)
			}
			body = append(body, `]}`...)
			_, _, err := a.exchange(fasthttp.MethodPost, "/"+b.prefix+"bulk/_bulk_docs", body, fasthttp.StatusCreated)
			return n, err
		}
	})
	b.loaded = err == nil
	return err
}

// load makes sure that the documents of the bulk workload are there.
func (b *bench) load(ctx context.Context) error {
	if b.loaded {
		return nil
	}
	return b.bulk(ctx, newRecorder(workload{name: "load", unit: "documents"}, nil))
}

// read asks for one path after the other of the bulk database until the time
// is up.
func (b *bench) read(ctx context.Context, r *recorder, path func() string) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Duration)
	defer cancel()
	return b.parallel(ctx, b.cfg.Clients, r, func(int) client {
		return func(a *call, _ int64) (int64, error) {
			_, _, err := a.exchange(fasthttp.MethodGet, "/"+b.prefix+"bulk/"+path(), nil, fasthttp.StatusOK)
			return 1, err
		}
	})
}

func (b *bench) get(ctx context.Context, r *recorder) error {
	return b.read(ctx, r, func() string { return b.docID(rand.Int64N(int64(b.cfg.Docs))) })
}

func (b *bench) allDocsLimit(ctx context.Context, r *recorder) error {
	return b.read(ctx, r, func() string {
		return fmt.Sprintf("_all_docs?limit=20&startkey=%%22%s%%22", b.docID(rand.Int64N(int64(b.cfg.Docs))))
	})
}

// scan reads an endpoint with one row a line, once, with one client.
func (b *bench) scan(ctx context.Context, r *recorder, path string) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	return b.parallel(ctx, 1, r, func(int) client {
		return func(a *call, i int64) (int64, error) {
			if i > 0 {
				return 0, io.EOF
			}
			_, lines, err := a.exchange(fasthttp.MethodGet, path, nil, fasthttp.StatusOK)
			if err == nil && lines < int64(b.cfg.Docs) {
				err = fmt.Errorf("%d lines came for %d documents", lines, b.cfg.Docs)
			}
			return int64(b.cfg.Docs), err
		}
	})
}

func (b *bench) allDocs(ctx context.Context, r *recorder) error {
	return b.scan(ctx, r, "/"+b.prefix+"bulk/_all_docs")
}

func (b *bench) changes(ctx context.Context, r *recorder) error {
	return b.scan(ctx, r, "/"+b.prefix+"bulk/_changes")
}

// attachmentClients is how many transfers run side by side.
const attachmentClients = 2

// attachments is how many each client transfers.
const attachments = 4

func (b *bench) attachmentPath(nr int, i int64) string {
	return fmt.Sprintf("/%satt/d-%d-%d/file.bin", b.prefix, nr, i)
}

func (b *bench) attachmentPut(ctx context.Context, r *recorder) error {
	if err := b.create("att"); err != nil {
		return err
	}
	return b.parallel(ctx, attachmentClients, r, func(nr int) client {
		return func(a *call, i int64) (int64, error) {
			if i >= attachments {
				return 0, io.EOF
			}
			if err := a.doStream(b.attachmentPath(nr, i), newNoise(b.cfg.AttachmentBytes), b.cfg.AttachmentBytes); err != nil {
				return 0, err
			}
			_, _, err := a.finish(fasthttp.StatusCreated)
			return b.cfg.AttachmentBytes, err
		}
	})
}

func (b *bench) attachmentGet(ctx context.Context, r *recorder) error {
	return b.parallel(ctx, attachmentClients, r, func(nr int) client {
		return func(a *call, i int64) (int64, error) {
			if i >= attachments {
				return 0, io.EOF
			}
			size, _, err := a.exchange(fasthttp.MethodGet, b.attachmentPath(nr, i), nil, fasthttp.StatusOK)
			if err == nil && size != b.cfg.AttachmentBytes {
				err = fmt.Errorf("%d bytes came of %d", size, b.cfg.AttachmentBytes)
			}
			return size, err
		}
	})
}

// createDatabases makes databases with one document each.
func (b *bench) createDatabases(ctx context.Context, r *recorder) error {
	var next atomic.Int64
	return b.parallel(ctx, min(b.cfg.Clients, 8), r, func(int) client {
		return func(a *call, _ int64) (int64, error) {
			n := next.Add(1) - 1
			if n >= int64(b.cfg.Databases) {
				return 0, io.EOF
			}
			name := fmt.Sprintf("c%d", n)
			if _, _, err := a.exchange(fasthttp.MethodPut, b.createPath(name), nil, fasthttp.StatusCreated, fasthttp.StatusAccepted); err != nil {
				return 0, err
			}
			_, _, err := a.exchange(fasthttp.MethodPut, "/"+b.prefix+name+"/doc", []byte(`{"a":1}`), fasthttp.StatusCreated)
			return 1, err
		}
	})
}

// noise is a stream of bytes that do not compress.
type noise struct {
	left  int64
	block []byte
}

func newNoise(size int64) *noise {
	block := make([]byte, 1<<20)
	for i := 0; i < len(block); i += 8 {
		z := mix(uint64(i))
		for j := range 8 {
			block[i+j] = byte(z >> (8 * j))
		}
	}
	return &noise{size, block}
}

// Read implements io.Reader.
func (n *noise) Read(p []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	c := copy(p, n.block[:min(int64(len(n.block)), n.left)])
	n.left -= int64(c)
	return c, nil
}

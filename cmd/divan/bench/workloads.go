package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// create makes the database of that name; one that is there already is fine.
func (b *bench) create(name string) error {
	a := b.newCall()
	defer a.release()
	return a.do(fasthttp.MethodPut, b.createPath(name), nil, fasthttp.StatusCreated, fasthttp.StatusAccepted, fasthttp.StatusPreconditionFailed)
}

func (b *bench) createPath(name string) []byte {
	path := "/" + b.prefix + name
	if b.cfg.Q > 0 {
		path += "?q=" + strconv.Itoa(b.cfg.Q)
	}
	return []byte(path)
}

func (b *bench) put(ctx context.Context, r *recorder) error { return b.putInto(ctx, r, "put") }

// putOne is put with one client: how long a write takes when there is no other.
func (b *bench) putOne(ctx context.Context, r *recorder) error {
	alone := *b
	alone.cfg.Clients = 1
	return alone.putInto(ctx, r, "one")
}

// putInto writes new documents one by one.
func (b *bench) putInto(ctx context.Context, r *recorder, db string) error {
	if err := b.create(db); err != nil {
		return err
	}
	var next atomic.Int64
	return b.timedRequests(ctx, r, func(int) client {
		var path, body []byte
		return func(a *call, _ int64) (int64, error) {
			n := next.Add(1) - 1
			path = append(append(append(append(path[:0], '/'), b.prefix...), db...), '/')
			path, body = b.appendID(path, n), b.appendDoc(body[:0], nil, nil, n)
			return 1, a.do(fasthttp.MethodPut, path, body, fasthttp.StatusCreated)
		}
	})
}

func (b *bench) bulk(ctx context.Context, r *recorder) error {
	if err := b.create("bulk"); err != nil {
		return err
	}
	err := b.bulkInto(ctx, r, "bulk", b.appendDoc)
	b.loaded = err == nil
	return err
}

// bulkInto writes all documents, each as appendDoc makes it of its id and number.
func (b *bench) bulkInto(ctx context.Context, r *recorder, db string, appendDoc func(dst, id, rev []byte, n int64) []byte) error {
	var next atomic.Int64
	return b.parallel(ctx, min(b.cfg.Clients, 8), r, func(int) client {
		var id, body []byte
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
				id = b.appendID(id[:0], first+i)
				body = appendDoc(body, id, nil, first+i)
			}
			body = append(body, `]}`...)
			return n, a.do(fasthttp.MethodPost, []byte("/"+b.prefix+db+"/_bulk_docs"), body, fasthttp.StatusCreated)
		}
	})
}

// load makes sure that the documents of the bulk workload are there and that
// the server has had its time with them.
func (b *bench) load(ctx context.Context) error {
	if !b.loaded {
		if err := b.bulk(ctx, newRecorder(workload{}, Config{})); err != nil {
			return err
		}
	}
	if b.settled {
		return nil
	}
	b.settled = true
	rest(ctx, b.cfg.Settle)
	return ctx.Err()
}

// rest waits for d or the end of ctx.
func rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-ctx.Done():
	case <-pause.C:
	}
}

// read asks for random documents of the bulk database until the time is up: each
// path consists of what stands before and after the document's id.
func (b *bench) read(ctx context.Context, r *recorder, before, after string) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	return b.timedRequests(ctx, r, func(int) client {
		var path []byte
		return func(a *call, _ int64) (int64, error) {
			path = append(append(append(path[:0], '/'), b.prefix...), before...)
			path = append(b.appendID(path, rand.Int64N(int64(b.cfg.Docs))), after...)
			return 1, a.do(fasthttp.MethodGet, path, nil, fasthttp.StatusOK)
		}
	})
}

func (b *bench) get(ctx context.Context, r *recorder) error { return b.read(ctx, r, "bulk/", "") }

// getR1 is get with a single copy asked, that of the node where it has one.
func (b *bench) getR1(ctx context.Context, r *recorder) error { return b.read(ctx, r, "bulk/", "?r=1") }

func (b *bench) allDocsLimit(ctx context.Context, r *recorder) error {
	return b.read(ctx, r, "bulk/_all_docs?limit=20&startkey=%22", "%22")
}

// once runs work with one client, which does it once for all documents of the
// bulk database.
func (b *bench) once(ctx context.Context, r *recorder, work func(a *call) error) error {
	return b.parallel(ctx, 1, r, func(int) client {
		return func(a *call, i int64) (int64, error) {
			if i > 0 {
				return 0, io.EOF
			}
			return int64(b.cfg.Docs), work(a)
		}
	})
}

// scan reads an endpoint with one row a line, once, with one client.
func (b *bench) scan(ctx context.Context, r *recorder, path string) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	return b.once(ctx, r, func(a *call) error {
		err := a.do(fasthttp.MethodGet, []byte(path), nil, fasthttp.StatusOK)
		if lines := a.body.lines; err == nil && lines < int64(b.cfg.Docs) {
			err = fmt.Errorf("%d lines came for %d documents", lines, b.cfg.Docs)
		}
		return err
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

func (b *bench) attachmentPath(nr int, i int64) []byte {
	return fmt.Appendf(nil, "/%satt/d-%d-%d/file.bin", b.prefix, nr, i)
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
			size := b.cfg.AttachmentBytes
			return size, a.upload(b.attachmentPath(nr, i), newNoise(size), size, fasthttp.StatusCreated)
		}
	})
}

func (b *bench) attachmentGet(ctx context.Context, r *recorder) error {
	return b.parallel(ctx, attachmentClients, r, func(nr int) client {
		return func(a *call, i int64) (int64, error) {
			if i >= attachments {
				return 0, io.EOF
			}
			err := a.do(fasthttp.MethodGet, b.attachmentPath(nr, i), nil, fasthttp.StatusOK)
			if size := a.body.size; err == nil && size != b.cfg.AttachmentBytes {
				err = fmt.Errorf("%d bytes came of %d", size, b.cfg.AttachmentBytes)
			}
			return a.body.size, err
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
			if err := a.do(fasthttp.MethodPut, b.createPath(name), nil, fasthttp.StatusCreated, fasthttp.StatusAccepted); err != nil {
				return 0, err
			}
			return 1, a.do(fasthttp.MethodPut, []byte("/"+b.prefix+name+"/doc"), []byte(`{"a":1}`), fasthttp.StatusCreated)
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

package bench

import (
	"context"
	"fmt"
	"io"

	"github.com/valyala/fasthttp"
)

// attachmentClients is how many transfers run side by side.
const attachmentClients = 2

// attachmentsEach is how many each client transfers.
const attachmentsEach = 4

// attachments are the workloads that transfer attachments.
type attachments struct{ rig }

func (t *attachments) path(nr int, i int64) []byte {
	return fmt.Appendf(nil, "/%satt/d-%d-%d/file.bin", t.server.prefix, nr, i)
}

func (t *attachments) put(ctx context.Context, r *recorder) error {
	if err := t.server.create("att"); err != nil {
		return err
	}
	return t.clients.parallel(ctx, attachmentClients, r, func(nr int) client {
		return func(a *call, i int64) (int64, error) {
			if i >= attachmentsEach {
				return 0, io.EOF
			}
			size := t.cfg.AttachmentBytes
			return size, a.upload(t.path(nr, i), newNoise(size), size, fasthttp.StatusCreated)
		}
	})
}

func (t *attachments) get(ctx context.Context, r *recorder) error {
	return t.clients.parallel(ctx, attachmentClients, r, func(nr int) client {
		return func(a *call, i int64) (int64, error) {
			if i >= attachmentsEach {
				return 0, io.EOF
			}
			err := a.do(fasthttp.MethodGet, t.path(nr, i), nil, fasthttp.StatusOK)
			if size := a.body.size; err == nil && size != t.cfg.AttachmentBytes {
				err = fmt.Errorf("%d bytes came of %d", size, t.cfg.AttachmentBytes)
			}
			return a.body.size, err
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

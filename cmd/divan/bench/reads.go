package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/valyala/fasthttp"
)

// reads are the workloads that read the documents of the bulk database.
type reads struct {
	rig
	writes *writes
}

// read asks for random documents of the bulk database until the time is up: each
// path consists of what stands before and after the document's id.
func (q *reads) read(ctx context.Context, r *recorder, before, after string) error {
	if err := q.writes.load(ctx); err != nil {
		return err
	}
	return q.clients.timedRequests(ctx, r, func(int) client {
		var path []byte
		return func(a *call, _ int64) (int64, error) {
			path = append(append(append(path[:0], '/'), q.server.prefix...), before...)
			path = append(q.docs.appendID(path, rand.Int64N(int64(q.cfg.Docs))), after...)
			return 1, a.do(fasthttp.MethodGet, path, nil, fasthttp.StatusOK)
		}
	})
}

func (q *reads) get(ctx context.Context, r *recorder) error { return q.read(ctx, r, "bulk/", "") }

// getR1 is get with a single copy asked, that of the node where it has one.
func (q *reads) getR1(ctx context.Context, r *recorder) error { return q.read(ctx, r, "bulk/", "?r=1") }

func (q *reads) allDocsLimit(ctx context.Context, r *recorder) error {
	return q.read(ctx, r, "bulk/_all_docs?limit=20&startkey=%22", "%22")
}

// scan reads an endpoint with one row a line, once, with one client.
func (q *reads) scan(ctx context.Context, r *recorder, path string) error {
	if err := q.writes.load(ctx); err != nil {
		return err
	}
	return q.clients.once(ctx, r, q.cfg.Docs, func(a *call) error {
		err := a.do(fasthttp.MethodGet, []byte(path), nil, fasthttp.StatusOK)
		if lines := a.body.lines; err == nil && lines < int64(q.cfg.Docs) {
			err = fmt.Errorf("%d lines came for %d documents", lines, q.cfg.Docs)
		}
		return err
	})
}

func (q *reads) allDocs(ctx context.Context, r *recorder) error {
	return q.scan(ctx, r, "/"+q.server.prefix+"bulk/_all_docs")
}

func (q *reads) changes(ctx context.Context, r *recorder) error {
	return q.scan(ctx, r, "/"+q.server.prefix+"bulk/_changes")
}

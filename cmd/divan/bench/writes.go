package bench

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// writes are the workloads that write documents. The others read what they wrote.
type writes struct {
	rig
	loaded  bool // the bulk database is there
	settled bool // and the server has had its time with it
}

func (w *writes) put(ctx context.Context, r *recorder) error { return w.putInto(ctx, r, "put") }

// putOne is put with one client: how long a write takes when there is no other.
func (w *writes) putOne(ctx context.Context, r *recorder) error {
	one := *w.clients
	one.number = 1
	alone := writes{rig: w.rig}
	alone.clients = &one
	return alone.putInto(ctx, r, "one")
}

// putInto writes new documents one by one.
func (w *writes) putInto(ctx context.Context, r *recorder, db string) error {
	if err := w.server.create(db); err != nil {
		return err
	}
	var next atomic.Int64
	return w.clients.timedRequests(ctx, r, func(int) client {
		var path, body []byte
		return func(a *call, _ int64) (int64, error) {
			n := next.Add(1) - 1
			path = append(append(append(append(path[:0], '/'), w.server.prefix...), db...), '/')
			path, body = w.docs.appendID(path, n), w.docs.appendDoc(body[:0], nil, nil, n)
			return 1, a.do(fasthttp.MethodPut, path, body, fasthttp.StatusCreated)
		}
	})
}

func (w *writes) bulk(ctx context.Context, r *recorder) error {
	if err := w.server.create("bulk"); err != nil {
		return err
	}
	err := w.bulkInto(ctx, r, "bulk", w.docs.appendDoc)
	w.loaded = err == nil
	return err
}

// bulkInto writes all documents, each as appendDoc makes it of its id and number.
func (w *writes) bulkInto(ctx context.Context, r *recorder, db string, appendDoc func(dst, id, rev []byte, n int64) []byte) error {
	var next atomic.Int64
	return w.clients.parallel(ctx, min(w.cfg.Clients, 8), r, func(int) client {
		var id, body []byte
		return func(a *call, _ int64) (int64, error) {
			first := next.Add(int64(w.cfg.Batch)) - int64(w.cfg.Batch)
			n := min(int64(w.cfg.Batch), int64(w.cfg.Docs)-first)
			if n <= 0 {
				return 0, io.EOF
			}
			body = append(body[:0], `{"docs":[`...)
			for i := range n {
				if i > 0 {
					body = append(body, ',')
				}
				id = w.docs.appendID(id[:0], first+i)
				body = appendDoc(body, id, nil, first+i)
			}
			body = append(body, `]}`...)
			return n, a.do(fasthttp.MethodPost, []byte("/"+w.server.prefix+db+"/_bulk_docs"), body, fasthttp.StatusCreated)
		}
	})
}

// load makes sure that the documents of the bulk workload are there and that
// the server has had its time with them.
func (w *writes) load(ctx context.Context) error {
	if !w.loaded {
		if err := w.bulk(ctx, newRecorder(workload{}, Config{})); err != nil {
			return err
		}
	}
	if w.settled {
		return nil
	}
	w.settled = true
	rest(ctx, w.cfg.Settle)
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

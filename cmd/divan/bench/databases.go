package bench

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// databases is the workload that makes databases.
type databases struct{ rig }

// create makes databases with one document each.
func (d *databases) create(ctx context.Context, r *recorder) error {
	var next atomic.Int64
	return d.clients.parallel(ctx, min(d.cfg.Clients, 8), r, func(int) client {
		return func(a *call, _ int64) (int64, error) {
			n := next.Add(1) - 1
			if n >= int64(d.cfg.Databases) {
				return 0, io.EOF
			}
			name := fmt.Sprintf("c%d", n)
			if err := a.do(fasthttp.MethodPut, d.server.createPath(name), nil, fasthttp.StatusCreated, fasthttp.StatusAccepted); err != nil {
				return 0, err
			}
			return 1, a.do(fasthttp.MethodPut, []byte("/"+d.server.prefix+name+"/doc"), []byte(`{"a":1}`), fasthttp.StatusCreated)
		}
	})
}

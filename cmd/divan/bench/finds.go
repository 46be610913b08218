package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/valyala/fasthttp"
)

// mangoIndex is the index of the find workloads.
const mangoIndex = `{"index":{"fields":["n"]},"ddoc":"n","name":"n"}`

// finds are the workloads with Mango queries.
type finds struct {
	rig
	writes  *writes
	indexed bool // the Mango index of the bulk database is built
}

// build waits for the first answer that a Mango index gives.
func (f *finds) build(ctx context.Context, r *recorder) error {
	if err := f.writes.load(ctx); err != nil {
		return err
	}
	err := f.clients.once(ctx, r, f.cfg.Docs, func(a *call) error {
		if err := a.do(fasthttp.MethodPost, []byte("/"+f.server.prefix+"bulk/_index"), []byte(mangoIndex), fasthttp.StatusOK); err != nil {
			return err
		}
		return f.one(a, []byte(`{"selector":{"n":0}}`))
	})
	f.indexed = err == nil
	return err
}

// one asks _find for something that there is.
func (f *finds) one(a *call, query []byte) error {
	if err := a.do(fasthttp.MethodPost, []byte("/"+f.server.prefix+"bulk/_find"), query, fasthttp.StatusOK); err != nil {
		return err
	}
	return a.want(`"_id"`)
}

// find looks up random documents by the indexed member.
func (f *finds) find(ctx context.Context, r *recorder) error {
	if !f.indexed {
		if err := f.build(ctx, newRecorder(workload{}, Config{})); err != nil {
			return err
		}
	}
	return f.clients.timedRequests(ctx, r, func(int) client {
		var query []byte
		return func(a *call, _ int64) (int64, error) {
			query = fmt.Appendf(query[:0], `{"selector":{"n":%d}}`, rand.IntN(f.cfg.Docs))
			return 1, f.one(a, query)
		}
	})
}

// scan asks for something that only a look at every document tells not to
// be there.
func (f *finds) scan(ctx context.Context, r *recorder) error {
	if err := f.writes.load(ctx); err != nil {
		return err
	}
	return f.clients.once(ctx, r, f.cfg.Docs, func(a *call) error {
		return a.do(fasthttp.MethodPost, []byte("/"+f.server.prefix+"bulk/_find"), []byte(`{"selector":{"type":"nothing"}}`), fasthttp.StatusOK)
	})
}

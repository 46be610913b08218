package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// groups is how many groups the view by_group has at group_level=1.
const groups = 1000

// design is the design document of the view workloads: two map functions with
// built-in reduces.
const design = `{"views":{` +
	`"by_value":{"map":"function (doc) { emit(doc.value, doc.n); }","reduce":"_sum"},` +
	`"by_group":{"map":"function (doc) { emit([doc.n % 1000, doc.n], doc.value); }","reduce":"_stats"}}}`

// mangoIndex is the index of the find workloads.
const mangoIndex = `{"index":{"fields":["n"]},"ddoc":"n","name":"n"}`

// putDesign saves the design document of the views; one that is there is fine.
func (b *bench) putDesign(a *call, db string) error {
	return a.do(fasthttp.MethodPut, []byte("/"+b.prefix+db+"/_design/bench"), []byte(design),
		fasthttp.StatusCreated, fasthttp.StatusAccepted, fasthttp.StatusConflict)
}

// viewBuild waits for the first answer of the views.
func (b *bench) viewBuild(ctx context.Context, r *recorder) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	err := b.once(ctx, r, func(a *call) error {
		if err := b.putDesign(a, "bulk"); err != nil {
			return err
		}
		path := "/" + b.prefix + "bulk/_design/bench/_view/by_value"
		if err := a.do(fasthttp.MethodGet, []byte(path), nil, fasthttp.StatusOK); err != nil {
			return err
		}
		return a.want(`"value"`)
	})
	b.viewed = err == nil
	return err
}

// views makes sure that the views of the bulk database are built.
func (b *bench) views(ctx context.Context) error {
	if b.viewed {
		return nil
	}
	return b.viewBuild(ctx, newRecorder(workload{}, Config{}))
}

// viewRange reads 20 rows from a random key on.
func (b *bench) viewRange(ctx context.Context, r *recorder) error {
	return b.askViews(ctx, r, `{"id"`, func(path []byte) []byte {
		return fmt.Appendf(path, "by_value?reduce=false&limit=20&startkey=%d", rand.IntN(990))
	})
}

// viewReduce reduces a range of random keys, of any width.
func (b *bench) viewReduce(ctx context.Context, r *recorder) error {
	return b.askViews(ctx, r, `"value"`, func(path []byte) []byte {
		from := rand.IntN(990)
		return fmt.Appendf(path, "by_value?startkey=%d&endkey=%d", from, from+1+rand.IntN(1000-from))
	})
}

// viewGroup reads one row for each of the groups.
func (b *bench) viewGroup(ctx context.Context, r *recorder) error {
	return b.askViews(ctx, r, `"value"`, func(path []byte) []byte {
		return append(path, "by_group?group_level=1"...)
	})
}

// askViews asks the views until the time is up; view appends the view and the
// parameters of a question to a path. Each answer begins with some text that
// contains part.
func (b *bench) askViews(ctx context.Context, r *recorder, part string, view func(path []byte) []byte) error {
	if err := b.views(ctx); err != nil {
		return err
	}
	return b.timedRequests(ctx, r, func(int) client {
		var path []byte
		return func(a *call, _ int64) (int64, error) {
			path = append(append(append(path[:0], '/'), b.prefix...), "bulk/_design/bench/_view/"...)
			path = view(path)
			if err := a.do(fasthttp.MethodGet, path, nil, fasthttp.StatusOK); err != nil {
				return 0, err
			}
			return 1, a.want(part)
		}
	})
}

// putView is put into a database with views, which the server keeps up to date
// behind the writes.
func (b *bench) putView(ctx context.Context, r *recorder) error {
	if err := b.create("warm"); err != nil {
		return err
	}
	a := b.newCall()
	defer a.release()
	if err := b.putDesign(a, "warm"); err != nil {
		return err
	}
	return b.putInto(ctx, r, "warm")
}

// viewFresh writes documents into a database of its own and asks the view for
// each as soon as it is written.
func (b *bench) viewFresh(ctx context.Context, r *recorder) error {
	if err := b.create("fresh"); err != nil {
		return err
	}
	a := b.newCall()
	defer a.release()
	if err := b.putDesign(a, "fresh"); err != nil {
		return err
	}
	var next atomic.Int64
	return b.timed(ctx, r, func(int) client {
		var path, body, id []byte
		return func(a *call, _ int64) (int64, error) {
			n := next.Add(1) - 1
			id = b.appendID(id[:0], n)
			path = fmt.Appendf(path[:0], "/%sfresh/%s", b.prefix, id)
			body = b.appendDoc(body[:0], nil, nil, n)
			if err := a.do(fasthttp.MethodPut, path, body, fasthttp.StatusCreated); err != nil {
				return 0, err
			}
			path = fmt.Appendf(path[:0], "/%sfresh/_design/bench/_view/by_group?reduce=false&key=[%d,%d]", b.prefix, n%groups, n)
			if err := a.do(fasthttp.MethodGet, path, nil, fasthttp.StatusOK); err != nil {
				return 0, err
			}
			return 1, a.want(string(id))
		}
	})
}

// findBuild waits for the first answer that a Mango index gives.
func (b *bench) findBuild(ctx context.Context, r *recorder) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	err := b.once(ctx, r, func(a *call) error {
		if err := a.do(fasthttp.MethodPost, []byte("/"+b.prefix+"bulk/_index"), []byte(mangoIndex), fasthttp.StatusOK); err != nil {
			return err
		}
		return b.findOne(a, []byte(`{"selector":{"n":0}}`))
	})
	b.indexed = err == nil
	return err
}

// findOne asks _find for something that there is.
func (b *bench) findOne(a *call, query []byte) error {
	if err := a.do(fasthttp.MethodPost, []byte("/"+b.prefix+"bulk/_find"), query, fasthttp.StatusOK); err != nil {
		return err
	}
	return a.want(`"_id"`)
}

// find looks up random documents by the indexed member.
func (b *bench) find(ctx context.Context, r *recorder) error {
	if !b.indexed {
		if err := b.findBuild(ctx, newRecorder(workload{}, Config{})); err != nil {
			return err
		}
	}
	return b.timedRequests(ctx, r, func(int) client {
		var query []byte
		return func(a *call, _ int64) (int64, error) {
			query = fmt.Appendf(query[:0], `{"selector":{"n":%d}}`, rand.IntN(b.cfg.Docs))
			return 1, b.findOne(a, query)
		}
	})
}

// findScan asks for something that only a look at every document tells not to
// be there.
func (b *bench) findScan(ctx context.Context, r *recorder) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	return b.once(ctx, r, func(a *call) error {
		return a.do(fasthttp.MethodPost, []byte("/"+b.prefix+"bulk/_find"), []byte(`{"selector":{"type":"nothing"}}`), fasthttp.StatusOK)
	})
}

// want fails when the beginning of the last answer does not contain part.
func (a *call) want(part string) error {
	if !bytes.Contains(a.body.start, []byte(part)) {
		return fmt.Errorf("no %s in the answer: %s", part, a.body.start)
	}
	return nil
}

package bench

import (
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

// views are the workloads with views of map and reduce functions.
type views struct {
	rig
	writes *writes
	viewed bool // the views of the bulk database are built
}

// putDesign saves the design document of the views; one that is there is fine.
func (v *views) putDesign(a *call, db string) error {
	return a.do(fasthttp.MethodPut, []byte("/"+v.server.prefix+db+"/_design/bench"), []byte(design),
		fasthttp.StatusCreated, fasthttp.StatusAccepted, fasthttp.StatusConflict)
}

// build waits for the first answer of the views.
func (v *views) build(ctx context.Context, r *recorder) error {
	if err := v.writes.load(ctx); err != nil {
		return err
	}
	err := v.clients.once(ctx, r, v.cfg.Docs, func(a *call) error {
		if err := v.putDesign(a, "bulk"); err != nil {
			return err
		}
		path := "/" + v.server.prefix + "bulk/_design/bench/_view/by_value"
		if err := a.do(fasthttp.MethodGet, []byte(path), nil, fasthttp.StatusOK); err != nil {
			return err
		}
		return a.want(`"value"`)
	})
	v.viewed = err == nil
	return err
}

// built makes sure that the views of the bulk database are built.
func (v *views) built(ctx context.Context) error {
	if v.viewed {
		return nil
	}
	return v.build(ctx, newRecorder(workload{}, Config{}))
}

// rangeOf reads 20 rows from a random key on.
func (v *views) rangeOf(ctx context.Context, r *recorder) error {
	return v.ask(ctx, r, `{"id"`, func(path []byte) []byte {
		return fmt.Appendf(path, "by_value?reduce=false&limit=20&startkey=%d", rand.IntN(990))
	})
}

// reduce reduces a range of random keys, of any width.
func (v *views) reduce(ctx context.Context, r *recorder) error {
	return v.ask(ctx, r, `"value"`, func(path []byte) []byte {
		from := rand.IntN(990)
		return fmt.Appendf(path, "by_value?startkey=%d&endkey=%d", from, from+1+rand.IntN(1000-from))
	})
}

// group reads one row for each of the groups.
func (v *views) group(ctx context.Context, r *recorder) error {
	return v.ask(ctx, r, `"value"`, func(path []byte) []byte {
		return append(path, "by_group?group_level=1"...)
	})
}

// ask asks the views until the time is up; view appends the view and the
// parameters of a question to a path. Each answer begins with some text that
// contains part.
func (v *views) ask(ctx context.Context, r *recorder, part string, view func(path []byte) []byte) error {
	if err := v.built(ctx); err != nil {
		return err
	}
	return v.clients.timedRequests(ctx, r, func(int) client {
		var path []byte
		return func(a *call, _ int64) (int64, error) {
			path = append(append(append(path[:0], '/'), v.server.prefix...), "bulk/_design/bench/_view/"...)
			path = view(path)
			if err := a.do(fasthttp.MethodGet, path, nil, fasthttp.StatusOK); err != nil {
				return 0, err
			}
			return 1, a.want(part)
		}
	})
}

// put is put into a database with views, which the server keeps up to date
// behind the writes.
func (v *views) put(ctx context.Context, r *recorder) error {
	if err := v.server.create("warm"); err != nil {
		return err
	}
	a := v.server.newCall()
	defer a.release()
	if err := v.putDesign(a, "warm"); err != nil {
		return err
	}
	return v.writes.putInto(ctx, r, "warm")
}

// fresh writes documents into a database of its own and asks the view for
// each as soon as it is written.
func (v *views) fresh(ctx context.Context, r *recorder) error {
	if err := v.server.create("fresh"); err != nil {
		return err
	}
	a := v.server.newCall()
	defer a.release()
	if err := v.putDesign(a, "fresh"); err != nil {
		return err
	}
	var next atomic.Int64
	return v.clients.timed(ctx, r, func(int) client {
		var path, body, id []byte
		return func(a *call, _ int64) (int64, error) {
			n := next.Add(1) - 1
			id = v.docs.appendID(id[:0], n)
			path = fmt.Appendf(path[:0], "/%sfresh/%s", v.server.prefix, id)
			body = v.docs.appendDoc(body[:0], nil, nil, n)
			if err := a.do(fasthttp.MethodPut, path, body, fasthttp.StatusCreated); err != nil {
				return 0, err
			}
			path = fmt.Appendf(path[:0], "/%sfresh/_design/bench/_view/by_group?reduce=false&key=[%d,%d]", v.server.prefix, n%groups, n)
			if err := a.do(fasthttp.MethodGet, path, nil, fasthttp.StatusOK); err != nil {
				return 0, err
			}
			return 1, a.want(string(id))
		}
	})
}

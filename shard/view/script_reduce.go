package view

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"divan/shard/script"
	"divan/shard/view/reduce"
	"divan/storage/doc"
)

// Reducer returns the reduce function with a source; lib are the modules that it
// may require, nil for none.
func (v *Views) Reducer(source string, lib []byte) (reduce.Function, error) {
	f, err := reduce.BuiltinWithin(source, v.limit)
	if f != nil || err != nil {
		return f, err
	}
	r, err := v.compiled.get(v.scripts, source, lib)
	if err != nil {
		return nil, err
	}
	return &scriptReduce{r: r, source: source, limit: v.limit, log: v.log}, nil
}

// compiledReducers are the JavaScript reduce functions that were asked for. VMs
// that nobody uses go by themselves, so that forgetting one costs nothing.
type compiledReducers struct {
	sync.Mutex
	known map[string]*script.Reducer // by source and modules
}

// maxCompiled is how many are remembered.
const maxCompiled = 256

func (c *compiledReducers) get(scripts *script.Engine, source string, lib []byte) (*script.Reducer, error) {
	key := source + "\x00" + string(lib)
	c.Lock()
	r := c.known[key]
	c.Unlock()
	if r != nil {
		return r, nil
	}
	r, err := scripts.Reducer(source, lib)
	if err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	if c.known == nil || len(c.known) >= maxCompiled {
		c.known = map[string]*script.Reducer{}
	}
	c.known[key] = r
	return r, nil
}

// scriptReduce is a reduce function in JavaScript. Its states are the JSON that
// it returns.
type scriptReduce struct {
	r      *script.Reducer
	source string
	limit  func() reduce.Limit
	log    *zap.Logger
	ctx    context.Context // of who asks; nil: only time limits a call
}

// bind returns the function for one who asks.
func (r *reducer) bind(ctx context.Context) reduce.Function {
	f, ok := r.function.(*scriptReduce)
	if !ok {
		return r.function
	}
	bound := *f
	bound.ctx = ctx
	return &bound
}

// Reduce implements reduce.Function.
func (f *scriptReduce) Reduce(dst []byte, rows []reduce.Row) ([]byte, error) {
	values := make([][]byte, len(rows))
	// What CouchDB would send to its query server, whose length counts for the
	// limit: ["reduce",["…"],[[["key","id"],value],…]].
	input := len(`["reduce",[""],[]]`) + len(f.source)
	for i := range rows {
		r := &rows[i]
		values[i] = r.Value
		input += len(`[[,""],],`) + len(r.Key) + len(r.ID) + len(r.Value)
	}
	var keys []byte
	if f.r.KeysUsed() {
		keys = append(make([]byte, 0, input), '[')
		for i := range rows {
			if i > 0 {
				keys = append(keys, ',')
			}
			keys = append(append(append(keys, '['), rows[i].Key...), ',')
			keys = append(doc.AppendString(keys, rows[i].ID), ']')
		}
		keys = append(keys, ']')
	}
	from := len(dst)
	dst, err := f.r.Reduce(f.ctx, dst, keys, values)
	if err != nil {
		return dst, fmt.Errorf("reduce: %w", err)
	}
	return f.limited(dst, from, input), nil
}

// Rereduce implements reduce.Function.
func (f *scriptReduce) Rereduce(dst []byte, states [][]byte) ([]byte, error) {
	input := len(`["rereduce",[""],[]]`) + len(f.source)
	for _, s := range states {
		input += len(`,`) + len(s)
	}
	from := len(dst)
	dst, err := f.r.Rereduce(f.ctx, dst, states)
	if err != nil {
		return dst, fmt.Errorf("rereduce: %w", err)
	}
	return f.limited(dst, from, input), nil
}

// Final implements reduce.Function.
func (f *scriptReduce) Final(dst, state []byte) ([]byte, error) { return append(dst, state...), nil }

// limited replaces a result that is too long by the error that CouchDB shows for
// it (semantics.md section 12.5).
func (f *scriptReduce) limited(dst []byte, from, input int) []byte {
	output := len(dst) - from
	limit := f.limit()
	switch {
	case !limit.Exceeded(input, output):
		return dst
	case limit.LogOnly:
		f.log.Warn("reduce_limit: " + reduce.OverflowReason(input, output))
		return dst
	}
	dst = append(dst[:from], `{"reduce_overflow_error":`...)
	return append(doc.AppendString(dst, reduce.OverflowReason(input, output)), '}')
}

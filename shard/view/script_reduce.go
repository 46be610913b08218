package view

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.uber.org/zap"

	"divan/shard/script"
	"divan/shard/view/reduce"
	"divan/storage/doc"
)

// Reducer returns the reduce function with a source, of an instance of a database
// (shard/ring.CopyTail); lib are the modules that it may require, nil for none. What it
// does is on behalf of ctx.
func (v *Views) Reducer(ctx context.Context, instance, source string, lib []byte) (reduce.Function, error) {
	f, err := reduce.BuiltinWithin(source, v.limit)
	if f != nil || err != nil {
		return f, err
	}
	r, err := v.compiled.get(ctx, v.scripts, instance, source, lib)
	if err != nil {
		return nil, err
	}
	s := v.scriptReduce(r, source)
	s.ctx = ctx
	return s, nil
}

func (v *Views) scriptReduce(r *script.Reducer, source string) *scriptReduce {
	return &scriptReduce{r: r, source: source, limit: v.limit, log: v.log}
}

// compiledReducers are the JavaScript reduce functions that queries asked for, those
// used longest ago are let go of. An index has its own, which share VMs with
// these.
type compiledReducers struct {
	sync.Mutex
	known *simplelru.LRU[reducerKey, *script.Reducer] // nil: none yet
	bytes int
}

// reducerKey holds all that a reduce function may depend on: the instance of the
// database, because no two share anything, its source and its modules.
type reducerKey struct{ instance, source, lib string }

func (k *reducerKey) size() int { return reducerBytes + len(k.instance) + len(k.source) + len(k.lib) }

const (
	maxCompiled  = 8 << 20 // bytes of sources and modules that are remembered
	reducerBytes = 512     // of a function besides
)

func (c *compiledReducers) get(ctx context.Context, scripts *script.Engine, instance, source string, lib []byte) (*script.Reducer, error) {
	key := reducerKey{instance, source, string(lib)}
	if r := c.find(key); r != nil {
		return r, nil
	}
	r, err := scripts.Reducer(ctx, instance, source, lib) // compiles, maybe for milliseconds
	if err == nil {
		c.add(key, r)
	}
	return r, err
}

func (c *compiledReducers) find(key reducerKey) *script.Reducer {
	c.Lock()
	defer c.Unlock()
	if c.known == nil {
		return nil
	}
	r, _ := c.known.Get(key)
	return r
}

func (c *compiledReducers) add(key reducerKey, r *script.Reducer) {
	c.Lock()
	defer c.Unlock()
	if c.known == nil {
		c.known, _ = simplelru.NewLRU[reducerKey, *script.Reducer](math.MaxInt, nil) // it refuses what is not positive
	}
	if c.known.Contains(key) {
		return
	}
	c.known.Add(key, r)
	c.bytes += key.size()
	for c.bytes > maxCompiled && c.known.Len() > 1 {
		old, oldest, _ := c.known.RemoveOldest()
		c.bytes -= old.size()
		oldest.Close() // a query that has it gets VMs still, which go when they are given back
	}
}

// scriptReduce is a reduce function in JavaScript. Its states are the JSON that
// it returns.
type scriptReduce struct {
	r      *script.Reducer
	source string
	limit  func() reduce.Limit
	log    *zap.Logger
	ctx    context.Context // of who asks; of a bound function
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
		if _, is := reduce.OverflowOf(s); is { // the function would take it for a value
			return append(dst, s...), nil
		}
		input += len(`,`) + len(s)
	}
	from := len(dst)
	dst, err := f.r.Rereduce(f.ctx, dst, states)
	if err != nil {
		return dst, fmt.Errorf("rereduce: %w", err)
	}
	return f.limited(dst, from, input), nil
}

// Final implements reduce.Function. Its error for a result that was too long is
// that of the row.
func (f *scriptReduce) Final(dst, state []byte) ([]byte, error) {
	if reason, is := reduce.OverflowOf(state); is {
		return dst, &reduce.OverflowError{Reason: reason}
	}
	return append(dst, state...), nil
}

// limited replaces a result that is too long by an error (semantics.md section
// 12.5).
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
	return reduce.AppendOverflow(dst[:from], input, output)
}

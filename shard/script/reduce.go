package script

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// Reducer has the VMs of a reduce function. It is safe for concurrent use.
type Reducer struct {
	set  functionSet
	keys bool // the function may look at them
}

// Reducer compiles a reduce function; lib are the modules that it may require
// (views.lib, JSON; nil: none). instance names the database, and no other one that
// had or will have its name: reducers of the same source in the same instance share
// VMs. Empty: none do.
func (e *Engine) Reducer(ctx context.Context, instance, source string, lib []byte) (*Reducer, error) {
	p := Program{Maps: []string{source}, Lib: lib}
	keys := analyse(source).of(0)
	r := &Reducer{keys: keys.all || len(keys.names) > 0}
	key := keyOf(instance, []byte("reduce"), []byte(source), lib)
	r.set = functionSet{engine: e, key: key, name: instance, instance: instance, kind: forIndexes, setUp: func(v *vm) error { return v.functions.load(p) }}
	v, err := r.set.acquire(ctx)
	if err != nil {
		return nil, err
	}
	r.set.release(v)
	return r, nil
}

// KeysUsed reports whether Reduce wants keys: if not, it may get nil.
func (r *Reducer) KeysUsed() bool { return r.keys }

// Close closes the VMs of the function.
func (r *Reducer) Close() { r.set.close() }

// Reduce appends the reduction of values, whose keys and document ids are
// [[key,id],…]; see KeysUsed. A function that throws gives null, as in CouchDB;
// an error means that the VM could not go on.
func (r *Reducer) Reduce(ctx context.Context, dst, keysAndIDs []byte, values [][]byte) ([]byte, error) {
	return r.call(ctx, dst, keysAndIDs, values, false)
}

// Rereduce appends the reduction of reductions.
func (r *Reducer) Rereduce(ctx context.Context, dst []byte, values [][]byte) ([]byte, error) {
	return r.call(ctx, dst, nil, values, true)
}

func (r *Reducer) call(ctx context.Context, dst, keys []byte, values [][]byte, again bool) ([]byte, error) {
	v, err := r.set.acquire(ctx)
	if err != nil {
		return dst, err
	}
	defer r.set.release(v)
	defer r.set.engine.called.reduces.ended(time.Now())
	v.begin(ctx, r.set.engine.o.Timeout())
	if err := v.functions.make(); err != nil {
		return dst, err
	}
	v.joined = appendArray(v.joined[:0], values)
	if err := v.takeAllowance(keys, v.joined); err != nil {
		return dst, err
	}
	k := null()
	if keys != nil && (r.keys || !v.functions.analysed) {
		if k, err = v.realm.parse(keys); err != nil {
			return dst, err
		}
		defer v.realm.free(k)
	}
	if isException(k) {
		return dst, v.exceptions.err()
	}
	x, err := v.realm.parse(v.joined)
	if err != nil {
		return dst, err
	}
	defer v.realm.free(x)
	if isException(x) {
		return dst, v.exceptions.err()
	}
	v.encoder.unwind(0)
	res := v.realm.call(v.functions.made[0], undefined(), k, x, boolean(again))
	defer v.realm.free(res)
	if !isException(res) && v.limits.halted == nil && v.encoder.encodeOrNull(res) {
		return append(dst, v.encoder.since(0)...), nil
	}
	t := v.exceptions.take()
	if t == nil {
		return dst, v.limits.stopped()
	}
	if err := t.fatal(); err != nil {
		return dst, err
	}
	r.set.engine.o.Logger.Info("a reduce function raised an exception", zap.String("error", bounded(t.Error())))
	return append(dst, "null"...), nil
}

package auth

import (
	"context"
	"errors"
	"sync"
)

// errAbandoned is returned to waiters when the call they wait for panicked.
var errAbandoned = errors.New("the call that this one waited for did not end")

// singleflight lets callers that want the same thing at the same time share one
// computation. It runs on the goroutine of the first of them, so nothing has
// to be waited for when the server stops. The zero value is ready.
type singleflight[K comparable, V any] struct {
	mu struct {
		sync.Mutex
		calls map[K]*flightCall[V]
	}
}

type flightCall[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// do returns the result of fn, called here or by the caller that asked for k first.
//
// Contexts: fn gets the context of the caller on whose goroutine it runs. When
// it fails because that one ended, a waiter whose own context goes on takes
// over; a waiter whose context ends stops waiting.
func (f *singleflight[K, V]) do(ctx context.Context, k K, fn func(context.Context) (V, error)) (V, error) {
	for {
		call, leader := f.join(k)
		if leader {
			return f.lead(ctx, k, call, fn)
		}
		select {
		case <-call.done:
		case <-ctx.Done():
			var zero V
			return zero, context.Cause(ctx)
		}
		if !ended(call.err) || ctx.Err() != nil {
			return call.value, call.err
		}
	}
}

func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (f *singleflight[K, V]) join(k K) (call *flightCall[V], leader bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if call := f.mu.calls[k]; call != nil {
		return call, false
	}
	if f.mu.calls == nil {
		f.mu.calls = make(map[K]*flightCall[V])
	}
	call = &flightCall[V]{done: make(chan struct{}), err: errAbandoned}
	f.mu.calls[k] = call
	return call, true
}

func (f *singleflight[K, V]) lead(ctx context.Context, k K, call *flightCall[V], fn func(context.Context) (V, error)) (V, error) {
	defer func() {
		f.mu.Lock()
		delete(f.mu.calls, k)
		f.mu.Unlock()
		close(call.done)
	}()
	call.value, call.err = fn(ctx)
	return call.value, call.err
}

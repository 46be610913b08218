package script

import (
	"context"
	"errors"
	"io"
	"time"

	"modernc.org/libc"

	"divan/shard/fairqueue"
)

// ListStream is the way of rows into a list function, and of text out of it.
type ListStream interface {
	// Row returns the next row as JSON text, and nil or io.EOF behind the last
	// one. It is called as the function asks for rows, so perhaps not for all.
	Row() ([]byte, error)
	// Start takes the response object (headers, code), first and perhaps again.
	Start(resp []byte) error
	// Send takes text of the body.
	Send(text []byte) error
	// Abort ends a Start or Send that waits for its client, on another goroutine. It
	// must not wait.
	Abort()
}

// listing is a list function that runs.
type listing struct {
	ListStream
	timeout time.Duration
	account string

	// While it waits for rows or for its client nothing changes these but cutLocked.
	sending bool      // it waits for the client
	since   time.Time // it waits
	cut     bool      // it is being ended
}

var errNoList = errors.New("no list function is running")

// List runs a list function. An error of the stream ends it. The time of the stream does not count
// as the function's, which has to come to the next row, or to its end, in time; others may have its
// turn and its slot meanwhile. An error that comes after Start has to be told in the body.
func (d *Design) List(ctx context.Context, name string, head, req []byte, stream ListStream) error {
	v, err := d.set.acquireFor(ctx, forLists)
	if err != nil {
		return err
	}
	defer d.set.release(v)
	timeout := d.set.engine.o.Timeout()
	v.begin(ctx, timeout)
	v.list = &listing{ListStream: stream, timeout: timeout, account: fairqueue.CallerOf(ctx).Account}
	defer func() { v.list = nil }()
	f, err := d.function(v, "lists", name)
	if err != nil {
		return err
	}
	defer v.realm.free(f)
	defer d.set.engine.called.ended("runList", time.Now())
	return v.runWith("runList", f, [][]byte{head, req}, nothing)
}

// give hands the first argument as text to f.
func give(ctx uintptr, argc int32, argv uintptr, f func(l *listing, text []byte) error) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	s, ok := v.realm.text(argument(argc, argv, 0))
	if !ok {
		return exceptionValue()
	}
	if err := v.outside(true, func(l *listing) error { return f(l, []byte(s)) }); err != nil {
		return v.realm.abort(err)
	}
	return undefined()
}

func nativeStart(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) value {
	return give(ctx, argc, argv, func(l *listing, text []byte) error { return l.Start(replaceSurrogates(text)) })
}

func nativeSend(_ *libc.TLS, ctx uintptr, _ value, argc int32, argv uintptr) value {
	return give(ctx, argc, argv, func(l *listing, text []byte) error { return l.Send(text) })
}

// nativeRow returns the next row, undefined behind the last one.
func nativeRow(_ *libc.TLS, ctx uintptr, _ value, _ int32, _ uintptr) (result value) {
	v := vmOf(ctx)
	defer v.contain(&result)
	var row []byte
	err := v.outside(false, func(l *listing) (err error) {
		row, err = l.Row()
		return err
	})
	switch {
	case errors.Is(err, io.EOF) || err == nil && row == nil:
		return undefined()
	case err != nil:
		return v.realm.abort(err)
	}
	x, err := v.realm.parse(row)
	if err != nil {
		return v.realm.abort(err)
	}
	return x
}

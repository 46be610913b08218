package bench

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// clients send requests to a server side by side.
type clients struct {
	server   *server
	number   int
	duration time.Duration // of a workload that has no fixed amount of work
	patience time.Duration // with a small request
	constant *constant     // nil: requests are not compared with it
}

// client is one of the parallel clients of a workload: it is called with a
// growing number until it returns io.EOF. It returns how much it got done.
type client func(a *call, i int64) (done int64, err error)

// timed runs all clients until the time for a workload is up; the requests that
// are under way then are finished.
func (c *clients) timed(ctx context.Context, r *recorder, newClient func(nr int) client) error {
	return c.during(ctx, c.duration, r, newClient)
}

func (c *clients) during(ctx context.Context, duration time.Duration, r *recorder, newClient func(nr int) client) error {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return c.parallel(ctx, c.number, r, func(nr int) client {
		work := newClient(nr)
		return func(a *call, i int64) (int64, error) {
			a.req.SetTimeout(c.patience)
			return work(a, i)
		}
	})
}

// parallel runs the clients until ctx ends or each has returned io.EOF. Failed
// requests are counted; the first error of each is returned when nothing at all
// succeeded.
func (c *clients) parallel(ctx context.Context, clients int, r *recorder, newClient func(nr int) client) error {
	if err := r.begin(); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for nr := range clients {
		wg.Go(func() { errs[nr] = c.oneClient(ctx, r, newClient(nr)) })
	}
	wg.Wait()
	err := r.end()
	if r.count.Load() == 0 {
		return errors.Join(append(errs, err)...)
	}
	return err
}

// maxErrors is how many requests may fail before the clients give up.
const maxErrors = 1000

// oneClient returns the first error that the client met.
func (c *clients) oneClient(ctx context.Context, r *recorder, work client) error {
	a := c.server.newCall()
	defer a.release()
	var first error
	for i := int64(0); ctx.Err() == nil && r.errors.Load() <= maxErrors; i++ {
		start := time.Now()
		n, err := work(a, i)
		switch {
		case errors.Is(err, io.EOF):
			return first
		case err != nil:
			r.errors.Add(1)
			if first == nil {
				first = err
			}
		default:
			if err := r.record(n, time.Since(start)); err != nil {
				return err
			}
		}
	}
	return first
}

// prepare has each client do its work a number of times, before anything is measured.
func (c *clients) prepare(ctx context.Context, times int, newClient func(nr int) client) error {
	return c.parallel(ctx, c.number, newRecorder(workload{}, Config{}), func(nr int) client {
		work := newClient(nr)
		return func(a *call, i int64) (int64, error) {
			if i >= int64(times) {
				return 0, io.EOF
			}
			return work(a, i)
		}
	})
}

// once runs work with one client, which does it once, for so many of the unit of the workload.
func (c *clients) once(ctx context.Context, r *recorder, done int, work func(a *call) error) error {
	return c.parallel(ctx, 1, r, func(int) client {
		return func(a *call, i int64) (int64, error) {
			if i > 0 {
				return 0, io.EOF
			}
			return int64(done), work(a)
		}
	})
}

package remote

import (
	"context"
	"errors"
	"io"
	"time"
)

// errSilent ends a request whose other side has been silent for too long.
var errSilent = errors.New("the server was silent for too long")

// watchdog ends a request when nothing moves for a while.
type watchdog struct {
	timer *time.Timer
	ctx   context.Context //nolint:containedctx // the request's
	end   context.CancelCauseFunc
}

// watch returns a context that ends when nothing has moved for limit.
func watch(ctx context.Context, limit time.Duration) *watchdog {
	w := &watchdog{}
	w.ctx, w.end = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(limit, func() { w.end(errSilent) })
	return w
}

// moved begins the wait anew.
func (w *watchdog) moved(limit time.Duration) { w.timer.Reset(limit) }

// pause ends the wait: it is this side that does not move.
func (w *watchdog) pause() { w.timer.Stop() }

// close gives everything back.
func (w *watchdog) close() {
	w.timer.Stop()
	w.end(context.Canceled)
}

// cause returns err, or errSilent if the watchdog ended the wait.
func (w *watchdog) cause(err error) error {
	if errors.Is(context.Cause(w.ctx), errSilent) {
		return errSilent
	}
	return err
}

// upload is the body of a request on its way. Its reader may be slow: only the
// network is watched.
type upload struct {
	io.ReadCloser
	w     *watchdog
	limit time.Duration
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.w.pause()
	n, err := u.ReadCloser.Read(p)
	u.w.moved(u.limit)
	return n, err
}

// download is the body of an answer.
type download struct {
	body    io.ReadCloser
	w       *watchdog
	limit   time.Duration
	ended   bool
	release func() // called once, by Close; may be nil
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	d.w.moved(d.limit)
	n, err := d.body.Read(p)
	d.w.pause()
	if err != nil {
		d.ended = true
		if !errors.Is(err, io.EOF) {
			err = d.w.cause(err)
		}
	}
	return n, err
}

// leftOver is how much of an answer is read for the sake of the connection.
const leftOver = 16 << 10

// Close implements io.Closer. The connection can be used again when little of
// the answer is left.
func (d *download) Close() error {
	if !d.ended {
		_, _ = io.CopyN(io.Discard, d, leftOver) // an error ends the connection, no more
	}
	d.w.close()
	err := d.body.Close()
	if d.release != nil {
		d.release()
		d.release = nil
	}
	return err
}

package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// plain drives a crew with the means of package net, for systems without epoll:
// one lane after the other, wherefore each should have a crew of its own.
func (c *crew) plain(ctx context.Context) error {
	buf := make([]byte, 64<<10)
	for _, n := range c.lanes {
		p := &plainLane{crew: c, n: n, buf: buf}
		for c.prepare(ctx, n) {
			if err := p.exchange(ctx); err != nil {
				p.hangUp()
				if errors.Is(ctx.Err(), context.Canceled) {
					return nil
				}
				c.failed(err)
			}
		}
		p.hangUp()
	}
	return nil
}

// plainLane is a lane of plain.
type plainLane struct {
	*crew
	n    *lane
	buf  []byte
	conn net.Conn // nil while there is none
}

// exchange sends the request and reads the answer.
func (p *plainLane) exchange(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	// a cancelled context ends what the connection waits for
	conn := p.conn // the function may come when p has another one already
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			_ = conn.SetDeadline(time.Unix(1, 0))
		}
	})
	defer stop()
	if _, err := conn.Write(p.n.request); err != nil {
		return err
	}
	for {
		count, err := conn.Read(p.buf)
		done, takeErr := p.take(p.n, p.buf[:count])
		switch {
		case takeErr != nil:
			return takeErr
		case done:
			if p.n.answer.closes {
				p.hangUp()
			}
			return nil
		case errors.Is(err, io.EOF):
			p.hangUp()
			return p.end(p.n)
		case err != nil:
			return err
		}
	}
}

// connect makes the connection, unless there is one, and sets the time for the
// request.
func (p *plainLane) connect(ctx context.Context) error {
	if p.conn == nil {
		d := net.Dialer{Timeout: p.patience}
		conn, err := d.DialContext(ctx, "tcp", p.to.addr.String())
		if err != nil {
			return err
		}
		p.conn = conn
	}
	return p.conn.SetDeadline(p.n.start.Add(p.patience))
}

func (p *plainLane) hangUp() {
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}

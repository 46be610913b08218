package wire

import (
	"fmt"
	"io"
	"sync"
	"time"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// watchTime is how long starting a watch may take.
const watchTime = 5 * time.Second

// Watch sends a value to c, which has space for one, whenever the durable
// sequence of a copy on the node has moved, when the copy is dropped, and when
// the node stops being reachable: a watch does not come back by itself. Read
// the copy after Watch to miss nothing. Closing ends the watch, and may be done
// more than once.
func (p *Peer) Watch(to Addressee, name string, c chan struct{}) (io.Closer, error) {
	l, err := p.connected(nil)
	if err != nil {
		return nil, err
	}
	return l.watches.add(watchedCopy{name, to.Copy}, to.Generation, c)
}

// watches are those of one connection. All of one copy share one on the other side.
type watches struct {
	conn *clientConn
	wake chan struct{}

	mu struct {
		sync.Mutex
		closed   bool
		last     uint64
		byCopy   map[watchedCopy]*watched
		byNumber map[uint64]*watched
		queue    []*wirepb.WatchCommand
	}
}

// watchedCopy is a copy by its name and its id.
type watchedCopy struct {
	name string
	id   uint64
}

// watched is one copy. Its users are guarded by watches.mu.
type watched struct {
	number  uint64
	copy    watchedCopy
	users   map[*watcher]struct{}
	started chan struct{} // closed when err is known
	err     error
}

// watcher is one call of Watch.
type watcher struct {
	all *watches
	of  *watched
	c   chan struct{}
}

func newWatches(l *clientConn) *watches {
	w := &watches{conn: l, wake: make(chan struct{}, 1)}
	w.mu.byCopy, w.mu.byNumber = map[watchedCopy]*watched{}, map[uint64]*watched{}
	return w
}

// add starts a watch and waits until it stands.
func (w *watches) add(which watchedCopy, generation uint64, c chan struct{}) (io.Closer, error) {
	user := &watcher{all: w, c: c}
	w.mu.Lock()
	if w.mu.closed {
		w.mu.Unlock()
		return nil, down(w.conn.node, nil)
	}
	of := w.mu.byCopy[which]
	if of == nil {
		w.mu.last++
		of = &watched{number: w.mu.last, copy: which, users: map[*watcher]struct{}{}, started: make(chan struct{})}
		w.mu.byCopy[which], w.mu.byNumber[of.number] = of, of
		w.mu.queue = append(w.mu.queue, &wirepb.WatchCommand{Number: of.number, Copy: which.name, CopyId: which.id, Generation: generation})
	}
	user.of = of
	of.users[user] = struct{}{}
	w.mu.Unlock()
	wake(w.wake)
	w.conn.streams.Add(1)
	t := time.NewTimer(watchTime)
	defer t.Stop()
	var err error
	select {
	case <-of.started:
		err = of.err
	case <-w.conn.ctx.Done():
		err = down(w.conn.node, nil)
	case <-t.C:
		err = fault.Newf(fault.Timeout, "Node %s does not start to watch.", w.conn.node)
	}
	if err != nil {
		_ = user.Close()
		return nil, err
	}
	return user, nil
}

// Close ends the watch. It may be called more than once.
func (u *watcher) Close() error {
	w := u.all
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := u.of.users[u]; !ok {
		return nil
	}
	delete(u.of.users, u)
	w.conn.streams.Add(-1)
	if len(u.of.users) == 0 && w.mu.byNumber[u.of.number] == u.of {
		w.forget(u.of)
		w.mu.queue = append(w.mu.queue, &wirepb.WatchCommand{Number: u.of.number})
		wake(w.wake)
	}
	return nil
}

// forget is called with mu held.
func (w *watches) forget(of *watched) {
	delete(w.mu.byNumber, of.number)
	delete(w.mu.byCopy, of.copy)
}

// run sends and receives until the connection ends, and wakes every waiter then.
func (w *watches) run() error {
	defer w.end()
	stream, err := w.conn.client.Watch(w.conn.ctx)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for {
			e, err := stream.Recv()
			if err != nil {
				w.conn.cancel(fmt.Errorf("watch: %w", err))
				return
			}
			w.hear(e)
		}
	})
	for {
		select {
		case <-w.conn.ctx.Done():
			return w.conn.ctx.Err()
		case <-w.wake:
		}
		w.mu.Lock()
		queue := w.mu.queue
		w.mu.queue = nil
		w.mu.Unlock()
		for _, c := range queue {
			if err := stream.Send(c); err != nil {
				w.conn.cancel(fmt.Errorf("watch: %w", err))
				return err
			}
		}
	}
}

func (w *watches) hear(e *wirepb.WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of := w.mu.byNumber[e.Number]; of != nil {
		if of.err = DecodeFault(e.Fault); of.err != nil {
			w.forget(of)
		}
		select {
		case <-of.started: // told twice
		default:
			close(of.started)
		}
	}
	for _, n := range e.Moved {
		if of := w.mu.byNumber[n]; of != nil {
			of.notify()
		}
	}
}

// notify is called with mu held.
func (of *watched) notify() {
	for u := range of.users {
		wake(u.c)
	}
}

func (w *watches) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.closed = true
	for _, of := range w.mu.byNumber {
		of.notify()
		w.forget(of)
	}
}

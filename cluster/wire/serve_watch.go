package wire

import (
	"context"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
)

// watching is all that one node watches here.
type watching struct {
	watch func(ctx context.Context, to Addressee, copyName string, c chan struct{}) (io.Closer, error) // nil: no copies here
	ctx   context.Context                                                                              // of the stream
	wake  chan struct{}
	wg    sync.WaitGroup // one goroutine per watched copy

	mu struct {
		sync.Mutex
		moved []uint64 // each once
		noted map[uint64]bool
		began []*wirepb.WatchEvent
	}
}

// Watch implements wirepb.NodeServer. Copies that have moved at the same time
// are told together, and one that moves again before that is told once.
func (s *Server) Watch(stream grpc.BidiStreamingServer[wirepb.WatchCommand, wirepb.WatchEvent]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	v := &watching{watch: s.operations.Watch, ctx: ctx, wake: make(chan struct{}, 1)}
	v.mu.noted = map[uint64]bool{}
	defer v.wg.Wait()
	defer cancel()
	v.wg.Go(func() {
		if v.tell(stream.Send) != nil {
			cancel()
		}
	})
	stops := map[uint64]context.CancelFunc{}
	for {
		c, err := stream.Recv()
		if err != nil {
			return err
		}
		if c.Copy == "" {
			if stop := stops[c.Number]; stop != nil {
				stop()
				delete(stops, c.Number)
			}
			continue
		}
		err = s.guarded(method("watch"), func() error {
			stop, err := v.start(c.Number, Addressee{c.CopyId, c.Generation}, strings.Clone(c.Copy))
			if err == nil {
				stops[c.Number] = stop
			}
			return err
		})
		v.note(func() {
			v.mu.began = append(v.mu.began, &wirepb.WatchEvent{Number: c.Number, Fault: EncodeFault(err)})
		})
	}
}

// start watches a copy until stop is called or the stream ends.
func (v *watching) start(number uint64, to Addressee, name string) (stop context.CancelFunc, err error) {
	if v.watch == nil {
		return nil, errNoCopies()
	}
	c := make(chan struct{}, 1)
	w, err := v.watch(v.ctx, to, name, c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(v.ctx)
	v.wg.Go(func() { v.follow(ctx, number, w, c) })
	return cancel, nil
}

func (v *watching) follow(ctx context.Context, number uint64, w io.Closer, c chan struct{}) {
	defer func() { _ = w.Close() }() // forgetting a watch cannot fail
	for {
		select {
		case <-ctx.Done():
			return
		case <-c:
		}
		v.note(func() {
			if !v.mu.noted[number] {
				v.mu.noted[number] = true
				v.mu.moved = append(v.mu.moved, number)
			}
		})
	}
}

// note changes what is to be told, with mu held.
func (v *watching) note(f func()) {
	v.mu.Lock()
	f()
	v.mu.Unlock()
	wake(v.wake)
}

// tell sends what there is to tell until the stream ends.
func (v *watching) tell(send func(*wirepb.WatchEvent) error) error {
	for {
		select {
		case <-v.ctx.Done():
			return v.ctx.Err()
		case <-v.wake:
		}
		v.mu.Lock()
		moved, began := v.mu.moved, v.mu.began
		v.mu.moved, v.mu.began = nil, nil
		clear(v.mu.noted)
		v.mu.Unlock()
		if len(moved) > 0 {
			began = append(began, &wirepb.WatchEvent{Moved: moved})
		}
		for _, e := range began {
			if err := send(e); err != nil {
				return err
			}
		}
	}
}

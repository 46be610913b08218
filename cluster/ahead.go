package cluster

import (
	"sync"
	"time"

	"divan/storage/fault"
)

// ahead reads batches of a stream, at first when they are wanted, and from the
// third one on ahead of time: a goroutine fills one batch while the caller
// uses another. A listing that ends within its first two batches starts none.
// With a limit, which a stream of another node has, the goroutine reads from
// the beginning, and a batch that does not come within the limit is a
// fault.Timeout.
//
// A batch is filled by one side at a time; it belongs to the caller from next
// to the following next.
type ahead[B any] struct {
	read  func(*B) (more bool, err error) // fills a batch; more is false when nothing follows it
	limit time.Duration                   // for one batch; 0: none
	turns int                             // batches handed out
	own   [2]B                            // the caller holds one, the goroutine the other
	used  int                             // which of own the caller holds
	ended bool

	free chan *B
	full chan filled[B]
	stop chan struct{}
	wg   sync.WaitGroup
}

type filled[B any] struct {
	batch *B
	more  bool
	err   error
}

// next returns the next batch, nil at the end. The one before is taken back.
func (a *ahead[B]) next() (*B, error) {
	if a.ended {
		return nil, nil
	}
	a.turns++
	if (a.turns > 2 || a.limit > 0) && a.full == nil {
		a.start()
	}
	var f filled[B]
	if a.full != nil {
		f = a.wait()
		a.free <- &a.own[a.used]
		a.used = 1 - a.used
	} else {
		f.batch = &a.own[a.used]
		f.more, f.err = a.read(f.batch)
	}
	if f.err != nil || !f.more {
		a.ended = true
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.batch, nil
}

// wait returns what the goroutine has filled.
func (a *ahead[B]) wait() filled[B] {
	if a.limit <= 0 {
		return <-a.full
	}
	timer := time.NewTimer(a.limit)
	defer timer.Stop()
	select {
	case f := <-a.full:
		return f
	case <-timer.C:
		return filled[B]{err: fault.New(fault.Timeout, timeoutText)}
	}
}

// start hands the reading over to a goroutine. The batch the caller holds
// stays out of it until the next turn.
func (a *ahead[B]) start() {
	a.free, a.full, a.stop = make(chan *B, 2), make(chan filled[B], 1), make(chan struct{})
	a.free <- &a.own[1-a.used]
	free, full, stop := a.free, a.full, a.stop
	a.wg.Go(func() {
		for {
			var b *B
			select {
			case b = <-free:
			case <-stop:
				return
			}
			more, err := a.read(b)
			select {
			case full <- filled[B]{batch: b, more: more, err: err}:
			case <-stop:
				return
			}
			if !more || err != nil {
				return
			}
		}
	})
}

// close ends the goroutine, if there is one, and waits for it.
func (a *ahead[B]) close() {
	a.ended = true
	if a.stop != nil {
		close(a.stop)
		a.stop = nil
	}
	a.wg.Wait()
}

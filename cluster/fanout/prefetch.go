package fanout

import (
	"sync"
	"time"

	"divan/storage/fault"
)

// prefetch reads batches of a stream, at first when they are wanted, and from the
// third one on ahead of time: a goroutine fills one batch while the caller
// uses another. A listing that ends within its first two batches starts none.
// With a limit, which a stream of another node has, the goroutine reads from
// the beginning, and a batch that does not come within the limit is a
// fault.Timeout.
//
// A batch is filled by one side at a time; it belongs to the caller from next
// to the following next.
type prefetch[B any] struct {
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
func (p *prefetch[B]) next() (*B, error) {
	if p.ended {
		return nil, nil
	}
	p.turns++
	if (p.turns > 2 || p.limit > 0) && p.full == nil {
		p.start()
	}
	var f filled[B]
	if p.full != nil {
		f = p.wait()
		p.free <- &p.own[p.used]
		p.used = 1 - p.used
	} else {
		f.batch = &p.own[p.used]
		f.more, f.err = p.read(f.batch)
	}
	if f.err != nil || !f.more {
		p.ended = true
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.batch, nil
}

// wait returns what the goroutine has filled.
func (p *prefetch[B]) wait() filled[B] {
	if p.limit <= 0 {
		return <-p.full
	}
	timer := time.NewTimer(p.limit)
	defer timer.Stop()
	select {
	case f := <-p.full:
		return f
	case <-timer.C:
		return filled[B]{err: fault.New(fault.Timeout, TimeoutText)}
	}
}

// start hands the reading over to a goroutine. The batch the caller holds
// stays out of it until the next turn.
func (p *prefetch[B]) start() {
	p.free, p.full, p.stop = make(chan *B, 2), make(chan filled[B], 1), make(chan struct{})
	p.free <- &p.own[1-p.used]
	free, full, stop := p.free, p.full, p.stop
	p.wg.Go(func() {
		for {
			var b *B
			select {
			case b = <-free:
			case <-stop:
				return
			}
			more, err := p.read(b)
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
func (p *prefetch[B]) close() {
	p.ended = true
	if p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
	p.wg.Wait()
}

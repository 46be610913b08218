package fanout

import (
	"sync"
	"time"

	"divan/storage/fault"
)

// prefetch reads batches of a stream, at first when they are wanted, and from the
// third one on ahead of time: a goroutine fills one batch while the caller
// uses another. A listing that ends within its first two batches starts none.
// With a limit, which a stream of another node has, the goroutine reads ahead from
// the beginning, and a batch that does not come within the limit is a fault.Timeout.
// With a beat it reads from the beginning, too, but ahead of time from the third one on:
// a filter may have judged for nothing what is read ahead.
//
// A batch is filled by one side at a time; it belongs to the caller from next
// to the following next.
type prefetch[B any] struct {
	read  func(*B) (more bool, err error) // fills a batch; more is false when nothing follows it
	limit time.Duration                   // for one batch; 0: none
	beat  func() time.Duration            // FailoverStream.Beat
	turns int                             // batches handed out
	own   [2]B                            // the caller holds one, the goroutine the other
	used  int                             // which of own the caller holds
	asked bool                            // the goroutine has got the other one
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
	ahead := p.turns > 2 || p.limit > 0
	if (ahead || p.beat != nil) && p.full == nil {
		p.start()
	}
	var f filled[B]
	if p.full != nil {
		p.ask()
		f = p.wait()
		p.used, p.asked = 1-p.used, false
		if ahead && f.more {
			p.ask()
		}
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

// ask has the goroutine fill the batch that the caller does not hold, unless it does already.
func (p *prefetch[B]) ask() {
	if !p.asked {
		p.asked = true
		p.free <- &p.own[1-p.used]
	}
}

// wait returns what the goroutine has filled.
func (p *prefetch[B]) wait() filled[B] {
	if p.limit <= 0 && p.beat == nil {
		return <-p.full
	}
	var late, due <-chan time.Time
	var last, next *time.Timer
	if p.beat != nil {
		next = time.NewTimer(p.beat())
		defer next.Stop()
		due = next.C
	}
	end := time.Now().Add(p.limit)
	if p.limit > 0 {
		last = time.NewTimer(p.limit)
		defer last.Stop()
		late = last.C
	}
	for {
		select {
		case f := <-p.full:
			return f
		case <-late:
			select {
			case f := <-p.full: // it came while a beat was sent
				return f
			default:
			}
			return filled[B]{err: fault.New(fault.Timeout, TimeoutText)}
		case <-due:
			began := time.Now()
			next.Reset(p.beat())
			if last != nil { // what the beat waited for its client is none of the node's time
				end = end.Add(time.Since(began))
				last.Reset(time.Until(end))
			}
		}
	}
}

// start hands the reading over to a goroutine. The batch the caller holds
// stays out of it until the next turn.
func (p *prefetch[B]) start() {
	p.free, p.full, p.stop = make(chan *B, 1), make(chan filled[B], 1), make(chan struct{})
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

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// part is something that lives. It is stopped by the end of the context of
// run, and close is called after run has returned.
type part struct {
	name  string
	run   func(ctx context.Context) error
	close func() error
	// up is called, when it is there, before the next part starts, and down
	// before this one is stopped.
	up   func(ctx context.Context) error
	down func()
}

// stack holds the parts of a node, from the lowest floor up: they start in that order and
// stop in the reverse one.
type stack struct {
	parts  []part
	within time.Duration // how long a stop may take; 0: for ever
	log    *zap.Logger
	left   sync.WaitGroup // what a stop by force leaves behind
}

func nothing() error { return nil }

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// running is a part at work.
type running struct {
	part
	stop context.CancelFunc
	done sync.WaitGroup
	err  error // of run, or else of up
}

// start starts one part after the other and returns those that run, not all of
// them when ctx ends or one fails. fail is called when one does.
func (s *stack) start(ctx context.Context, fail func()) []*running {
	var up []*running
	for _, p := range s.parts {
		if ctx.Err() != nil {
			break
		}
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		r := &running{part: p, stop: stop}
		up = append(up, r)
		r.done.Go(func() {
			if err := p.run(own); err != nil && !errors.Is(err, context.Canceled) {
				r.err = err
				fail() // the parts stop in order
			}
		})
		if p.up == nil {
			continue
		}
		if err := p.up(ctx); err != nil && ctx.Err() == nil {
			fail()
			stop()
			r.done.Wait()
			if r.err == nil { // else err only says that the part is gone
				r.err = err
			}
		}
	}
	return up
}

// stop stops what runs. After within it gives up, and says which part has
// not ended.
func (s *stack) stop(up []*running) error {
	var current atomic.Pointer[string]
	if s.within == 0 {
		return s.stopParts(up, &current)
	}
	ended := make(chan error, 1)
	s.left.Go(func() { ended <- s.stopParts(up, &current) })
	limit := time.NewTimer(s.within)
	defer limit.Stop()
	select {
	case err := <-ended:
		return err
	case <-limit.C:
	}
	err := fmt.Errorf("%w: %s has not ended within %v", ErrNotStopped, *current.Load(), s.within)
	s.left.Go(func() { // the log may hang, too
		s.log.Error("the node is stopped by force: nothing that was acknowledged is lost", zap.Error(err), zap.String("goroutines", stacks()))
	})
	return err
}

// ErrNotStopped is returned by Run when a part of the node has not ended in time. The part
// goes on, so that the process has to end.
var ErrNotStopped = errors.New("the node could not be stopped")

// stopParts stops what runs, from the highest floor down, and closes every part;
// current is the one that it waits for.
func (s *stack) stopParts(up []*running, current *atomic.Pointer[string]) error {
	waiting := "what never ran"
	current.Store(&waiting)
	errs := []error{s.closeFrom(len(up))}
	for _, r := range slices.Backward(up) {
		current.Store(&r.name)
		if r.down != nil {
			r.down()
		}
		r.stop()
		r.done.Wait()
		if r.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.name, r.err))
		}
		if err := r.close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", r.name, err))
		}
	}
	return errors.Join(errs...)
}

// closeFrom closes the parts that were built but never ran.
func (s *stack) closeFrom(first int) error {
	var errs []error
	for _, p := range slices.Backward(s.parts[first:]) {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

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

// parts returns what lives, from the lowest floor up.
func (n *Node) parts() []part {
	out := []part{
		{name: "log", run: untilDone, close: n.logger.close},
		{name: "storage", run: n.engine.Run, close: n.engine.Close},
		{name: "shard", run: n.local.Run, close: n.local.Close},
		{name: "scripts", run: untilDone, close: n.scripts.Close},
		{name: "indexes", run: n.indexes.Run, close: n.indexes.Close},
	}
	if n.links != nil {
		out = append(out, n.links.parts()...)
	}
	out = append(out, part{name: "metadata", run: n.runMeta, up: n.settle, close: func() error {
		return errors.Join(n.meta.Close(), n.links.stopRaft())
	}})
	if n.links != nil {
		out = append(out, part{name: "identity", run: n.links.remember, close: nothing})
	}
	out = append(out,
		part{name: "repair", run: n.repair.Run, close: nothing},
		part{name: "design documents", run: untilDone, close: n.designs.Close},
		part{name: "cluster", run: n.coord.Run, close: n.coord.Close, up: n.makeSystemDatabasesAlone},
		part{name: "wanted indexes", run: n.wanted.Run, close: nothing},
		part{name: "auth", run: n.auth.Run, close: nothing},
		part{name: "accounts", run: n.keepAccountRules, close: nothing, up: n.waitForAccountRules},
	)
	if n.links != nil {
		out = append(out, part{name: "system databases", run: n.links.makeSystemDatabases, close: nothing})
	}
	out = append(out,
		part{name: "resharding", run: n.resharder.Run, close: nothing},
		part{name: "rebalance", run: n.runRebalancer, close: nothing},
		part{name: "ownership", run: n.owners.Run, close: nothing},
		part{name: "replicator", run: n.runReplicator, close: nothing},
		part{name: "databases of accounts", run: n.perUser.Run, close: nothing},
	)
	return append(out, part{name: "http", close: n.listeners.close, run: func(ctx context.Context) error {
		return n.listeners.run(ctx, n.opened, n.api.Stop)
	}})
}

// opened is called when the node answers requests.
func (n *Node) opened() {
	if n.links != nil {
		n.links.gossip.Refresh()
	}
	close(n.ready)
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

// Run serves until ctx ends, Restart is called or a part fails, then stops
// every part, the highest first, so that requests under way can finish. It
// returns ErrRestart after Restart, nil when ctx has ended.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.life = ctx
	up := n.start(ctx, cancel)
	select {
	case <-ctx.Done():
	case <-n.restarting:
	}
	again := ctx.Err() == nil
	if n.links != nil {
		n.links.drain()
	}
	err := n.stop(up)
	if err == nil && again {
		return ErrRestart
	}
	return err
}

// start starts one part after the other and returns those that run, not all of
// them when ctx ends or one fails. fail is called when one does.
func (n *Node) start(ctx context.Context, fail func()) []*running {
	var up []*running
	for _, p := range n.parts() {
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

// stop stops what runs. After Config.StopWithin it gives up, and says which part has
// not ended.
func (n *Node) stop(up []*running) error {
	var current atomic.Pointer[string]
	if n.cfg.StopWithin == 0 {
		return n.stopParts(up, &current)
	}
	ended := make(chan error, 1)
	n.left.Go(func() { ended <- n.stopParts(up, &current) })
	within := time.NewTimer(n.cfg.StopWithin)
	defer within.Stop()
	select {
	case err := <-ended:
		return err
	case <-within.C:
	}
	err := fmt.Errorf("%w: %s has not ended within %v", ErrNotStopped, *current.Load(), n.cfg.StopWithin)
	n.left.Go(func() { // the log may hang, too
		n.log.Error("the node is stopped by force: nothing that was acknowledged is lost", zap.Error(err), zap.String("goroutines", stacks()))
	})
	return err
}

// ErrNotStopped is returned by Run when a part of the node has not ended in time. The part
// goes on, so that the process has to end.
var ErrNotStopped = errors.New("the node could not be stopped")

// stopParts stops what runs, from the highest floor down, and closes every part;
// current is the one that it waits for.
func (n *Node) stopParts(up []*running, current *atomic.Pointer[string]) error {
	waiting := "what never ran"
	current.Store(&waiting)
	errs := []error{n.closeFrom(len(up))}
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
func (n *Node) closeFrom(first int) error {
	var errs []error
	for _, p := range slices.Backward(n.parts()[first:]) {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// Close releases a node that was built and never run.
func (n *Node) Close() error { return n.closeFrom(0) }

package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// fault is something that is wrong for a while.
type fault struct {
	name  string
	begin func(ctx context.Context) error
	end   func(ctx context.Context) error
}

// injectFaults has one fault after the other until ctx ends, sometimes two at
// once.
func (c *cluster) injectFaults(ctx context.Context) error {
	for ctx.Err() == nil {
		faults := []fault{c.randomFault()}
		if c.rng.IntN(3) == 0 {
			faults = append(faults, c.networkFault())
		}
		for _, f := range faults {
			fmt.Printf("    %v %s\n", c.clock().Round(time.Second), f.name)
			// What is begun is finished, also when the round is over meanwhile.
			if err := f.begin(context.WithoutCancel(ctx)); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		c.wait(ctx, time.Duration(1000+c.rng.IntN(9000))*time.Millisecond)
		for _, f := range faults {
			if err := f.end(context.WithoutCancel(ctx)); err != nil {
				return fmt.Errorf("after %s: %w", f.name, err)
			}
		}
		c.wait(ctx, time.Duration(c.rng.IntN(6000))*time.Millisecond)
	}
	return nil
}

// wait lets time pass.
func (c *cluster) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// randomFault returns any fault.
func (c *cluster) randomFault() fault {
	p := c.procs[c.rng.IntN(len(c.procs))]
	switch c.rng.IntN(8) {
	case 0, 1:
		return fault{p.ns + " is killed", func(context.Context) error { return p.kill() }, p.start}
	case 2:
		return fault{p.ns + " is stopped", func(context.Context) error { return p.stop() }, p.start}
	case 3:
		return fault{
			p.ns + " stands still",
			func(context.Context) error { return p.signal(syscall.SIGSTOP) },
			func(context.Context) error { return p.signal(syscall.SIGCONT) },
		}
	case 4, 5:
		return c.diskFault(p)
	default:
		return c.networkFault()
	}
}

// networkFault returns a fault of the network.
func (c *cluster) networkFault() fault {
	order := c.rng.Perm(len(c.procs))
	side := order[:1+c.rng.IntN(len(order)/2)]
	healed := func(ctx context.Context) error { return c.healNetwork(ctx) }
	switch c.rng.IntN(4) {
	case 0:
		return fault{fmt.Sprintf("%v and the others are cut off from each other", c.names(side)), func(ctx context.Context) error {
			return errors.Join(c.dropPackets(ctx, side, 1), c.dropPackets(ctx, order[len(side):], 1))
		}, healed}
	case 1:
		return fault{fmt.Sprintf("%v do not hear the others", c.names(side)), func(ctx context.Context) error {
			return c.dropPackets(ctx, side, 1)
		}, healed}
	case 2:
		loss := 0.02 + 0.3*c.rng.Float64()
		return fault{fmt.Sprintf("%v lose %.0f %% of the packets of the others", c.names(side), 100*loss), func(ctx context.Context) error {
			return c.dropPackets(ctx, side, loss)
		}, healed}
	default:
		h := c.procs[side[0]].host
		kilobits := 200 + c.rng.IntN(3000)
		return fault{fmt.Sprintf("%s sends %d kbit/s", h.ns, kilobits), func(ctx context.Context) error { return h.limitRate(ctx, kilobits) }, healed}
	}
}

func (c *cluster) names(side []int) []string {
	var out []string
	for _, i := range side {
		out = append(out, c.procs[i].ns)
	}
	return out
}

// dropPackets makes those hosts lose what comes from all hosts not among them.
func (c *cluster) dropPackets(ctx context.Context, side []int, probability float64) error {
	among := map[int]bool{}
	for _, i := range side {
		among[i] = true
	}
	for _, i := range side {
		for k, other := range c.procs {
			if among[k] {
				continue
			}
			if err := c.procs[i].dropFrom(ctx, other.host, probability); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cluster) healNetwork(ctx context.Context) error {
	for _, p := range c.procs {
		if err := p.heal(ctx); err != nil {
			return err
		}
	}
	return nil
}

// healAll ends every fault; processes that do not run are started later.
func (c *cluster) healAll(ctx context.Context) error {
	for _, p := range c.procs {
		if p.running() {
			if err := p.signal(syscall.SIGCONT); err != nil {
				return err
			}
		}
	}
	return c.healNetwork(ctx)
}

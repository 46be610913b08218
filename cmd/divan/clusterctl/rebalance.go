package clusterctl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// RebalanceOptions say what `divan cluster rebalance` does.
type RebalanceOptions struct {
	DryRun bool // show the plan only
	Yes    bool // do not ask
	NoWait bool // do not follow
	Follow bool // follow the one that was begun
	Stop   bool // have it begin nothing more
	Resume bool
	Cancel bool // end it, and give up what is under way
}

// Rebalance moves copies between nodes until these are safe and equally full, and follows that.
func Rebalance(ctx context.Context, cfg Config, o RebalanceOptions) error {
	return run(ctx, cfg, func(ctx context.Context, c *command) error {
		switch {
		case o.Stop:
			return c.stopRebalance(ctx)
		case o.Cancel:
			return c.cancelRebalance(ctx)
		case o.Resume:
			if err := c.send(ctx, http.MethodPut, rebalancePath, map[string]string{"state": stateRunning}, nil); err != nil {
				return err
			}
			return c.followRebalance(ctx, "", o.NoWait)
		case o.Follow:
			return c.followRebalance(ctx, "", false)
		}
		return c.beginRebalance(ctx, o)
	})
}

func (c *command) stopRebalance(ctx context.Context) error {
	if err := c.send(ctx, http.MethodPut, rebalancePath, map[string]string{"state": jobStopped}, nil); err != nil {
		return err
	}
	return c.printf("The rebalance begins nothing more. What is under way comes to its end. Go on: divan cluster rebalance %s --resume\n", c.url())
}

func (c *command) cancelRebalance(ctx context.Context) error {
	if err := c.send(ctx, http.MethodDelete, rebalancePath, nil, nil); err != nil {
		return err
	}
	return c.printf("The rebalance has ended. What was under way is given up; what has moved stays where it is.\n")
}

// beginRebalance shows the plan, asks, and begins.
func (c *command) beginRebalance(ctx context.Context, o RebalanceOptions) error {
	if !o.DryRun {
		r, err := c.rebalanceState(ctx)
		if err != nil {
			return err
		}
		if r.State == stateRunning {
			return fmt.Errorf("a rebalance is under way (%s): follow it with --follow, end it with --stop or --cancel", r.progress())
		}
	}
	var p plan
	path := fmt.Sprintf("%s?limit=%d", rebalancePath, plannedLimit)
	if err := c.send(ctx, http.MethodPost, path, map[string]bool{"dry_run": true}, &p); err != nil {
		return err
	}
	if err := p.print(c); err != nil || o.DryRun || p.TotalMoves == 0 {
		return err
	}
	if err := c.confirm(ctx, o.Yes, question("M", p.TotalMoves, p.Bytes)); err != nil {
		return err
	}
	var begun plan
	if err := c.send(ctx, http.MethodPost, rebalancePath+"?limit=0", nil, &begun); err != nil {
		return err
	}
	if begun.ID == "" {
		return c.printf("There is nothing to move any more.\n")
	}
	return c.followRebalance(ctx, begun.ID, o.NoWait)
}

// followRebalance follows a rebalance; without an id the last one.
func (c *command) followRebalance(ctx context.Context, id string, noWait bool) error {
	if noWait {
		return c.printf("The rebalance has begun. Follow it: divan cluster rebalance %s --follow\n", c.url())
	}
	if id == "" {
		r, err := c.rebalanceState(ctx)
		if err != nil {
			return err
		}
		if id = r.ID; id == "" {
			return errors.New("there was no rebalance yet")
		}
	}
	s := c.rebalanceSource(id, "")
	hint := fmt.Sprintf("The rebalance goes on. Follow it again: divan cluster rebalance %[1]s --follow. Stop it: divan cluster rebalance %[1]s --stop", c.url())
	if err := c.follow(ctx, "rebalance", s, hint); err != nil {
		return err
	}
	return s.outcome()
}

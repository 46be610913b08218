//go:build !linux

package bench

import "context"

// loops is how many loops drive the lanes: one for each.
func loops(cfg Config) int { return cfg.Clients }

// run drives the lanes until ctx ends.
func (c *crew) run(ctx context.Context) error { return c.plain(ctx) }

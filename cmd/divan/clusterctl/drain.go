package clusterctl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// DrainOptions say what `divan cluster drain` does.
type DrainOptions struct {
	Node   string
	DryRun bool // show the plan only
	Yes    bool // do not ask
	Undo   bool // have the node take copies again
	NoWait bool // do not follow
}

// Drain moves all copies of a node to others, and follows that.
func Drain(ctx context.Context, cfg Config, o DrainOptions) error {
	return run(ctx, cfg, func(ctx context.Context, c *command) error {
		if !o.Undo {
			return c.beginDrain(ctx, o)
		}
		if err := c.send(ctx, http.MethodDelete, atNode(o.Node, "_drain"), nil, nil); err != nil {
			return err
		}
		return c.printf("%s takes copies again. What has left comes back with: divan cluster rebalance %s\n", o.Node, c.url())
	})
}

func (c *command) beginDrain(ctx context.Context, o DrainOptions) error {
	path := atNode(o.Node, "_drain")
	var d drain
	if err := c.send(ctx, http.MethodPost, path, map[string]bool{"dry_run": true}, &d); err != nil {
		return err
	}
	if err := c.printf("%s has %s. %s, %s, to move to other nodes.\n", d.Node, copies(d.Copies), copies(d.TotalMoves), size(d.Bytes)); err != nil {
		return err
	}
	if err := printLeft(c, d.Left); err != nil || o.DryRun {
		return err
	}
	if err := c.confirm(ctx, o.Yes, question("Drain "+d.Node+": m", d.TotalMoves, d.Bytes)); err != nil {
		return err
	}
	if err := c.send(ctx, http.MethodPost, path, nil, &d); err != nil {
		return err
	}
	again := fmt.Sprintf("divan cluster drain %s %s", c.url(), d.Node)
	if o.NoWait {
		return c.printf("%s is drained from now on. Follow it: %s --yes\n", d.Node, again)
	}
	s := c.rebalanceSource(d.ID, d.Node)
	hint := fmt.Sprintf("The drain goes on. Follow it again: %[1]s --yes. Undo it: %[1]s --undo", again)
	if err := c.follow(ctx, "drain "+d.Node, s, hint); err != nil {
		return err
	}
	return c.drained(ctx, s)
}

// drained says how a drain has ended.
func (c *command) drained(ctx context.Context, s *rebalanceSource) error {
	switch {
	case !s.drain.Draining:
		return errors.New("the drain of " + s.drained + " was undone")
	case !s.drain.Drained:
		if err := s.outcome(); err != nil {
			return err
		}
		return fmt.Errorf("%s stay on %s", copies(s.drain.Copies), s.drained)
	}
	// A name of a node is a part of the path, as is everything else.
	path := "/_node/_local/_nodes/" + url.PathEscape(s.drained)
	var doc struct {
		Rev string `json:"_rev"`
	}
	if err := c.client.Get(ctx, path, &doc); err != nil {
		return err
	}
	return c.printf("%s is drained: it has no copies any more. Take it out of the cluster, then stop its process:\n\n    %s -X DELETE '%s%s?rev=%s'\n",
		s.drained, c.curl(), c.client.URL, path, url.QueryEscape(doc.Rev))
}

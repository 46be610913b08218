package workload

import (
	"context"
	"fmt"
	"net/http"

	"divan/cmd/sim/history"
)

// localPath is the local document that only this client writes.
func (c *Client) localPath(db string) string { return fmt.Sprintf("/%s/_local/c%d", db, c.id) }

// writeLocal counts up in a local document.
func (c *Client) writeLocal(ctx context.Context, _ string) {
	c.local++
	in := body{Number: c.local}
	if c.local > 1 {
		in.Rev = fmt.Sprint("0-", c.local-1)
	}
	r := c.call(ctx, http.MethodPut, c.localPath(c.Databases[0]), in, nil)
	c.register(history.Register{Span: r.Span, Path: c.localPath(c.Databases[0]), Write: true, Value: c.local, Outcome: history.OfStatus(r.status)})
}

// readLocal reads the local document of any client.
func (c *Client) readLocal(ctx context.Context, _ string) {
	other := &Client{id: c.rng.IntN(4)}
	var got body
	r := c.call(ctx, http.MethodGet, other.localPath(c.Databases[0]), nil, &got)
	reg := history.Register{Span: r.Span, Path: other.localPath(c.Databases[0]), Value: got.Number, Outcome: history.OfStatus(r.status)}
	if r.status == http.StatusNotFound {
		reg.Outcome = history.Acked
	}
	c.register(reg)
}

func (c *Client) register(r history.Register) {
	c.Log.Note(func(h *history.History) { h.Registers = append(h.Registers, r) })
}

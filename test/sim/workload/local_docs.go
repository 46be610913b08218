package workload

import (
	"context"
	"fmt"
	"net/http"

	"divan/test/sim/history"
)

// registers are local documents in which clients count up.
type registers struct {
	*asker
	local int // the last number in this client's local document
}

// registerPath is the local document that only one client writes.
func registerPath(db string, client int) string { return fmt.Sprintf("/%s/_local/c%d", db, client) }

// write counts up in a local document.
func (c *registers) write(ctx context.Context, _ string) {
	c.local++
	in := body{Number: c.local}
	if c.local > 1 {
		in.Rev = fmt.Sprint("0-", c.local-1)
	}
	r := c.call(ctx, http.MethodPut, registerPath(c.Databases[0], c.id), in, nil)
	c.register(history.Register{Span: r.Span, Path: registerPath(c.Databases[0], c.id), Write: true, Value: c.local, Outcome: history.OfStatus(r.status)})
}

// read reads the local document of any client.
func (c *registers) read(ctx context.Context, _ string) {
	other := registerPath(c.Databases[0], c.rng.IntN(4))
	var got body
	r := c.call(ctx, http.MethodGet, other, nil, &got)
	reg := history.Register{Span: r.Span, Path: other, Value: got.Number, Outcome: history.OfStatus(r.status)}
	if r.status == http.StatusNotFound {
		reg.Outcome = history.Acked
	}
	c.register(reg)
}

func (c *registers) register(r history.Register) {
	c.Log.Note(func(h *history.History) { h.Registers = append(h.Registers, r) })
}

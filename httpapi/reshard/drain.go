package reshard

import (
	"errors"
	"net/http"

	"divan/cluster/meta"
	"divan/httpapi/core"
	"divan/reshard/rebalance"
	"divan/storage/fault"
)

// drainAnswer is how far a node is drained.
type drainAnswer struct {
	OK       bool         `json:"ok,omitempty"`
	Node     string       `json:"node"`
	Draining bool         `json:"draining"`
	Copies   int          `json:"copies"`                // that it has still
	Drained  bool         `json:"drained"`               // it can be taken out of the cluster
	State    string       `json:"state"`                 // of the rebalance that moves them
	ID       string       `json:"id,omitempty"`          // its id
	Left     []leftAnswer `json:"left,omitempty"`        // of an answer to POST: copies that have no other place
	Moves    int          `json:"total_moves,omitempty"` // of an answer to POST
	Bytes    int64        `json:"bytes,omitempty"`       // likewise
}

// member returns the member of the cluster that a path names.
func member(c *core.Call) (meta.Node, error) {
	name := c.Path[1]
	if c.API.AtNode(name) {
		name = c.API.Deps.Meta.Self()
	}
	n, ok := c.API.Deps.Meta.Node(name)
	if !ok {
		return n, fault.Newf(fault.NotFound, "no such node: %s", name)
	}
	return n, nil
}

// drainOf says how far a node is.
func drainOf(c *core.Call, n meta.Node, r *rebalance.Rebalancer) *drainAnswer {
	out := &drainAnswer{Node: n.Name, Draining: n.Draining, State: none}
	for db := range c.API.Deps.Meta.Databases().All() {
		out.Copies += len(db.CopiesOn(n.Name))
	}
	out.Drained = n.Draining && out.Copies == 0
	if rec, there := r.Record(); there {
		out.State, out.ID = string(rec.State), rec.ID
	}
	return out
}

// getDrain answers GET /_node/{name}/_drain. Any node answers for any other: the one that is drained may
// be away.
func getDrain(c *core.Call) error {
	r, n, err := drained(c)
	if err != nil {
		return err
	}
	return send(c, http.StatusOK, drainOf(c, n, r))
}

func drained(c *core.Call) (*rebalance.Rebalancer, meta.Node, error) {
	r, err := rebalancer(c)
	if err != nil {
		return nil, meta.Node{}, err
	}
	catchUp(c)
	n, err := member(c)
	return r, n, err
}

// postDrain answers POST /_node/{name}/_drain: the node gets no copies any more, and those that it has
// move to others.
func postDrain(c *core.Call) error {
	r, n, err := drained(c)
	if err != nil {
		return err
	}
	dry, err := dryRun(c)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	if err := r.Refusal(); err != nil {
		return err
	}
	if !dry && !n.Draining {
		if err := c.API.Deps.Meta.SetDraining(ctx, n.Name, true); err != nil {
			return err
		}
		n.Draining = true
	}
	p, err := r.PlanDrain(ctx, n.Name)
	if err != nil {
		return err
	}
	if !dry {
		if _, err := r.Start(ctx, true, n.Name+" is drained."); err != nil && !errors.Is(err, rebalance.ErrRunning) {
			return err
		}
	}
	out := drainOf(c, n, r)
	out.OK = true
	for _, m := range p.Moves {
		if m.From == n.Name {
			out.Moves++
			out.Bytes += m.Bytes
		}
	}
	for i := range p.Left {
		if l := &p.Left[i]; l.Node == n.Name && len(out.Left) < standardMoves {
			out.Left = append(out.Left, leftOf(l))
		}
	}
	if dry {
		return send(c, http.StatusOK, out)
	}
	return send(c, http.StatusAccepted, out)
}

// deleteDrain answers DELETE /_node/{name}/_drain: the node takes copies again. Those that have left come
// back by a rebalance only.
func deleteDrain(c *core.Call) error {
	_, n, err := drained(c)
	if err != nil {
		return err
	}
	if err := c.API.Deps.Meta.SetDraining(c.Request.Context(), n.Name, false); err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusOK)
}

package core

import (
	"net/netip"

	"divan/httpapi/conns"
	"divan/storage/fault"
)

// spareConnections are those beyond the limit, for questions about the node
// itself.
const spareConnections = 16

// connectionOptions bounds the connections of clients.
func (a *API) connectionOptions() conns.Options {
	most := a.Deps.Limits.Connections
	return conns.Options{
		Most: most, Spare: min(spareConnections, most/4),
		Share: func() int { return most * a.Deps.Config.Load().Chttpd.AddressShare / 100 },
		Trusted: func(address netip.Addr) bool {
			return a.settings(a.Deps.Config.Load()).peers.Trusts(address)
		},
	}
}

// refuseExcess refuses what is too much: active requests are under way, this one
// included. Whoever asks how the node is, is told. A body of a client that
// nobody knows goes before a new request does.
func (c *Call) refuseExcess(active int64) error {
	if c.asksState() || active <= c.set.maxActive && !c.peer.Spare() {
		return nil
	}
	if !c.peer.Spare() && c.API.Connections.EvictBody() {
		return nil
	}
	h := c.Response.Header()
	h["Retry-After"], h["Connection"] = []string{"1"}, []string{"close"}
	return fault.New(fault.Unavailable, TextOverload)
}

// asksState reports whether the request is for /_up or the figures of the node.
func (c *Call) asksState() bool {
	switch p := c.Path; {
	case len(p) == 1:
		return p[0] == "_up"
	case len(p) >= 3 && p[0] == "_node":
		return p[2] == "_prometheus" || p[2] == "_stats" || p[2] == "_system"
	}
	return false
}

// bodyArrived tells that the body of a client that nobody knows is there, or is
// not waited for any more.
func (c *Call) bodyArrived() {
	if c.arrived != nil {
		c.arrived()
		c.arrived = nil
	}
}

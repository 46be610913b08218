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

// refuseExcess refuses a request when there are too many: active requests are under way,
// this one included. A request for the state of the node is answered. The body of an
// unauthenticated client is cut off before a new request is refused.
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

// Package network tells what an address counts as where a share, a failure or a turn
// belongs to whoever has it.
package network

import "net/netip"

// Of returns the address itself, and of IPv6 the first address of its network:
// whoever has one address there has 2^64 of them. A zone is left out, and an IPv4
// address that is written as one of IPv6 is what it is.
func Of(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	network, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return network.Addr()
}

// Package network tells what an address counts as where shares, failures or turns are counted by
// address.
package network

import "net/netip"

// Of returns the address itself, and of IPv6 the first address of its network: a client that has
// one address there has 2^64 of them. A zone is left out, and an IPv4 address that is written as
// one of IPv6 counts as IPv4.
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

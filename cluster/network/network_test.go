package network

import (
	"net/netip"
	"testing"
)

func TestOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::", "2001:db8::ffff:1": "2001:db8::",
		"2001:db8:0:1::1": "2001:db8:0:1::", "fe80::1%eth0": "fe80::",
	} {
		if got := Of(netip.MustParseAddr(address)); got.String() != want {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
	}
	if none := (netip.Addr{}); Of(none) != none {
		t.Error("no address counts as one")
	}
}

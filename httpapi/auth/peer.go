package auth

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"divan/cluster/config"
)

// PeerRule tells whose address counts as that of the client.
type PeerRule struct {
	header  string         // peer_header; empty: none
	proxies []netip.Prefix // trusted_proxies
}

// forwardedFor is the header that proxies write addresses to.
const forwardedFor = "X-Forwarded-For"

// NewPeerRule reads [chttpd] peer_header and trusted_proxies.
func NewPeerRule(snap *config.Snapshot) PeerRule {
	var p PeerRule
	p.header, _ = snap.Get("chttpd", "peer_header")
	text, _ := snap.Get("chttpd", "trusted_proxies")
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(",;[] \t", c) }) {
		if network, err := netip.ParsePrefix(word); err == nil {
			p.proxies = append(p.proxies, network.Masked())
		} else if address, err := netip.ParseAddr(word); err == nil {
			p.proxies = append(p.proxies, netip.PrefixFrom(address, address.BitLen()))
		}
	}
	return p
}

// Trusts reports whether the address is that of a trusted proxy.
func (p PeerRule) Trusts(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	for _, network := range p.proxies {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// Peer returns the address of the client that sent the request, without the port. That is
// the socket's address, unless that is a trusted proxy's: then it is the last address in
// X-Forwarded-For, or in peer_header, that is not a trusted proxy's either. The addresses
// before it were claimed by hosts further away. With peer_header alone every socket is a
// proxy's, and the last address counts.
func (p PeerRule) Peer(r *http.Request) string {
	peer := hostOf(r.RemoteAddr)
	if p.header == "" && len(p.proxies) == 0 {
		return peer
	}
	header := p.header
	if header == "" {
		header = forwardedFor
	}
	list := strings.Join(r.Header.Values(header), ",")
	if len(p.proxies) == 0 {
		if last := strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:]); last != "" {
			return hostOf(last)
		}
		return peer
	}
	for list != "" && p.trustsText(peer) {
		i := strings.LastIndexByte(list, ',')
		claimed := hostOf(strings.TrimSpace(list[i+1:]))
		if _, err := netip.ParseAddr(claimed); err != nil {
			break // the proxy wrote no address: its own is the last one known
		}
		peer, list = claimed, list[:max(i, 0)]
	}
	return peer
}

func (p PeerRule) trustsText(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && p.Trusts(address)
}

// hostOf takes the port off an address that has one.
func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return strings.Trim(addr, "[]")
	}
	return host
}

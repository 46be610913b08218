// Package wire is how nodes talk to each other: one port per node that carries
// Raft, gossip and calls, each connection proven to come from a node of the
// cluster; the calls on copies of shards; and the connections to other nodes.
package wire

import (
	"context"
	"net"
)

// Network is how a node listens and reaches others: the real one, or one that
// a test has in its hand.
type Network interface {
	// Listen opens a TCP listener at host:port.
	Listen(ctx context.Context, address string) (net.Listener, error)
	// ListenPacket opens a UDP socket at host:port.
	ListenPacket(ctx context.Context, address string) (net.PacketConn, error)
	// Dial connects to host:port by TCP.
	Dial(ctx context.Context, address string) (net.Conn, error)
}

// RealNetwork returns the network of the operating system.
func RealNetwork() Network { return realNetwork{} }

type realNetwork struct{}

// Listen implements Network.
func (realNetwork) Listen(ctx context.Context, address string) (net.Listener, error) {
	var c net.ListenConfig
	return c.Listen(ctx, "tcp", address)
}

// ListenPacket implements Network.
func (realNetwork) ListenPacket(ctx context.Context, address string) (net.PacketConn, error) {
	var c net.ListenConfig
	return c.ListenPacket(ctx, "udp", address)
}

// Dial implements Network.
func (realNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

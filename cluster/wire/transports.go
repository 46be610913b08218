package wire

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"divan/storage/fault"
)

// nodeAddr is a node's name where a network address is asked for.
type nodeAddr string

// Network implements net.Addr.
func (nodeAddr) Network() string { return "divan" }

// String implements net.Addr.
func (a nodeAddr) String() string { return string(a) }

// raftLayer is the port as Raft's transport sees it: addresses are the names of
// nodes.
type raftLayer struct {
	*sub
	port *Port
}

// Raft returns the stream layer of Raft's network transport. Addresses in it
// are names of nodes, resolved when they are dialed. Closing it ends Accept and
// makes the port refuse Raft connections; a later call takes over from an
// earlier one.
func (p *Port) Raft() raft.StreamLayer { return raftLayer{sub: p.listen(purposeRaft), port: p} }

// Addr implements net.Listener: the name of this node.
func (l raftLayer) Addr() net.Addr { return nodeAddr(l.port.o.Self) }

// Dial implements raft.StreamLayer.
func (l raftLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	running := l.port.life()
	if running == nil {
		return nil, fault.New(fault.Closed, "the cluster port is not open")
	}
	ctx, cancel := context.WithTimeout(running.ctx, timeout)
	defer cancel()
	c, err := l.port.dialNode(ctx, purposeRaft, string(address))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// GossipStreams is the port as memberlist's transport sees it: addresses are host:port, because
// only gossip finds out which node is where.
type GossipStreams struct {
	in   *sub
	port *Port
}

// Gossip returns the streams of memberlist. A later call takes over from an
// earlier one.
func (p *Port) Gossip() *GossipStreams {
	return &GossipStreams{in: p.listen(purposeGossip), port: p}
}

// Accept returns the next stream that another node has opened, net.ErrClosed
// once the streams or their port are closed.
func (g *GossipStreams) Accept() (net.Conn, error) { return g.in.Accept() }

// Dial opens a stream to the node of the cluster that listens at host:port.
func (g *GossipStreams) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := g.port.dial(ctx, purposeGossip, "", address)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends Accept; connections live on. It may be called more than once.
func (g *GossipStreams) Close() error { return g.in.Close() }

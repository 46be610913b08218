package meta

import (
	"context"

	"github.com/hashicorp/raft"
)

// electionTransport is a transport whose node stands for election as soon as it runs: the only
// voter of a group has no other one to wait for. Raft knows such a request from leaders that hand
// over; this one comes from the node itself.
type electionTransport struct {
	raft.Transport
	raft.WithPreVote
	rpcs chan raft.RPC
}

// newElectionTransport wraps a transport; the result must be forwarded.
func newElectionTransport(t raft.Transport) (*electionTransport, bool) {
	votes, ok := t.(raft.WithPreVote)
	if !ok {
		return nil, false
	}
	return &electionTransport{Transport: t, WithPreVote: votes, rpcs: make(chan raft.RPC, 1)}, true
}

// standForElection makes the node stand for election at once.
func (e *electionTransport) standForElection(ctx context.Context, self raft.ServerID) {
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: []byte(e.LocalAddr())}
	select {
	case e.rpcs <- raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: header}, RespChan: make(chan raft.RPCResponse, 1)}:
	case <-ctx.Done():
	}
}

// Consumer implements raft.Transport.
func (e *electionTransport) Consumer() <-chan raft.RPC { return e.rpcs }

// forward passes on what the transport receives until ctx ends.
func (e *electionTransport) forward(ctx context.Context) {
	for {
		select {
		case rpc := <-e.Transport.Consumer():
			select {
			case e.rpcs <- rpc:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

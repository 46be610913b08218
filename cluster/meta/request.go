package meta

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"divan/cluster/meta/metapb"
	"divan/storage/fault"
)

// Nodes ask each other, most often the leader, in messages of their own
// (metapb.Request, metapb.Answer). A question of a kind that a node does not
// know is refused.

func decodeRequest(b []byte) (*metapb.Request, error) {
	req := &metapb.Request{}
	if err := req.UnmarshalVT(b); err != nil {
		return nil, fmt.Errorf("%w: request: %w", errMalformed, err)
	}
	if req.Question == nil {
		return nil, fmt.Errorf("%w: request of a kind that this version does not know; a newer version sent it", errMalformed)
	}
	if join := req.GetJoin(); join != nil && join.GetNode().GetName() == "" {
		return nil, fmt.Errorf("%w: no node that could join", errMalformed)
	}
	return req, nil
}

func decodeAnswer(b []byte) (*metapb.Answer, error) {
	a := &metapb.Answer{}
	if err := a.UnmarshalVT(b); err != nil {
		return nil, fmt.Errorf("%w: answer: %w", errMalformed, err)
	}
	if a.Outcome != metapb.Answer_DONE && a.Outcome != metapb.Answer_NOT_LEADER {
		return nil, fmt.Errorf("%w: outcome %d", errMalformed, a.Outcome)
	}
	return a, nil
}

// notSent reports whether an error says that a request never left this node.
func notSent(err error) bool {
	var e interface{ NotSent() bool }
	return errors.As(err, &e) && e.NotSent()
}

func errNotMember(node string) error {
	return fault.Newf(fault.BadRequest, "node %s is not part of the cluster", node)
}

// Answer answers a request of another node, whose name was proven to be from.
// Its errors are faults; for a change of metadata they mean that its outcome
// is not known.
func (m *Meta) Answer(ctx context.Context, from string, b []byte) ([]byte, error) {
	req, err := decodeRequest(b)
	if err != nil {
		return nil, fault.Wrap(fault.BadRequest, "a request about metadata that this version does not understand", err)
	}
	a, err := m.answer(ctx, from, req)
	if errors.Is(err, errNotProposed) {
		return encode(&metapb.Answer{Outcome: metapb.Answer_NOT_LEADER}), nil
	}
	if err != nil {
		return nil, err
	}
	a.Outcome = metapb.Answer_DONE
	return encode(a), nil
}

func (m *Meta) answer(ctx context.Context, from string, req *metapb.Request) (*metapb.Answer, error) {
	r := m.raft.Load()
	if r == nil {
		return nil, errNotProposed
	}
	switch question := req.Question.(type) {
	case *metapb.Request_LogStats:
		if m.stopping() { // the node that asks is about to rely on this one
			return nil, errStopping()
		}
		return logStats(r, m.proposer.stores.log()), nil
	case *metapb.Request_Join:
		return m.admission.answer(ctx, from, r, question.Join)
	case *metapb.Request_ReadIndex:
		if m.term.Load() == 0 {
			return nil, errNotProposed
		}
		if _, member := m.Node(from); !member {
			return nil, errNotMember(from)
		}
		if err := m.CatchUp(ctx); err != nil {
			return nil, err
		}
		s := m.fsm.load()
		return &metapb.Answer{Index: s.index, Term: s.term}, nil
	case *metapb.Request_Propose:
		if _, member := m.Node(from); !member && r.State() == raft.Leader {
			return nil, errNotMember(from)
		}
		return m.proposer.answer(ctx, r, question.Propose)
	}
	return nil, fault.New(fault.BadRequest, "an unknown question")
}

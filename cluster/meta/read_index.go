package meta

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"

	"divan/cluster/meta/metapb"
)

// readIndex returns the place in the log of the last command that was
// acknowledged by anybody before the call, or of a later one. A leader has
// applied whatever it acknowledged, and since it became one also what its
// predecessors did; it only has to make sure that it still leads, in the term
// in which it caught up with them.
func (m *Meta) readIndex(ctx context.Context) (index, term uint64, err error) {
	r := m.raft.Load()
	if r.State() != raft.Leader {
		a, err := m.askLeader(ctx, &metapb.Request{Question: &metapb.Request_ReadIndex{ReadIndex: &metapb.Nothing{}}})
		if err != nil {
			return 0, 0, err
		}
		return a.Index, a.Term, nil
	}
	led := m.term.Load()
	if led == 0 || led != r.CurrentTerm() {
		return 0, 0, errNotProposed
	}
	if err := m.confirmLead(ctx, r, led); err != nil {
		return 0, 0, err
	}
	if led != m.term.Load() || led != r.CurrentTerm() {
		return 0, 0, errNotProposed
	}
	s := m.fsm.load()
	return s.index, s.term, nil
}

// confirmLead returns nil when no other leader has had anything acknowledged before the
// call, and errNotProposed when that is not sure. What a later leader acknowledged is in
// the logs of a majority, so one of any majority that is asked now ends with an entry of
// a later term. Raft's own VerifyLeader also counts answers to messages that were on
// their way before it was called: those that a process finds when it was paused.
func (m *Meta) confirmLead(ctx context.Context, r *raft.Raft, led uint64) error {
	servers, err := members(r)
	if err != nil || m.opts.Ask == nil {
		return errNotProposed
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithTimeout(ctx, m.raftTimeout())
	defer cancel()
	follows := make(chan bool, len(servers))
	asked, sure := 0, 0
	for _, s := range servers {
		switch {
		case s.Suffrage != raft.Voter:
		case string(s.ID) == m.Self():
			sure++
		default:
			asked++
			asking.Go(func() {
				a, err := m.ask(ctx, string(s.ID), &metapb.Request{Question: &metapb.Request_LogStats{LogStats: &metapb.Nothing{}}})
				follows <- err == nil && a.Index > 0 && a.Term <= led // one without a log has lost what it had
			})
		}
	}
	needed := countVoters(servers)/2 + 1
	for ; asked > 0 && sure < needed; asked-- {
		if <-follows {
			sure++
		}
	}
	if sure < needed {
		return errNotProposed
	}
	return nil
}

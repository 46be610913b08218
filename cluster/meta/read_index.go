package meta

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"

	"divan/cluster/meta/metapb"
	"divan/cluster/meta/voters"
)

// readIndex returns the place in the log of the last command that was acknowledged by any node
// before the call, or of a later one. A leader has applied every command that it acknowledged, and
// since it became one also those that its predecessors did; it only has to make sure that it still
// leads, in the term in which it caught up with them.
func (r *Reader) readIndex(ctx context.Context) (index, term uint64, err error) {
	g, now := r.group, r.group.raft.Load()
	if now.State() != raft.Leader {
		a, err := g.askLeader(ctx, &metapb.Request{Question: &metapb.Request_ReadIndex{ReadIndex: &metapb.Nothing{}}})
		if err != nil {
			return 0, 0, err
		}
		return a.Index, a.Term, nil
	}
	led := g.term.Load()
	if led == 0 || led != now.CurrentTerm() {
		return 0, 0, errNotProposed
	}
	if err := r.confirmLead(ctx, now, led); err != nil {
		return 0, 0, err
	}
	if led != g.term.Load() || led != now.CurrentTerm() {
		return 0, 0, errNotProposed
	}
	s := r.fsm.load()
	return s.index, s.term, nil
}

// confirmLead returns nil when no other leader has had anything acknowledged before the
// call, and errNotProposed when that is not sure. What a later leader acknowledged is in
// the logs of a majority, so one of any majority that is asked now ends with an entry of
// a later term. Raft's own VerifyLeader also counts answers to messages that were on
// their way before it was called: those that a process finds when it was paused.
func (r *Reader) confirmLead(ctx context.Context, now *raft.Raft, led uint64) error {
	servers, err := members(now)
	if err != nil || r.group.send == nil {
		return errNotProposed
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithTimeout(ctx, r.group.timeout)
	defer cancel()
	follows := make(chan bool, len(servers))
	asked, sure := 0, 0
	for _, s := range servers {
		switch {
		case s.Suffrage != raft.Voter:
		case string(s.ID) == r.group.self:
			sure++
		default:
			asked++
			asking.Go(func() {
				a, err := r.group.logStats(ctx, string(s.ID))
				follows <- err == nil && a.Index > 0 && a.Term <= led // one without a log has lost what it had
			})
		}
	}
	needed := voters.Count(servers)/2 + 1
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

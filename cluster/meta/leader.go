package meta

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/meta/metapb"
	"divan/cluster/meta/voters"
	"divan/storage/fault"
	"divan/storage/pause"
)

const (
	leadTimeout   = 30 * time.Second // bounds the first commands of a leader
	watchEvery    = time.Second      // a leader looks at its disk, and for nodes that left
	handOverEvery = 30 * time.Second // a leader without space on its disk tries to hand the lead over: others may have none either
)

// leadership does the work of this node while it leads the group.
type leadership struct {
	group      *Group
	fsm        *stateMachine
	proposer   *proposer
	stores     *nodeStores
	membership *membership
	admission  *admission
	copies     *Copies
	config     *Configuration
	ready      *readiness
	diskFull   func() error // Options.DiskFull
	log        *zap.Logger
}

// become does what a new leader has to do before it can be relied on.
// Losing the leadership meanwhile is no error.
func (l *leadership) become(ctx context.Context, r *raft.Raft) error {
	ctx, cancel := context.WithTimeout(ctx, leadTimeout)
	defer cancel()
	term := r.CurrentTerm()
	for {
		err := l.prepare(ctx, r, term)
		switch {
		case err == nil:
			l.ready.set()
			return nil
		case !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Closed) && !errors.Is(err, errNotProposed) && ctx.Err() == nil:
			return err
		case ctx.Err() != nil || r.State() != raft.Leader || r.CurrentTerm() != term:
			l.log.Warn("lost the lead of the metadata group at once")
			return nil
		}
		_ = pause.For(ctx, electionPoll) // the loop looks at ctx
	}
}

// prepare applies what earlier leaders committed, gives a new group its
// identity and makes this node a member.
func (l *leadership) prepare(ctx context.Context, r *raft.Raft, term uint64) error {
	if err := r.Barrier(leadTimeout).Error(); err != nil {
		return raftError(err)
	}
	if l.fsm.load().uuid == "" {
		identity, err := storedIdentity(*l.stores.Load())
		if err != nil {
			return err
		}
		if _, err := l.proposer.submit(ctx, &metapb.Command{Op: &metapb.Command_Init{Init: identity}}); err != nil {
			return err
		}
	}
	now, self := l.fsm.load(), l.membership.self()
	known, ok := now.nodes[self.Name]
	c := announce(self)
	if !ok {
		c = &metapb.Command{Op: &metapb.Command_PutNode{PutNode: self.proto()}}
	}
	if (!ok && len(now.nodes) == 0) || (ok && known != self) {
		if _, err := l.proposer.submit(ctx, c); err != nil && !fault.Is(err, fault.NotFound) { // removed meanwhile
			return err
		}
	}
	if r.CurrentTerm() == term {
		l.group.term.Store(term)
	}
	return l.config.storeAdminHashes(ctx)
}

// startDuties runs what only the leader does until the result is called,
// which waits for its end.
func (l *leadership) startDuties(ctx context.Context, r *raft.Raft) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if !l.group.lone {
		wg.Go(func() { voters.Keep(ctx, l.votingGroup(r)) })
		wg.Go(func() { l.watch(ctx, r) })
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// transfer hands the lead to another voter before this node stops, so that no request has to wait
// for an election.
func (l *leadership) transfer(r *raft.Raft) {
	servers, err := members(r)
	if err != nil || r.State() != raft.Leader || voters.Count(servers) < 2 || l.group.quorumLost() {
		return
	}
	if err := r.LeadershipTransfer().Error(); err != nil {
		l.log.Info("nobody took over the lead of the metadata group")
	}
}

// votingGroup is the group for voters.Keep.
func (l *leadership) votingGroup(r *raft.Raft) *voters.Group {
	members := func() []voters.Member {
		var out []voters.Member
		for _, n := range l.fsm.load().nodes {
			out = append(out, voters.Member{Name: n.Name, Zone: n.Zone, Draining: n.Draining})
		}
		return out
	}
	stats := func(ctx context.Context, node string) (voters.LogStats, error) {
		if node == l.group.self {
			return votingStats(logStats(r, l.stores.log())), nil
		}
		a, err := l.group.logStats(ctx, node)
		return votingStats(a), err
	}
	return &voters.Group{Raft: r, Self: l.group.self, Members: members, Alive: l.group.alive, Stats: stats, Logger: l.log}
}

func votingStats(a *metapb.Answer) voters.LogStats {
	return voters.LogStats{Index: a.GetIndex(), Term: a.GetTerm(), Contact: time.Duration(a.GetContactMs()) * time.Millisecond}
}

// watch hands the lead over while the disk is full, and takes nodes out of Raft that left, until
// ctx ends.
func (l *leadership) watch(ctx context.Context, r *raft.Raft) {
	again := time.NewTicker(watchEvery)
	defer again.Stop()
	handed := time.Now() // the lead: to this node just now, by one without space perhaps, or when it tried to hand it over
	for {
		select {
		case now := <-again.C:
			if l.diskFull != nil && now.Sub(handed) > handOverEvery && l.diskFull() != nil {
				handed = now
				l.transfer(r)
			}
			if err := l.admission.removeNonMembers(ctx, r); err != nil {
				l.log.Debug("a node that left is still in the Raft group", zap.Error(err))
			}
		case <-ctx.Done():
			return
		}
	}
}

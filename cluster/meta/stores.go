package meta

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"divan/cluster/meta/metapb"
)

// Stores is where Raft keeps its log, its vote and its snapshots.
type Stores struct {
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
}

// nodeStores is the stores of this node, nil before Run has opened them.
type nodeStores struct{ atomic.Pointer[Stores] }

// log returns this node's log, nil before Run has opened it.
func (o *nodeStores) log() raft.LogStore {
	if s := o.Load(); s != nil {
		return s.Log
	}
	return nil
}

// logStats answers how far a node's log is.
func logStats(r *raft.Raft, log raft.LogStore) *metapb.Answer {
	a := &metapb.Answer{Index: r.LastIndex()}
	var last raft.Log
	if log != nil && a.Index > 0 && log.GetLog(a.Index, &last) == nil {
		a.Term = last.Term
	} else {
		a.Term = r.CurrentTerm() // the log was compacted up to its end
	}
	if r.State() != raft.Leader {
		a.ContactMs = uint64(max(time.Since(r.LastContact()), 0) / time.Millisecond)
	}
	return a
}

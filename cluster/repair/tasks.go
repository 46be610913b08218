package repair

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// progress holds the figures of a push that runs, and what it knows from earlier runs of the same
// pair.
type progress struct {
	stall *time.Timer // ends a push that makes no progress; nil: none does
	held  bool        // the source's log of purges waits for the target; belongs to the push

	from, at, to atomic.Uint64 // sequences of the source: where it began, is, will end
	docs, bytes  atomic.Uint64 // revisions and bytes of attachments written to the target
	updated      atomic.Int64  // unix milliseconds
}

// stallTime is how long a push may make no progress. A node that is gone is
// noticed long before; this is for one that answers pings and no calls.
const stallTime = 5 * time.Minute

func (p *progress) touch() {
	p.updated.Store(time.Now().UnixMilli())
	if p.stall != nil {
		p.stall.Reset(stallTime)
	}
}

// rest says that the push waits on purpose, until touch.
func (p *progress) rest() {
	if p.stall != nil {
		p.stall.Stop()
	}
}

func (p *progress) begin(from, to uint64) {
	p.from.Store(from)
	p.at.Store(from)
	p.to.Store(to)
	p.touch()
}

// Task describes a push that runs, for _active_tasks.
type Task struct {
	Copy, Node           string // from the copy of this node to that of the other
	StartedMS, UpdatedMS int64  // unix time, milliseconds
	From, At, To         uint64 // sequences of this node's copy: where it began, is, will end
	Docs, Bytes          uint64 // revisions and bytes of large attachments pushed so far
}

// Tasks returns the pushes that run and have something to do, ordered by copy
// and node.
func (r *Repair) Tasks() []Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Task
	for _, it := range r.mu.schedule.items {
		p := it.progress
		if it.index >= 0 || p.to.Load() == 0 || p.at.Load() == p.to.Load() {
			continue
		}
		out = append(out, Task{
			Copy: it.copy, Node: it.node, StartedMS: it.begun.UnixMilli(), UpdatedMS: p.updated.Load(),
			From: p.from.Load(), At: p.at.Load(), To: p.to.Load(), Docs: p.docs.Load(), Bytes: p.bytes.Load(),
		})
	}
	slices.SortFunc(out, func(a, b Task) int { return cmp.Or(cmp.Compare(a.Copy, b.Copy), cmp.Compare(a.Node, b.Node)) })
	return out
}

// Jobs returns how many pushes run or wait: the internal_replication_jobs of
// _system.
func (r *Repair) Jobs() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.schedule.items)
}

// maxLags bounds the copies whose position is asked for at a time.
const maxLags = 1000

// Lag returns by how many changes other copies are known to be behind those of
// this node: of running pushes as they are, of waiting ones as of the last look,
// of those to a node that is away as of now.
func (r *Repair) Lag(ctx context.Context) (total uint64) {
	away := make(map[pair]uint64) // what the target has
	r.mu.Lock()
	for _, it := range r.mu.schedule.items {
		switch to := it.progress.to.Load(); {
		case it.away && len(away) < maxLags:
			away[it.pair] = r.mu.synced[it.pair]
		case it.index < 0:
			total += to - min(it.progress.at.Load(), to)
		default:
			total += it.behind
		}
	}
	r.mu.Unlock()
	for p, synced := range away {
		if _, seq, err := r.local.Position(ctx, p.copy); err == nil {
			total += seq - min(synced, seq)
		}
	}
	return total
}

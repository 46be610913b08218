package cluster

import (
	"context"
	"sync"
	"time"

	"divan/cluster/config"
	"divan/cluster/fanout"
	"divan/cluster/peers"
	"divan/cluster/replica"
)

// replicas gives the copies of this node, and those of the nodes that can be reached.
type replicas struct {
	node    string // this one
	local   ownCopies
	others  peers.Others
	here    peers.Presence
	leave   func()                                 // ends the watching of other nodes
	latency struct{ reads, writes fanout.Latency } // of answers of other nodes
	repair  Repair                                 // nil: nobody repairs
}

// ownCopies is the copies on this node's disk; *replica.Local is them.
type ownCopies interface {
	replica.Copies
	Names() ([]string, error) // sorted
	Has(name string) bool
	AllRebuilding() []string
	DiskFull() error
}

// Repair brings copies in line with each other.
type Repair interface {
	// Missed is told that a copy on a node lacks something that another copy of
	// its range has. It returns at once.
	Missed(copy, node string)
	// Sync starts a round of synchronisation for copies that this node or
	// others hold, by name. It returns before the round is over.
	Sync(ctx context.Context, copies []string) error
}

// meet makes other nodes known.
func (r *replicas) meet(o peers.Others) {
	if r.leave != nil {
		r.leave()
	}
	r.others, r.leave = o, o.Subscribe(r.here.Changed)
	r.here.Changed("", true)
}

// replica returns a copy; it is Away when its node cannot be reached.
func (r *replicas) replica(t fanout.Target) replica.Copy {
	return replica.Copy{At: r.copies(t.Node), To: t.Addressee()}
}

// copies returns the copies of a node, nil when it cannot be reached.
func (r *replicas) copies(node string) replica.Copies {
	if node == r.node {
		return r.local
	}
	return r.others.Find(node)
}

// missed notes that a copy does not have what other copies of its range have.
func (r *replicas) missed(t fanout.Target) {
	if r.repair != nil {
		r.repair.Missed(t.Name, t.Node)
	}
}

// background runs what may outlive the request that it belongs to, and bounds it.
//
// LOCKS: mu guards what is below it.
type background struct {
	config *config.Holder

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	number  uint64
	cancels map[uint64]context.CancelFunc // of what detach runs
}

// closePatience is how long Coordinator.Close waits for slower copies. Repair brings them
// what they have not taken by then.
const closePatience = 10 * time.Second

// giveUp ends what detach runs.
func (b *background) giveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, cancel := range b.cancels {
		cancel()
	}
}

// spawn runs f on a goroutine of its own, which Close waits for; f has to end
// soon after its request does. It returns false when the coordinator is
// closing.
func (b *background) spawn(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Go(f)
	return true
}

// detach runs f on a goroutine of its own that ends when [fabric]
// request_timeout is over, even if the request ends before, or some seconds
// after Close has begun. It returns false when the coordinator is closing.
func (b *background) detach(ctx context.Context, f func(context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	ctx, cancel := b.deadline(context.WithoutCancel(ctx))
	if b.cancels == nil {
		b.cancels = make(map[uint64]context.CancelFunc)
	}
	b.number++
	number := b.number
	b.cancels[number] = cancel
	b.running.Go(func() {
		f(ctx)
		cancel()
		b.mu.Lock()
		delete(b.cancels, number)
		b.mu.Unlock()
	})
	return true
}

// deadline bounds a fan-out by [fabric] request_timeout; a nearer deadline of
// the request itself stands.
func (b *background) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := b.requestTimeout()
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// requestTimeout returns [fabric] request_timeout; 0: none.
func (b *background) requestTimeout() time.Duration { return b.config.Load().Fabric.RequestTimeout }

// refuse has spawn and detach run nothing more.
func (b *background) refuse() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
}

// wait returns when all has ended that runs. What detach runs is ended after some seconds.
func (b *background) wait() {
	late := time.AfterFunc(closePatience, b.giveUp)
	defer late.Stop()
	b.running.Wait()
}

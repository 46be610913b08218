package cluster

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/fanout"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
)

// council is three nodes with a Raft group of their own, all of whose links
// work but for those that are cut for the group.
type council struct {
	t     *testing.T
	nodes []*councillor

	mu  sync.Mutex
	cut []string // two nodes whose metadata cannot reach each other
}

type councillor struct {
	*Coordinator
	name      string
	transport *raft.InmemTransport
	disk      *shard.Local
}

// unsent is the error of a request that never left.
type unsent struct{}

func (unsent) Error() string { return "cannot connect" }
func (unsent) NotSent() bool { return true }

func newCouncil(t *testing.T) *council {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		<-time.After(10 * time.Second) // Raft does not wait for a hand-over that is not answered
	})
	c := &council{t: t}
	locals := map[string]*shard.Local{}
	for i := range 3 {
		n := &councillor{name: nodeName(i + 1), disk: newLocal(t, vfs.NewMem(), nil)}
		_, n.transport = raft.NewInmemTransportWithTimeout(raft.ServerAddress(n.name), 100*time.Millisecond)
		locals[n.name] = n.disk
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		c.staff(n, locals)
	}
	c.wire()
	for _, n := range c.nodes {
		for _, run := range []func(context.Context) error{n.meta.Run, n.Run} {
			running.Go(func() {
				if err := run(ctx); err != nil {
					t.Errorf("%s: %v", n.name, err)
				}
			})
		}
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	for _, n := range c.nodes {
		if err := n.meta.WaitReady(wait); err != nil {
			t.Fatal(err)
		}
	}
	c.settle(func() bool { return len(c.nodes[0].meta.Voters()) == 3 })
	return c
}

// staff makes the parts of a node.
func (c *council) staff(n *councillor, locals map[string]*shard.Local) {
	c.t.Helper()
	holder, err := config.New(config.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	store := raft.NewInmemStore()
	group, err := meta.New(meta.Options{
		Self: meta.Node{Name: n.name}, Config: holder, Transport: n.transport,
		Stores: &meta.Stores{Log: store, Stable: store, Snapshots: raft.NewInmemSnapshotStore()},
		Found: func(context.Context) (meta.BootstrapPlan, error) {
			if n == c.nodes[0] {
				return meta.BootstrapPlan{New: true}, nil
			}
			return meta.BootstrapPlan{Seeds: []string{node1}}, nil
		},
		Ask: func(ctx context.Context, to string, b []byte) ([]byte, error) {
			p := c.node(to)
			if c.apart(n.name, to) {
				return nil, unsent{}
			}
			return p.meta.Answer(ctx, n.name, b)
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	n.Coordinator, err = New(Options{NodeName: n.name, Meta: group, Config: holder, Local: n.disk, Logger: zap.NewNop()})
	if err != nil {
		c.t.Fatal(err)
	}
	f := &fleet{links: map[string]*link{}, subs: map[int]func(string, bool){}}
	for name, l := range locals {
		if name != n.name {
			f.links[name] = &link{node: name, to: replica.NewLocal(replica.Held{
				Shards: l,
				Place:  func(copyName string) ring.Replica { return PlaceOn(name, c.node(name).meta)(copyName) },
				Heard:  func(ctx context.Context, generation uint64) error { return c.node(name).heard(ctx, generation) },
				Make: func(ctx context.Context, copyName string) error {
					return c.node(name).makeAsked(ctx, copyName)
				},
				Dropped: func(copyName string) { c.node(name).lost.NoteDropped(copyName) },
			})}
		}
	}
	n.meet(f)
}

func (c *council) node(name string) *councillor {
	return c.nodes[slices.IndexFunc(c.nodes, func(n *councillor) bool { return n.name == name })]
}

func (c *council) apart(a, b string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.cut, a) && slices.Contains(c.cut, b)
}

// part cuts the link between the metadata of two nodes; without any, all work.
func (c *council) part(names ...string) {
	c.mu.Lock()
	c.cut = names
	c.mu.Unlock()
	c.wire()
}

func (c *council) wire() {
	for _, a := range c.nodes {
		for _, b := range c.nodes {
			switch {
			case a == b:
			case c.apart(a.name, b.name):
				a.transport.Disconnect(b.transport.LocalAddr())
			default:
				a.transport.Connect(b.transport.LocalAddr(), b.transport)
			}
		}
	}
}

// settle waits for something to come true.
func (c *council) settle(ok func() bool) {
	c.t.Helper()
	for range 600 {
		if ok() {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	c.t.Fatal("never came true")
}

// roles returns the leader and the two others; new copies are made on the first
// of those only.
func (c *council) roles() (leader, holder, other *councillor) {
	c.t.Helper()
	leader = c.node(c.nodes[0].meta.Leader())
	var rest []*councillor
	for _, n := range c.nodes {
		if n != leader {
			rest = append(rest, n)
		}
	}
	for _, n := range []*councillor{leader, rest[1]} {
		if err := leader.meta.SetDraining(c.t.Context(), n.name, true); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := rest[1].meta.CatchUp(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return leader, rest[0], rest[1]
}

func (n *councillor) holds(t *testing.T, name string) bool {
	t.Helper()
	names, err := n.disk.Copies.Names()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(names, name)
}

// TestStaleNodeWaitsForItsLog: a node that cannot reach the leader, but can be reached, is
// asked for a copy of a database that it has never heard of. Who asks waits until it has.
func TestStaleNodeWaitsForItsLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCouncil(t)
		leader, holder, other := c.roles()
		c.part(leader.name, holder.name)
		if err := other.CreateDB(t.Context(), "pond", CreateOptions{N: 1, Q: 1}); err != nil {
			t.Fatal(err)
		}
		d, err := other.DB(t.Context(), "pond")
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Meta().Shards[0].Nodes(); len(got) != 1 || got[0] != holder.name {
			t.Fatalf("the copy is on %q", got)
		}
		written := make(chan doc.Rev, 1)
		go func() {
			defer close(written)
			written <- put(t, d, "frog", doc.Rev{}, `{}`)
		}()
		<-time.After(fanout.NudgeLimit / 2)
		if _, ok := holder.meta.Database("pond"); ok || len(written) > 0 {
			t.Errorf("the node knows the database: %t, and has taken a write: %t", ok, len(written) > 0)
		}
		c.part()
		if rev := <-written; rev.Pos != 1 {
			t.Errorf("written as %v", rev)
		}
		if _, err := d.Open(t.Context(), OpenOptions{ID: "frog"}); err != nil {
			t.Errorf("an acknowledged document: %v", err)
		}
		if now, _ := holder.meta.Database("pond"); now.Generation != d.meta.Generation {
			t.Error("it is taken for one that lacks something")
		}
	})
}

// TestGraceBeginsAgain: the time that a node was out of reach of the leader
// does not count.
func TestGraceBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCouncil(t)
		leader, holder, other := c.roles()
		if err := other.CreateDB(t.Context(), "pond", CreateOptions{N: 1, Q: 1}); err != nil {
			t.Fatal(err)
		}
		m, _ := other.meta.Database("pond")
		if err := other.DeleteDB(t.Context(), "pond"); err != nil {
			t.Fatal(err)
		}
		stray := m.CopyName(m.Shards[0].Range)
		c.settle(func() bool { _, known := holder.meta.Database("pond"); return !known })
		<-time.After(time.Minute) // until what follows from that is done
		synctest.Wait()
		if err := holder.disk.Copies.Create(t.Context(), stray, shard.CreateOptions{}); err != nil { // a request that was late
			t.Fatal(err)
		}
		k := &reconciler{c: holder.Coordinator}
		k.sweepLater(t, 0) // notices it
		k.sweepLater(t, dropGrace/2)
		c.part(leader.name, holder.name, other.name) // the other one might come to lead, and be heard
		k.sweepLater(t, dropGrace/2)
		c.part()
		c.settle(func() bool { return holder.meta.CatchUp(t.Context()) == nil })
		k.sweepLater(t, dropGrace/2)
		k.sweepLater(t, dropGrace/2)
		if !holder.holds(t, stray) {
			t.Fatal("removed although the node could not know for some of the time")
		}
		k.sweepLater(t, dropGrace/2)
		if holder.holds(t, stray) {
			t.Error("it stays for ever")
		}
	})
}

// sweepLater sweeps as if that much more time had passed.
func (k *reconciler) sweepLater(t *testing.T, after time.Duration) {
	t.Helper()
	for name, since := range k.orphans {
		k.orphans[name] = since.Add(-after)
	}
	if err := k.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

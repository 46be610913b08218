package meta

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"divan/cluster/meta/checksum"
	"divan/cluster/meta/raftlog"
)

const (
	logFile       = "raft.db"
	keepSnapshots = 2
	lockTimeout   = time.Second // for the file lock, held by another process on the same directory

	// A follower that hears nothing from the leader for this long, to twice as
	// long, stands for election, so another leader is there in 2 s. Heartbeats go
	// out every 40 to 80 ms; that some are late on a busy machine does no harm.
	// Options.NodeDownAfter makes it longer.
	raftTimeout = 400 * time.Millisecond

	// Commands that wait at the same time are written to the log store together,
	// with one fsync; this many at most. One message to a follower has as many at
	// most, and must get there within the transport's timeout however large they
	// are; the cache of the log keeps as many in memory.
	maxAppend = 64

	snapshotEvery     = 15 * time.Second
	snapshotThreshold = 8192 // log entries since the last snapshot that call for one
	trailingLogs      = 4096 // kept behind a snapshot for followers that lag a little
)

// raftInstance is a running Raft instance with all it owns.
type raftInstance struct {
	raft    *raft.Raft
	closers []func() error
}

// close stops Raft and then closes what it used.
func (g *raftInstance) close() error {
	var errs []error
	if g.raft != nil {
		errs = append(errs, g.raft.Shutdown().Error())
	}
	for _, c := range slices.Backward(g.closers) {
		errs = append(errs, c())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close metadata: %w", err)
	}
	return nil
}

// bootstrap opens the stores of a node and starts Raft on them; a node without state founds or joins
// a group first.
type bootstrap struct {
	opts       Options
	group      *Group
	fsm        *stateMachine
	stores     *nodeStores
	membership *membership
}

// open starts Raft on the node's stores. A node without state founds a group or
// joins one first.
func (b *bootstrap) open(ctx context.Context) (_ *raftInstance, err error) {
	g := &raftInstance{}
	// A node that is refused a beginning leaves no directory, which would be in the way
	// of a backup that is put back.
	begins := b.opts.Stores == nil && b.opts.Dir != "" && !exists(b.opts.Dir)
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, g.close())
		if begins {
			err = errors.Join(err, os.RemoveAll(b.opts.Dir))
		}
	}()
	logger := raftlog.New(b.opts.Logger)
	stores, err := b.openStores(g, logger)
	if err != nil {
		return nil, err
	}
	if err := checkName(stores, b.group.self); err != nil {
		return nil, err
	}
	b.stores.Store(&stores)
	transport := b.opts.Transport
	conf := raftConfig(b.group.self, b.group.timeout, logger)
	if transport == nil {
		_, memory := raft.NewInmemTransport(b.address())
		transport = memory
		g.closers = append(g.closers, memory.Close)
	}
	founded, err := b.bootstrapOrJoin(ctx, conf, stores, transport)
	if err != nil {
		return nil, err
	}
	begins = false
	var e *electionTransport
	if founded || b.opts.Transport == nil || storedNumber(stores, soleMemberKey()) != 0 {
		if e = startElectionTransport(ctx, g, transport); e != nil {
			transport = e
		}
	}
	if b.opts.OnGroupID != nil {
		b.opts.OnGroupID(storedGroupID(stores))
	}
	committed := storedNumber(stores, committedKey())
	g.raft, err = raft.NewRaft(conf, b.fsm, stores.Log, stores.Stable, stores.Snapshots, transport)
	if newer := b.fsm.failure(); newer != nil { // Raft goes on with an older snapshot, or says nothing of the reason
		return nil, errors.Join(newer, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start raft: %w", err)
	}
	if err := b.replay(g.raft, stores.Log, committed); err != nil {
		return nil, err
	}
	if err := b.fsm.load().checkGroupID(stores); err != nil {
		return nil, err
	}
	if servers, err := members(g.raft); e != nil && err == nil && len(servers) == 1 {
		e.standForElection(ctx, conf.LocalID)
	}
	return g, nil
}

// replay applies what this node knew to be committed when it last ran, up to
// index, after Raft has restored a snapshot or none.
func (b *bootstrap) replay(r *raft.Raft, log raft.LogStore, index uint64) error {
	snapshot, err := strconv.ParseUint(r.Stats()["last_snapshot_index"], 10, 64)
	if err != nil {
		return fmt.Errorf("read the place of the snapshot of the metadata: %w", err)
	}
	return b.fsm.replay(log, snapshot, index)
}

// bootstrapOrJoin gives a node without state a group, and reports whether it
// founded one.
func (b *bootstrap) bootstrapOrJoin(ctx context.Context, conf *raft.Config, s Stores, t raft.Transport) (founded bool, err error) {
	known, err := raft.HasExistingState(s.Log, s.Stable, s.Snapshots)
	if err != nil {
		return false, fmt.Errorf("read metadata: %w", err)
	}
	if known {
		return false, nil
	}
	begin := BootstrapPlan{New: b.opts.Bootstrap}
	if b.opts.Found != nil {
		if begin, err = b.opts.Found(ctx); err != nil {
			return false, fmt.Errorf("found or join a group: %w", err)
		}
	}
	if len(begin.Seeds) > 0 {
		return false, b.membership.joinThrough(ctx, s, begin.Seeds)
	}
	if !begin.New {
		return false, nil
	}
	if err := storeIdentity(s, b.opts.Config.Load().CouchDB.UUID); err != nil {
		return false, err
	}
	if err := raft.BootstrapCluster(conf, s.Log, s.Stable, s.Snapshots, t, b.alone()); err != nil {
		return false, fmt.Errorf("found a group: %w", err)
	}
	return true, nil
}

// startElectionTransport makes a transport by which the only voter of a group
// can elect itself at once; nil when that cannot be.
func startElectionTransport(ctx context.Context, g *raftInstance, t raft.Transport) *electionTransport {
	e, ok := newElectionTransport(t)
	if !ok {
		return nil
	}
	// Raft is stopped after the others who obey ctx, and listens until then.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { e.forward(ctx) })
	g.closers = append(g.closers, func() error {
		cancel()
		wg.Wait()
		return nil
	})
	return e
}

// nameKey is where the stable store has the name of the node that it belongs to.
func nameKey() []byte { return []byte("divan_node") }

// checkName refuses state that was written under another name: this node could
// never be elected, and its copies would belong to another node.
func checkName(s Stores, self string) error {
	owner, err := s.Stable.Get(nameKey())
	if err != nil || len(owner) == 0 { // never written: stores say so in different ways
		if err := s.Stable.Set(nameKey(), []byte(self)); err != nil {
			return fmt.Errorf("write the node's name: %w", err)
		}
		return nil
	}
	if string(owner) != self {
		return fmt.Errorf("the metadata belongs to node %q, not to %q: a node keeps its name", owner, self)
	}
	return nil
}

func (b *bootstrap) openStores(g *raftInstance, logger hclog.Logger) (Stores, error) {
	if b.opts.Stores != nil {
		return *b.opts.Stores, nil
	}
	if b.opts.Dir == "" {
		mem := raft.NewInmemStore()
		return Stores{Log: mem, Stable: mem, Snapshots: raft.NewInmemSnapshotStore()}, nil
	}
	if err := os.MkdirAll(b.opts.Dir, 0o700); err != nil {
		return Stores{}, fmt.Errorf("open metadata: %w", err)
	}
	if err := b.verify(); err != nil {
		return Stores{}, err
	}
	path := filepath.Join(b.opts.Dir, logFile)
	bolt, err := raftboltdb.New(boltOptions(path))
	if errors.Is(err, bolterrors.ErrTimeout) {
		return Stores{}, fmt.Errorf("open metadata: %s is in use by another process", path)
	}
	if err != nil {
		return Stores{}, fmt.Errorf("open metadata: %w", err)
	}
	g.closers = append(g.closers, bolt.Close)
	snaps, err := raft.NewFileSnapshotStoreWithLogger(b.opts.Dir, keepSnapshots, logger)
	if err != nil {
		return Stores{}, fmt.Errorf("open metadata: %w", err)
	}
	store, err := checksum.New(bolt)
	if err != nil {
		return Stores{}, err
	}
	cached, err := raft.NewLogCache(maxAppend, store) // what followers are sent was written a moment ago
	if err != nil {
		return Stores{}, fmt.Errorf("open metadata: %w", err)
	}
	return Stores{Log: cached, Stable: store, Snapshots: snaps}, nil
}

func boltOptions(path string) raftboltdb.Options {
	return raftboltdb.Options{
		Path: path,
		// The free list is rebuilt at start instead of written with each
		// commit; a commit still syncs before it returns.
		BoltOptions:             &bbolt.Options{Timeout: lockTimeout, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
		MsgpackUseNewTimeFormat: true,
	}
}

func raftConfig(self string, timeout time.Duration, logger hclog.Logger) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(self)
	c.Logger = logger
	c.MaxAppendEntries = maxAppend
	c.SnapshotInterval = snapshotEvery
	c.SnapshotThreshold = snapshotThreshold
	c.TrailingLogs = trailingLogs
	c.NoLegacyTelemetry = true
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = timeout, timeout, timeout
	c.ShutdownOnRemove = false // a node that was removed may be taken in again
	return c
}

func (b *bootstrap) address() raft.ServerAddress {
	if b.opts.Transport != nil {
		return b.opts.Transport.LocalAddr()
	}
	return raft.ServerAddress(b.group.self)
}

// alone is the configuration of a group of one.
func (b *bootstrap) alone() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(b.group.self), Address: b.address(),
	}}}
}

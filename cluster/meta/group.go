package meta

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	logFile       = "raft.db"
	keepSnapshots = 2
	lockTimeout   = time.Second      // for the file lock, held by another process on the same directory
	leadTimeout   = 30 * time.Second // for the first commands of a leader

	// A group of one has nobody to wait for: it elects itself after at most
	// twice this time, which is most of what a start takes.
	loneTimeout = 30 * time.Millisecond

	// Commands that wait at the same time share one entry in the log store and
	// so one fsync; this many at most.
	maxAppend = 512

	snapshotEvery     = time.Minute
	snapshotThreshold = 8192 // log entries since the last snapshot that call for one
	trailingLogs      = 4096 // kept behind a snapshot for followers that lag a little
)

// group is a running Raft instance with all it owns.
type group struct {
	raft    *raft.Raft
	closers []func() error
}

// close stops Raft and then closes what it used.
func (g *group) close() error {
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

// open starts Raft on the node's stores, founding a group when that is due.
func (m *Meta) open() (_ *group, err error) {
	g := &group{}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	logger := newRaftLog(m.log)
	stores, err := m.openStores(g, logger)
	if err != nil {
		return nil, err
	}
	transport := m.opts.Transport
	conf := m.raftConfig(logger)
	if transport == nil {
		_, lone := raft.NewInmemTransport(m.address())
		transport = lone
		g.closers = append(g.closers, lone.Close)
	}
	known, err := raft.HasExistingState(stores.Log, stores.Stable, stores.Snapshots)
	if err != nil {
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	if !known && m.opts.Bootstrap {
		if err := raft.BootstrapCluster(conf, stores.Log, stores.Stable, stores.Snapshots, transport, m.alone()); err != nil {
			return nil, fmt.Errorf("found a group: %w", err)
		}
	}
	g.raft, err = raft.NewRaft(conf, m.fsm, stores.Log, stores.Stable, stores.Snapshots, transport)
	if err != nil {
		return nil, fmt.Errorf("start raft: %w", err)
	}
	return g, m.checkMember(g.raft)
}

// checkMember refuses state that was written under another name: this node
// could never be elected, and its copies would belong to a stranger.
func (m *Meta) checkMember(r *raft.Raft) error {
	servers, err := members(r)
	if err != nil || len(servers) == 0 {
		return err
	}
	for _, s := range servers {
		if string(s.ID) == m.opts.Self.Name {
			return nil
		}
	}
	return fmt.Errorf("the metadata belongs to node %q, not to %q: a node keeps its name", servers[0].ID, m.opts.Self.Name)
}

func members(r *raft.Raft) ([]raft.Server, error) {
	f := r.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, fmt.Errorf("read the members of the group: %w", err)
	}
	return f.Configuration().Servers, nil
}

func (m *Meta) openStores(g *group, logger *raftLog) (Stores, error) {
	if m.opts.Stores != nil {
		return *m.opts.Stores, nil
	}
	if m.opts.Dir == "" {
		mem := raft.NewInmemStore()
		return Stores{Log: mem, Stable: mem, Snapshots: raft.NewInmemSnapshotStore()}, nil
	}
	if err := os.MkdirAll(m.opts.Dir, 0o700); err != nil {
		return Stores{}, fmt.Errorf("open metadata: %w", err)
	}
	path := filepath.Join(m.opts.Dir, logFile)
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path: path,
		// The free list is rebuilt at start instead of written with each
		// commit; a commit still syncs before it returns.
		BoltOptions:             &bbolt.Options{Timeout: lockTimeout, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
		MsgpackUseNewTimeFormat: true,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return Stores{}, fmt.Errorf("open metadata: %s is in use by another process", path)
	}
	if err != nil {
		return Stores{}, fmt.Errorf("open metadata: %w", err)
	}
	g.closers = append(g.closers, bolt.Close)
	snaps, err := raft.NewFileSnapshotStoreWithLogger(m.opts.Dir, keepSnapshots, logger)
	if err != nil {
		return Stores{}, fmt.Errorf("open metadata: %w", err)
	}
	return Stores{Log: bolt, Stable: bolt, Snapshots: snaps}, nil
}

func (m *Meta) raftConfig(logger *raftLog) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(m.opts.Self.Name)
	c.Logger = logger
	c.MaxAppendEntries = maxAppend
	c.SnapshotInterval = snapshotEvery
	c.SnapshotThreshold = snapshotThreshold
	c.TrailingLogs = trailingLogs
	c.NoLegacyTelemetry = true
	if m.opts.Transport == nil {
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = loneTimeout, loneTimeout, loneTimeout
		logger.quiet.Store(true) // elections of one are no news
	}
	return c
}

func (m *Meta) address() raft.ServerAddress {
	if m.opts.Transport != nil {
		return m.opts.Transport.LocalAddr()
	}
	if m.opts.Self.Raft != "" {
		return raft.ServerAddress(m.opts.Self.Raft)
	}
	return raft.ServerAddress(m.opts.Self.Name)
}

// alone is the configuration of a group of one.
func (m *Meta) alone() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(m.opts.Self.Name), Address: m.address(),
	}}}
}

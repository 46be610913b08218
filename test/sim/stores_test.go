package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/hashicorp/raft"

	"divan/cluster/meta"
)

// raftDisk is where the metadata of one node lie: like a disk on which each
// write is durable when it returns. It outlives the node.
type raftDisk struct {
	mu       sync.Mutex
	first    uint64
	logs     []raft.Log // from index first on
	values   map[string][]byte
	numbers  map[string]uint64
	snapshot *raftSnapshot
}

type raftSnapshot struct {
	meta    raft.SnapshotMeta
	content []byte
}

func newRaftDisk() *raftDisk {
	return &raftDisk{values: map[string][]byte{}, numbers: map[string]uint64{}}
}

// clone returns what is there now.
func (d *raftDisk) clone() *raftDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &raftDisk{
		first: d.first, logs: append([]raft.Log(nil), d.logs...), values: maps.Clone(d.values), numbers: maps.Clone(d.numbers), snapshot: d.snapshot,
	}
}

func (d *raftDisk) stores() *meta.Stores {
	return &meta.Stores{Log: d, Stable: d, Snapshots: raftSnapshots{d}}
}

// FirstIndex implements raft.LogStore.
func (d *raftDisk) FirstIndex() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.logs) == 0 {
		return 0, nil
	}
	return d.first, nil
}

// LastIndex implements raft.LogStore.
func (d *raftDisk) LastIndex() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.logs) == 0 {
		return 0, nil
	}
	return d.first + uint64(len(d.logs)) - 1, nil
}

// GetLog implements raft.LogStore.
func (d *raftDisk) GetLog(index uint64, log *raft.Log) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if index < d.first || index >= d.first+uint64(len(d.logs)) {
		return raft.ErrLogNotFound
	}
	*log = d.logs[index-d.first]
	return nil
}

// StoreLog implements raft.LogStore.
func (d *raftDisk) StoreLog(log *raft.Log) error { return d.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore.
func (d *raftDisk) StoreLogs(logs []*raft.Log) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range logs {
		if len(d.logs) == 0 {
			d.first = l.Index
		}
		switch at := l.Index - d.first; {
		case l.Index < d.first || at > uint64(len(d.logs)):
			return fmt.Errorf("log entry %d does not fit behind %d entries from %d", l.Index, len(d.logs), d.first)
		case at < uint64(len(d.logs)):
			d.logs[at] = *l
		default:
			d.logs = append(d.logs, *l)
		}
	}
	return nil
}

// DeleteRange implements raft.LogStore; Raft deletes at one of the ends.
func (d *raftDisk) DeleteRange(low, high uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	end := d.first + uint64(len(d.logs))
	switch {
	case len(d.logs) == 0 || high < d.first || low >= end:
	case low <= d.first && high+1 >= end:
		d.logs = nil
	case low <= d.first:
		d.logs = append([]raft.Log(nil), d.logs[high+1-d.first:]...)
		d.first = high + 1
	case high+1 >= end:
		d.logs = d.logs[:low-d.first]
	default:
		return errors.New("a hole in the log")
	}
	return nil
}

// Set implements raft.StableStore.
func (d *raftDisk) Set(key, value []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.values[string(key)] = bytes.Clone(value)
	return nil
}

// Get implements raft.StableStore.
func (d *raftDisk) Get(key []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.values[string(key)]; ok {
		return v, nil
	}
	return nil, errors.New("not found") // the words that Raft looks for
}

// SetUint64 implements raft.StableStore.
func (d *raftDisk) SetUint64(key []byte, value uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.numbers[string(key)] = value
	return nil
}

// GetUint64 implements raft.StableStore.
func (d *raftDisk) GetUint64(key []byte) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.numbers[string(key)], nil
}

// raftSnapshots implements raft.SnapshotStore: it keeps the last one that was
// written to its end.
type raftSnapshots struct{ disk *raftDisk }

func (s raftSnapshots) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, cIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	return &raftSink{disk: s.disk, snapshot: raftSnapshot{meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term, Configuration: c, ConfigurationIndex: cIndex,
	}}}, nil
}

func (s raftSnapshots) List() ([]*raft.SnapshotMeta, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.disk.snapshot == nil {
		return nil, nil
	}
	m := s.disk.snapshot.meta
	return []*raft.SnapshotMeta{&m}, nil
}

func (s raftSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.disk.snapshot == nil || s.disk.snapshot.meta.ID != id {
		return nil, nil, fmt.Errorf("there is no snapshot %s", id)
	}
	m := s.disk.snapshot.meta
	return &m, io.NopCloser(bytes.NewReader(s.disk.snapshot.content)), nil
}

type raftSink struct {
	disk     *raftDisk
	snapshot raftSnapshot
	done     bool
}

func (s *raftSink) Write(b []byte) (int, error) {
	s.snapshot.content = append(s.snapshot.content, b...)
	return len(b), nil
}

func (s *raftSink) Close() error {
	if s.done {
		return nil
	}
	s.done = true
	s.snapshot.meta.Size = int64(len(s.snapshot.content))
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.snapshot = &s.snapshot
	return nil
}

func (s *raftSink) Cancel() error {
	s.done = true
	return nil
}

func (s *raftSink) ID() string { return s.snapshot.meta.ID }

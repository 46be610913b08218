// Package checksum gives checksums to the log and the votes of the metadata. The file that has
// them has none of its own, so a byte that the disk changed would become part of the metadata.
// Each entry gets one in the field that Raft leaves to such layers, and each value one behind
// it.
package checksum

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"divan/storage/fault"
)

// mark stands between a value and its checksum of four bytes.
const mark = "\xd1\x0a\x5e\xa1"

// LastKey has a value from the beginning. It comes behind all other keys, so that none is
// missing where it is there.
func LastKey() []byte { return []byte("divan_sealed") }

func errWrong(what string) error {
	return fault.New(fault.Corruption, "the checksum of "+what+" in the metadata is wrong")
}

func entrySum(l *raft.Log) []byte {
	var head [17]byte
	binary.BigEndian.PutUint64(head[:], l.Index)
	binary.BigEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	table := crc32.MakeTable(crc32.Castagnoli)
	return binary.BigEndian.AppendUint32(nil, crc32.Update(crc32.Checksum(head[:], table), table, l.Data))
}

// VerifyEntry checks an entry and takes its checksum off.
func VerifyEntry(l *raft.Log) error {
	if !bytes.Equal(l.Extensions, entrySum(l)) {
		return errWrong(fmt.Sprintf("entry %d", l.Index))
	}
	l.Extensions = nil
	return nil
}

func valueSum(key, value []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(key, table), table, value)
}

func checksummed(key, value []byte) []byte {
	out := append(bytes.Clone(value), mark...)
	return binary.BigEndian.AppendUint32(out, valueSum(key, value))
}

// VerifyValue checks a value and takes its checksum off.
func VerifyValue(key, stored []byte) (value []byte, err error) {
	at := len(stored) - len(mark) - 4
	if at < 0 || string(stored[at:at+len(mark)]) != mark || valueSum(key, stored[:at]) != binary.BigEndian.Uint32(stored[len(stored)-4:]) {
		return nil, errWrong(string(key))
	}
	return stored[:at], nil
}

// Store is a log and a stable store with checksums.
type Store struct{ *raftboltdb.BoltStore }

// New returns a store with checksums on a store that is empty, or that New was called with
// before.
func New(bolt *raftboltdb.BoltStore) (*Store, error) {
	s := &Store{bolt}
	if _, err := s.Get(LastKey()); err == nil {
		return s, nil
	}
	if err := s.Set(LastKey(), nil); err != nil {
		return nil, fmt.Errorf("begin the metadata: %w", err)
	}
	return s, nil
}

// StoreLog implements raft.LogStore.
func (s *Store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. The entries are the caller's, and go to
// other nodes as they are.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	checked, all := make([]*raft.Log, len(logs)), make([]raft.Log, len(logs))
	for i, l := range logs {
		all[i] = *l
		all[i].Extensions = entrySum(l)
		checked[i] = &all[i]
	}
	return s.BoltStore.StoreLogs(checked)
}

// GetLog implements raft.LogStore.
func (s *Store) GetLog(index uint64, l *raft.Log) error {
	if err := s.BoltStore.GetLog(index, l); err != nil {
		return err
	}
	return VerifyEntry(l)
}

// Set implements raft.StableStore.
func (s *Store) Set(key, value []byte) error {
	return s.BoltStore.Set(key, checksummed(key, value))
}

// Get implements raft.StableStore.
func (s *Store) Get(key []byte) ([]byte, error) {
	stored, err := s.BoltStore.Get(key)
	if err != nil {
		return nil, err
	}
	return VerifyValue(key, stored)
}

// SetUint64 implements raft.StableStore.
func (s *Store) SetUint64(key []byte, n uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, n))
}

// GetUint64 implements raft.StableStore.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	switch {
	case err != nil:
		return 0, err
	case len(value) != 8:
		return 0, errWrong(string(key))
	}
	return binary.BigEndian.Uint64(value), nil
}

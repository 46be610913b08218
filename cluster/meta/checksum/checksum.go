// Package checksum gives checksums to the log and the votes of the metadata. The file that has
// them has none of its own, so a byte that the disk changed would become part of the metadata.
// Each entry gets one in the field that Raft leaves to such layers, and each value behind a
// mark: what earlier versions wrote has none.
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

// mark marks a value with a checksum behind it, four bytes as well.
const mark = "\xd1\x0a\x5e\xa1"

// DoneKey is where the stable store says that all of its values have
// checksums. It comes behind all others, so that none is missing where it is
// there.
func DoneKey() []byte { return []byte("divan_sealed") }

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
	if len(l.Extensions) == 0 { // of an earlier version
		return nil
	}
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

// VerifyValue checks a value and takes its checksum off; checked says that it has
// one.
func VerifyValue(key, stored []byte) (value []byte, checked bool, err error) {
	at := len(stored) - len(mark) - 4
	if at < 0 || string(stored[at:at+len(mark)]) != mark {
		return stored, false, nil
	}
	if value = stored[:at]; valueSum(key, value) != binary.BigEndian.Uint32(stored[len(stored)-4:]) {
		return nil, true, errWrong(string(key))
	}
	return value, true, nil
}

// Store is a log and a stable store with checksums.
type Store struct{ *raftboltdb.BoltStore }

// New gives checksums to the values of a store that has none yet, under the keys that values
// without checksums may have.
func New(bolt *raftboltdb.BoltStore, keys [][]byte) (*Store, error) {
	s := &Store{bolt}
	if _, err := s.Get(DoneKey()); err == nil {
		return s, nil
	}
	for _, key := range append(keys, DoneKey()) {
		value, err := s.Get(key)
		if err != nil && !bytes.Equal(key, DoneKey()) {
			continue // never written: stores say so in different ways
		}
		if err := s.Set(key, value); err != nil {
			return nil, fmt.Errorf("give the metadata checksums: %w", err)
		}
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
	value, _, err := VerifyValue(key, stored)
	return value, err
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

package meta

import (
	"context"

	"divan/cluster/meta/metapb"
	"divan/storage/fault"
)

// Record is something that the group has agreed on and that is neither about a database nor
// about a node, such as a job. Its value is not to be changed.
type Record struct {
	Key     string
	Value   []byte
	Version uint64 // index of the command that wrote it; grows with each
}

// maxRecordValue bounds the value of a record, in bytes.
const maxRecordValue = 64 << 10

// SortKey implements sortedset.Item.
func (r Record) SortKey() string { return r.Key }

// Marked implements sortedset.Item.
func (r Record) Marked() bool { return false }

// RecordTable is all records.
type RecordTable struct {
	fsm      *stateMachine
	proposer *proposer
}

// Records returns the records whose keys begin with prefix, sorted by key, as this node knows
// them now.
func (t *RecordTable) Records(prefix string) []Record {
	all := t.fsm.load().records
	var out []Record
	for r := range all.Slice(all.Index(prefix), all.Len()) {
		if len(r.Key) < len(prefix) || r.Key[:len(prefix)] != prefix {
			break
		}
		out = append(out, r)
	}
	return out
}

// PutRecord writes a record, or removes it when value is empty, and returns its version once
// this node knows it. version is that of the record whose place it takes; 0: there must be none.
// Otherwise the error is fault.Conflict; fault.RequestTooLarge above 64 KB.
func (t *RecordTable) PutRecord(ctx context.Context, key string, value []byte, version uint64) (uint64, error) {
	if len(value) > maxRecordValue {
		return 0, errTooLarge()
	}
	res, err := t.proposer.propose(ctx, &metapb.Command{Op: &metapb.Command_PutRecord{
		PutRecord: &metapb.PutRecord{Key: key, Value: value, Version: version},
	}})
	return res.index, err
}

func (s *state) putRecord(c *metapb.PutRecord, e *effects) result {
	if old, _ := s.records.Get(c.Key); old.Version != c.Version {
		return result{err: fault.New(fault.Conflict, "The record was changed meanwhile.")}
	}
	if len(c.Value) == 0 {
		s.records = s.records.Without(c.Key)
	} else {
		s.records = s.records.With(Record{c.Key, c.Value, s.index})
	}
	e.record = true
	return result{}
}

// RecordsChanged returns a channel that is closed when a record is written or removed after
// the call.
func (t *RecordTable) RecordsChanged() <-chan struct{} { return t.fsm.recordPut.Next() }

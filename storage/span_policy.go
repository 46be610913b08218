package storage

import "github.com/cockroachdb/pebble/v2"

// splitTables is the size of memtables from which on a flush or compaction of
// the store makes tables of one keyspace each. Smaller stores keep one table
// for everything: there may be tens of thousands of them.
const splitTables = 2 << 20

// spanPolicy is the pebble.SpanPolicyFunc of a store; only the borders of
// tables are its business.
//
// A table that begins with the newest documents and ends with the newest
// sequences covers all keys between them, so that moving it down a level would
// write everything again that the store has in those keyspaces. Tables of one
// keyspace move without being written again wherever keys ascend, which
// sequences always do and ids usually.
func (s *Store) spanPolicy(start []byte) (policy pebble.SpanPolicy, end []byte, err error) {
	if s.memtables.large() {
		end = tableEnd(start)
	}
	return policy, end, nil
}

// tableEnd returns the key at which a table that begins with start ends, nil
// for none. The keyspaces between heads and sequences are small and share one.
func tableEnd(start []byte) []byte {
	if len(start) == 0 {
		return nil
	}
	switch space := start[0]; {
	case space <= spaceHeads:
		return spaceEnd(space)
	case space < spaceSequence:
		return spaceStart(spaceSequence)
	case space == spaceSequence:
		return spaceEnd(space)
	default:
		return nil
	}
}

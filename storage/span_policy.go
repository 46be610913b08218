package storage

import "divan/storage/keyspace"

// tableEnd is the instance.Kind.TableEnd of a store: it returns the key at which a table that begins with start ends, nil
// for none. The keyspaces between heads and histories are small and share one.
func tableEnd(start []byte) []byte {
	if len(start) == 0 {
		return nil
	}
	switch space := start[0]; {
	case space <= keyspace.Heads, space == keyspace.History, space == keyspace.Sequence:
		return keyspace.End(space)
	case space < keyspace.History:
		return keyspace.Start(keyspace.History)
	case space < keyspace.Sequence:
		return keyspace.Start(keyspace.Sequence)
	default:
		return nil
	}
}

package keyspace

// TableEnd is the instance.Kind.TableEnd of a store: it returns the key at which a table that
// begins with start ends, nil for none. The keyspaces between heads and histories are small and
// share one.
func TableEnd(start []byte) []byte {
	if len(start) == 0 {
		return nil
	}
	switch space := start[0]; {
	case space <= Heads, space == History, space == Sequence:
		return End(space)
	case space < History:
		return Start(History)
	case space < Sequence:
		return Start(Sequence)
	default:
		return nil
	}
}

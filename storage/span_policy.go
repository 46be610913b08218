package storage

// tableEnd is the instance.Kind.TableEnd of a store: it returns the key at which a table that begins with start ends, nil
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

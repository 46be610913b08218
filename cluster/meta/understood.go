package meta

import "divan/storage/fault"

// versionOf returns the version of commands that a kind belongs to.
func versionOf(k kind) uint64 {
	switch k { //nolint:exhaustive // all others are as old as the format
	case kindDeleteExact:
		return 2
	case kindCreateHere, kindAlterExact, kindTakeOver, kindAmendNode, kindZone:
		return 3
	}
	return oldestCommand
}

// either returns the newer of two kinds, or the older one, which does nearly the
// same, as long as a member runs a program that does not know the newer.
func (m *Meta) either(newer, older kind) kind {
	if m.understood(newer) != nil {
		return older
	}
	return newer
}

// understood refuses a kind of command that the program of some member does not
// know: that node would stop at the entry. Only the leader asks, because every
// member tells it what it understands, when it leads and whenever it starts.
func (m *Meta) understood(k kind) error {
	needed := versionOf(k)
	if needed == oldestCommand {
		return nil
	}
	for _, n := range m.Nodes() {
		if n.Commands < needed {
			return fault.Newf(fault.Unavailable, "Node %s runs an older version that does not understand this change of metadata.", n.Name)
		}
	}
	return nil
}

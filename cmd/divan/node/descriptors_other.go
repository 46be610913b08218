//go:build !unix

package node

// descriptorLimit returns how many files the process may have open, 0: nothing
// bounds them.
func descriptorLimit() uint64 { return 0 }

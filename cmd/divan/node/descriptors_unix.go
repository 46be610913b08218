//go:build unix

package node

import "syscall"

// descriptorLimit returns how many files the process may have open, 0 when
// nothing bounds them. The Go runtime has raised the soft limit to the hard one
// before main began.
func descriptorLimit() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return uint64(l.Cur) //nolint:unconvert // signed on some systems
}

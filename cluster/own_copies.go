package cluster

import "divan/cluster/replica"

// ownCopies is the copies on this node's disk; *replica.Local is them.
type ownCopies interface {
	replica.Copies
	Names() ([]string, error) // sorted
	Has(name string) bool
	AllRebuilding() []string
	DiskFull() error
}

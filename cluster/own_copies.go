package cluster

import (
	"context"

	"divan/cluster/repair"
	"divan/cluster/replica"
	"divan/shard"
)

// ownCopies is the copies on this node's disk; *replica.Local is them.
type ownCopies interface {
	replica.Copies
	repair.Holder
	// CreateMissing makes a copy whose database exists and which others nodes
	// hold as well, so that it has to be filled first.
	CreateMissing(ctx context.Context, name string, o shard.CreateOptions, others int) error
	Has(name string) bool
	DiskFull() error
}

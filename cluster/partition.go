package cluster

import (
	"context"
	"strings"
	"unicode/utf8"

	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// PartitionInfo describes one partition of a database (api.md section 17). A partition without
// documents is all zeros.
type PartitionInfo struct {
	Name                     string // of the partition
	DocCount, DocDelCount    uint64
	SizeExternal, SizeActive int64 // bytes
}

// ValidatePartition checks the name of a partition. The refusals are
// fault.IllegalPartition with CouchDB's texts.
func ValidatePartition(name string) error {
	switch {
	case name == "":
		return fault.New(fault.IllegalPartition, "Partition must not be empty")
	case !utf8.ValidString(name):
		return fault.New(fault.IllegalPartition, "Partition must be valid UTF-8")
	case name[0] == '_':
		return fault.New(fault.IllegalPartition, "Partition must not start with an underscore")
	case strings.Contains(name, ":"):
		return fault.New(fault.IllegalPartition, "Partition must not contain a colon")
	default:
		return nil
	}
}

// checkPartition refuses a partition where there are none, and names that no
// partition can have.
func (d *replicaSet) checkPartition(name string) error {
	if !d.meta.Partitioned {
		return fault.New(fault.BadRequest, "database is not partitioned")
	}
	return ValidatePartition(name)
}

// Partition returns the totals of one partition. The refusals are
// fault.BadRequest "database is not partitioned" and those of
// ValidatePartition.
func (d *totals) Partition(ctx context.Context, name string) (*PartitionInfo, error) {
	if err := d.checkPartition(name); err != nil {
		return nil, err
	}
	got, err := ask(ctx, d.replicaSet, d.routing.Owner(partitionStart(name)).Near, func(ctx context.Context, rep replica.Copy, t ring.Replica) (shard.PartitionInfo, error) {
		return replica.Partition.On(ctx, rep, replica.PartitionRequest{Copy: t.Name, Partition: name})
	})
	if err != nil {
		return nil, err
	}
	return &PartitionInfo{
		Name: name, DocCount: got.Live, DocDelCount: got.Deleted,
		SizeExternal: got.External, SizeActive: got.Active,
	}, nil
}

// The ids of a partition lie from partitionStart up to but not including
// partitionEnd.
func partitionStart(name string) string { return name + ":" }
func partitionEnd(name string) string   { return name + ";" }

// Package rebalance moves copies of shards between nodes until the cluster is safe and its nodes are
// equally full: what package placer plans becomes jobs of package reshard.
//
//   - Sizes (sizes.go): each node tells how many bytes its copies have.
//   - Plan (view.go, plan.go): the maps and the sizes as a placer.Cluster, and what it says with names.
//   - Record (record.go): what was asked for, and how far it is. One at a time in a cluster; it is a record of the
//     metadata, so any node answers for it, and each new leader goes on with it.
//   - Run (rebalancer.go, batch.go): the leader notes what has ended, plans anew and begins some moves, until there
//     is nothing to move. A plan is never kept: what was decided on may have changed.
//   - Watch (watch.go): what the leader begins by itself, when the configuration says so.
//
// A move is done by a job on the node that gets the copy. A copy on a node that is no member of the
// cluster any more is replaced by one entry of the metadata, and filled by package repair.
//
// Goroutines: Run owns its own; collecting sizes waits for those that it starts.
package rebalance

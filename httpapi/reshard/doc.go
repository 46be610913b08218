// Package reshard has the endpoints that split, merge and move shards: the jobs below /_reshard,
// /_cluster/rebalance, and /_node/{node}/_drain. What they show is metadata of the cluster, which
// every node has.
package reshard

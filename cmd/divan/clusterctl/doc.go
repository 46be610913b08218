// Package clusterctl looks after a cluster through the HTTP API of one of its nodes: it shows how the
// nodes and shards are, balances and drains nodes, splits, merges and moves shards, and follows
// what it has begun until that ends.
//
// What was begun is the cluster's: it goes on when the command ends before it.
package clusterctl

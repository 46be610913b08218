// Package reshard has the endpoints below /_reshard: jobs that split shards. What they
// show is metadata of the cluster, which every node has.
package reshard

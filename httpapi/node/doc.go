// Package node serves the nodes: all below /_node/{name} (configuration, figures,
// metrics, the documents that stand for members and shard maps), and what is about
// the cluster as a whole: _cluster_setup, _membership, _active_tasks.
package node

package node

import "divan/shard/view/reduce"

// reduceLimit is [query_server_config] reduce_limit.
func (n *Node) reduceLimit() reduce.Limit {
	s := n.config.Load().Limits
	return reduce.Limit{Off: s.ReduceLimit != "true", Threshold: int(s.ReduceThreshold), Ratio: s.ReduceRatio}
}

package placer

// Plan returns the moves that make a cluster safe and balanced. Copies have to be on nodes of
// the cluster or on None, shards of its databases.
func Plan(c *Cluster, o Options) *Result {
	if o.Tolerance <= 0 {
		o.Tolerance = defaultTolerance
	}
	s := newState(c)
	s.setGoals(o.Tolerance)
	bound := s.newBound()
	r := repair{state: s, bound: &bound}
	r.run()
	s.pair()
	b := newBalance(s, o.Tolerance)
	b.run()
	out := &Result{Moves: s.moves(), Left: append(r.left, b.left()...), Nodes: s.nodeBytes()}
	out.Totals.MustMove = bound.bytes()
	for i := range out.Moves {
		m := &out.Moves[i]
		out.Totals.Bytes += m.Bytes
		out.Totals.ByReason[m.Reason] += m.Bytes
	}
	return out
}

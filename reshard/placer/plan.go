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
	r := repair{state: s, bound: &bound, leavingOnly: o.LeavingOnly}
	r.run()
	s.pair()
	if !o.LeavingOnly {
		b := newBalance(s, o.Tolerance)
		b.run()
		r.left = append(r.left, b.left()...)
	}
	out := &Result{Moves: s.moves(), Left: r.left, Nodes: s.nodeBytes()}
	out.Totals.MustMove = bound.bytes()
	for i := range out.Moves {
		m := &out.Moves[i]
		out.Totals.Bytes += m.Bytes
		out.Totals.ByReason[m.Reason] += m.Bytes
	}
	return out
}

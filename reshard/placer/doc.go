// Package placer says which copies of shards are moved where, so that a cluster is safe and
// its nodes are equally full. [Plan] is a pure function: it has no clock, does nothing
// itself, and the same input gives the same plan.
//
// It works in four steps. Nodes, copies and zones are numbers in all of them.
//
//   - Goals (goal.go): how many bytes each node would have if copies could be cut at will
//     and lay as the zones allow. A zone that has to have a copy of everything has it, however few
//     nodes it has; what is left is spread by weight.
//   - Repairs (repair.go): copies of nodes that are lost or drained, two copies of a point on
//     one node, copies that a placement rule wants elsewhere, copies that share a zone
//     while another one has none. Each goes to the emptiest node that may have it.
//   - Balance (balance.go): from nodes above the tolerance, or to nodes below it, until all are
//     within. Moves end at the edge of the tolerance, not at the goal: that
//     moves the fewest bytes. A copy that is moved anyway is rather sent elsewhere than another one moved.
//   - Order (order.go): what restores safety comes first.
//
// Invariants after any number of moves, in any order (P1 to P3):
//
//	P1 No range has fewer copies than before: a copy is made before its original goes.
//	P2 No node gets a second copy of a point. So a node that has, or had when the plan was made,
//	   a copy of a point gets no other one (state.occupied).
//	P3 No zone has more copies of a range than before and than in the end: no copy comes to
//	   a zone that another one of its range leaves (state.pair, balance.follows). With ranges that
//	   overlap, as while one is split, repairs may break this for a while.
//	P4 Each copy moves at most once.
//
// Why nothing moves to and fro: each move of the balance makes the sum of what nodes are beyond the
// tolerance smaller, and nothing else is a reason to move. Where P2 or P3 are in the way of a copy the next
// plan may move it.
//
// Placement rules are never broken for the sake of a copy: a rule may stand for a law or for
// a distance. A copy that has no place by its rule stays where it is, or lost, and the plan says so.
//
// Load is the second criterion. It decides which copies move and where to, never
// whether: what is asked changes within hours, and copying is a load of its own.
package placer

// Package ownership says which node of the cluster runs which replication jobs.
//
// All jobs of a cluster are divided into slots (Slot). Who owns a slot is an
// entry of the Raft group of the metadata (meta.Slots), with the index of that
// entry as its term. The node that leads the group moves slots: away from nodes
// that are gone, removed or being emptied, and so that all others have as many
// (plan.go decides, lead.go acts).
//
// A slot moves in two steps, so that no two nodes believe at one moment that they own it. First it
// is taken from its owner and is vacant. A node that asks the group after that learns it; a node
// that asked before may not know it, and relies on that answer for leaseFor at most, counted from
// before it asked. vacantFor after the leader knew the slot to be vacant, it gives the slot to
// another node. leaseFor is 5 s and vacantFor 6 s, so this holds as long as the monotonic clocks of
// two nodes do not run apart by more than a sixth, and that second is also the time that an owner
// has to stop its jobs. Neither needs that nodes agree on the time of day, nor that the leader
// stays the same: a new one waits anew. A slot that never had an owner is given away at once, so a
// node that is alone owns all of them as soon as it leads.
//
// The lease does not help a process that is suspended between looking at its clock and writing: no
// check of a clock does. So a job that is about to write a checkpoint calls Check, which asks the
// group. What a suspended job had on its way to the target when another one began is written twice
// at most, which changes nothing: a replicated revision never changes.
//
// Goroutines: Run owns those of Table, and waits for them.
package ownership

package ownership

import (
	"context"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
)

const (
	// lookEvery is how often the leader looks whether slots have to move.
	lookEvery = 500 * time.Millisecond

	// goneAfter is how long a node is away before its slots are taken from it: a
	// process that is started again at once keeps them.
	goneAfter = 3 * time.Second

	// settledAfter is how long a node is here before others give slots to it: one
	// that comes and goes does not get any.
	settledAfter = 5 * time.Second
)

// watch holds the observations of a leader since it leads. Only the leader uses it: times are of
// its monotonic clock.
type watch struct {
	term   uint64              // of Raft, in which it leads
	nodes  map[string]sighting // members
	vacant map[int]vacancy     // slots without an owner
}

// sighting is whether a node is here, and since when.
type sighting struct {
	here  bool
	since time.Time
}

// vacancy is a slot of which every node that asks learns that it is vacant.
type vacancy struct {
	term  uint64 // of the slot
	since time.Time
}

// lead moves slots while this node leads, until ctx ends.
func (t *Table) lead(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	w := &watch{}
	for {
		t.look(ctx, w)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look moves the slots that have to move now.
func (t *Table) look(ctx context.Context, w *watch) {
	term := t.meta.LeadTerm()
	if term != w.term {
		*w = watch{term: term, nodes: map[string]sighting{}, vacant: map[int]vacancy{}}
	}
	if term == 0 {
		return
	}
	slots := t.meta.Slots.Owners()
	nodes := w.candidates(t.meta.Nodes(), t.opts.Alive, time.Now())
	if !t.noteVacancies(ctx, w, slots) {
		return
	}
	now := time.Now()
	moves := plan(slots, nodes, func(slot int) bool {
		return slots[slot].Term == 0 || now.Sub(w.vacant[slot].since) >= vacantFor
	})
	if len(moves) == 0 {
		return
	}
	if err := t.meta.Slots.Move(ctx, moves); err != nil {
		t.log.Debug("slots of replication jobs have not moved", zap.Error(err))
		return
	}
	t.log.Info("slots of replication jobs move", zap.Int("slots", len(moves)))
}

// noteVacancies notes which slots are vacant, and since when every node that asks learns that. It
// reports whether this node still led after it had seen them: any leader after it knows of them
// too.
func (t *Table) noteVacancies(ctx context.Context, w *watch, slots *meta.Slots) bool {
	var found []int
	for i, s := range slots {
		if s.Node == "" && s.Term != 0 && w.vacant[i].term != s.Term {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return true
	}
	if err := t.meta.CatchUp(ctx); err != nil || t.meta.LeadTerm() != w.term {
		return false
	}
	for _, i := range found {
		w.vacant[i] = vacancy{slots[i].Term, time.Now()}
	}
	return true
}

// candidates returns the members with their standing now.
func (w *watch) candidates(members []meta.Node, alive func(string) bool, now time.Time) []candidate {
	next := make(map[string]sighting, len(members))
	out := make([]candidate, len(members))
	for i, n := range members {
		here := alive(n.Name)
		is, known := w.nodes[n.Name]
		if !known || is.here != here {
			is = sighting{here, now}
		}
		next[n.Name] = is
		out[i] = candidate{n.Name, is.standing(n.Draining, now)}
	}
	w.nodes = next
	return out
}

func (s sighting) standing(toEmpty bool, now time.Time) standing {
	lasted := now.Sub(s.since)
	switch {
	case !s.here && lasted >= goneAfter:
		return gone
	case !s.here:
		return away
	case toEmpty:
		return draining
	case lasted < settledAfter:
		return fresh
	}
	return settled
}

package cluster

import (
	"context"
	"errors"
	"time"

	"divan/cluster/birth"
	"divan/cluster/meta"
)

// birthGrace is how long the node that creates a database has to make its
// copies everywhere, empty and complete, before the nodes that are to hold them
// make their own, which have to be filled.
const birthGrace = time.Second

// ErrUnborn is the cause of an error that says that a range has no copy although
// its database exists: the node that creates it is about to make them. Nothing
// has been done, so that a request may begin again; see Attempts. Compare with errors.Is.
var ErrUnborn = errors.New("the copies have not been made yet")

const (
	// mostAwait bounds the pauses of await and awaitOwn.
	mostAwait = 50 * time.Millisecond
	// awaitTries is how often one request is told to ask again: with these pauses
	// for longer than createWait.
	awaitTries = 60
)

// await waits a moment for copies that are not there, and reports whether it is
// worth to ask them again: of a database that is young and still there, for
// createWait after this node first waited for its copies. try counts the calls
// for one request, from 0.
func (d *DB) await(ctx context.Context, try int) bool {
	if try >= awaitTries || !young(d.meta) {
		return false
	}
	first := d.c.handles.births.Sought(d.meta.ID)
	return time.Since(first) < createWait && !d.c.gone(d.meta) && rest(ctx, try)
}

// young reports whether a creation may still be under way. The time is that of
// the node that created the database: if its clock is far behind, the copies are
// not waited for; if it is ahead, they are for longer.
func young(m *meta.Database) bool { return time.Since(time.Unix(m.Created, 0)) < birth.DoubtTime }

// rest waits longer from try to try; false when ctx ends.
func rest(ctx context.Context, try int) bool {
	timer := time.NewTimer(min(time.Millisecond<<min(try, 10), mostAwait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// awaitOwn waits until the copies on this node of a young database that another
// node creates are there, for birthGrace after the first request for it. If this node
// made them at once, with every other holder doing the same, no copy of a range
// would be complete, and none could be used until the holders have found out
// from each other that there is nothing to fill them with. Copies that an older
// database lacks were lost, or this node is new to it: those it makes at once.
func (h *handles) awaitOwn(ctx context.Context, d *DB) {
	if h.births.Expected(d.meta.ID) || d.ownAreThere() {
		return
	}
	first := h.births.Sought(d.meta.ID)
	for try := 0; time.Since(first) < birthGrace && !d.c.gone(d.meta) && rest(ctx, try); try++ {
		if d.ownAreThere() {
			return
		}
	}
}

// ownAreThere reports whether this node has the copies that other nodes hold as
// well. One that nobody else holds is complete whoever makes it.
func (d *DB) ownAreThere() bool {
	for _, s := range d.meta.Shards {
		if len(s.Copies) > 1 && s.On(d.c.node) && !d.c.local.Has(d.meta.CopyName(s.Range)) {
			return false
		}
	}
	return true
}

package cluster

import (
	"context"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// settlePurged deals with revisions that a copy did not take over because they
// have been purged there. Either the purge is younger than the edit and has not
// reached the copy that decided it, or the edit brings a revision back and was
// decided by a copy that had done the purge. Only the deciding copy tells: both
// copies do the purges of each other, and if it still has the revision then,
// the other one gets it from there. In either case the copy is where it would
// be had everything reached it in order, so the edit counts as stored.
func (r *writing) settlePurged(ctx context.Context, t target, chosen []int, errs []error) []error {
	var from map[int][]int // by deciding copy: places in chosen
	for k, i := range chosen {
		if fault.Is(errs[k], fault.Purged) && !isLocal(r.req.Edits[i].ID) {
			if from == nil {
				from = make(map[int][]int)
			}
			from[r.by[i]] = append(from[r.by[i]], k)
		}
	}
	for at, places := range from {
		ids := make([]string, len(places))
		for n, k := range places {
			ids[n] = r.req.Edits[chosen[k]].ID
		}
		if err := r.db.bring(ctx, r.stretch.copies[at], t, ids); err != nil {
			r.db.c.log.Debug("purged edit not settled", zap.String("copy", t.name), zap.String("node", t.node), zap.Error(err))
			continue
		}
		for _, k := range places {
			errs[k] = nil
		}
	}
	return errs
}

package indexes

import (
	"context"

	"divan/cluster"
	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard/ring"
)

// OnCopies asks all copies of a database at once, and returns the answers of each
// range, in the order in which queries read the copies. Copies that do not answer
// are left out; a range without any answer is an error.
func OnCopies[T any](ctx context.Context, db *cluster.DB, ask func(context.Context, replica.Copy, ring.Replica) (T, error)) ([][]T, error) {
	sources, err := db.Sources("", true)
	if err != nil {
		return nil, err
	}
	asked := db.Asking()
	ctx, cancel := asked.Deadline(ctx)
	defer cancel()
	out := make([][]T, len(sources))
	err = fanout.Each(len(sources), func(i int) error {
		copies := sources[i]
		answers, errs := make([]T, len(copies)), make([]error, len(copies))
		_ = fanout.Each(len(copies), func(k int) error { // errors are looked at below
			rep := asked.Replica(copies[k])
			if rep.Away() {
				errs[k] = fanout.NodeDown(copies[k].Node)
				return nil
			}
			answers[k], errs[k] = ask(ctx, rep, copies[k])
			return nil
		})
		var failure error
		for k := range copies {
			if errs[k] == nil {
				out[i] = append(out[i], answers[k])
			} else {
				failure = quorum.Telling(failure, errs[k])
			}
		}
		if len(out[i]) == 0 {
			return failure
		}
		return nil
	})
	return out, asked.Explain(ctx, err)
}

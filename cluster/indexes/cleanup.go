package indexes

import (
	"context"

	"divan/cluster"
	"divan/cluster/replica"
	"divan/shard/index"
	"divan/shard/ring"
)

// Cleanup removes the indexes of a type that no design document wants any more, on all copies
// that can be reached.
func (x *Indexes) Cleanup(ctx context.Context, db *cluster.DB, t index.Type) error {
	wanted, err := x.Wanted(ctx, db)
	if err != nil {
		return err
	}
	var keep []string
	for i := range wanted {
		if wanted[i].Type == t {
			keep = append(keep, wanted[i].Signature)
		}
	}
	_, err = OnCopies(ctx, db, func(ctx context.Context, rep replica.Copy, at ring.Replica) (replica.Done, error) {
		return replica.IndexCleanup.On(ctx, rep, replica.CleanupRequest{Copy: at.Name, Type: t, Keep: keep})
	})
	return err
}

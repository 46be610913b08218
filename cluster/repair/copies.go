package repair

import (
	"context"

	"divan/cluster/replica"
	"divan/shard"
)

// putLocal writes a local document of the server itself.
func putLocal(ctx context.Context, to *End, id string, body []byte) error {
	results, err := replica.Update.On(ctx, to.Copy, shard.UpdateRequest{
		Copy: to.Name, Edits: []shard.Edit{{ID: id, Body: body}}, Trusted: true, NoPath: true,
	})
	if err != nil {
		return err
	}
	return results[0].Err
}

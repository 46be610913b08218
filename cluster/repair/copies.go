package repair

import (
	"context"

	"divan/cluster/replica"
	"divan/shard"
)

// putLocal writes a local document of the server itself.
func putLocal(ctx context.Context, to *End, id string, body []byte) error {
	refused, err := replica.Follow.On(ctx, to.Copy, shard.FollowRequest{Copy: to.Name, Edits: []shard.Edit{{ID: id, Body: body}}})
	if err != nil {
		return err
	}
	return refused[0]
}

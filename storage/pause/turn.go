package pause

import "context"

// Turn waits for the one place in a channel, which orders what takes longer than a mutex may be held. done gives
// the place back. The error is that of ctx, when it ends first.
func Turn(ctx context.Context, turn chan struct{}) (done func(), err error) {
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

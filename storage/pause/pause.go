// Package pause waits.
package pause

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends: then the error is that of ctx.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package clone

import (
	"context"
	"runtime"
)

// paceBytes is how much is read before the limit of bandwidth is asked, about.
const paceBytes = 256 << 10

// pace holds a Run to what clients leave.
type pace struct {
	limit func(ctx context.Context, bytes int) error
	bytes int
}

// wait is called after each few of the bytes that a Run reads.
func (p *pace) wait(ctx context.Context, bytes int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	runtime.Gosched()
	if p.bytes += bytes; p.bytes < paceBytes {
		return nil
	}
	n := p.bytes
	p.bytes = 0
	if err := p.limit(ctx, n); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return nil
}

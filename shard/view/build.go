package view

import "context"

// Build returns when the index of a definition on a copy holds everything that was durable
// in the copy when it was called.
func (v *Views) Build(ctx context.Context, copyName string, d *Definition) error {
	use, _, err := v.acquire(ctx, copyName, v.spec(copyName, d))
	if err != nil {
		return err
	}
	defer use.Release()
	return use.Update(ctx)
}

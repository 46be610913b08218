package designdocs

import (
	"context"
	"fmt"

	"divan/cluster"
	"divan/shard"
	"divan/storage/fault"
)

// Filter finds the function that a filter of changes names, next to the copy whose
// changes are filtered. It is the one that the design document had when the feed
// began, as long as its text is stored.
func (c *Cache) Filter(ctx context.Context, f *shard.Filter) (shard.BatchMatcher, error) {
	fn := &f.Function
	d, err := c.revision(ctx, fn)
	if err != nil {
		return nil, fmt.Errorf("find filter %s of %s: %w", fn.Name, fn.Design, err)
	}
	functions := d.Functions()
	if f.Kind == shard.FilterView {
		return func(ctx context.Context, docs [][]byte) ([]bool, error) {
			return functions.FilterView(ctx, fn.Name, docs)
		}, nil
	}
	return func(ctx context.Context, docs [][]byte) ([]bool, error) {
		return functions.Filter(ctx, fn.Name, docs, fn.Request)
	}, nil
}

// revision returns the design document that a filter names.
func (c *Cache) revision(ctx context.Context, fn *shard.FilterFunc) (*Document, error) {
	db, err := c.o.DB(ctx, fn.DB)
	if err != nil {
		return nil, err
	}
	d, err := c.Get(ctx, db, fn.Design)
	if err == nil && d.Rev == fn.Rev || err != nil && !fault.Is(err, fault.NotFound) {
		return d, err
	}
	found, err := db.Open(ctx, cluster.OpenOptions{ID: fn.Design, Rev: fn.Rev})
	if err != nil {
		return nil, err
	}
	return newDocument(c.o.Scripts, db.Instance(), found), nil
}

package protocol

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"divan/replicator/endpoint"
	"divan/shard"
)

// piecemeal is a source whose feed gives one change at a time.
type piecemeal struct{ *store }

func (p piecemeal) Changes(ctx context.Context, q endpoint.ChangesQuery) (endpoint.Feed, error) {
	f, err := p.store.Changes(ctx, q)
	return onlyOne{f}, err
}

type onlyOne struct{ endpoint.Feed }

func (o onlyOne) Next(ctx context.Context, rows []endpoint.Change) (int, error) {
	return o.Feed.Next(ctx, rows[:1])
}

// counting is a target that notes how many documents it was asked about at once.
type counting struct {
	*store
	most atomic.Int64
}

func (c *counting) Missing(ctx context.Context, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	c.most.Store(max(c.most.Load(), int64(len(ids))))
	return c.store.Missing(ctx, ids)
}

// Batches are small where ids are long, for any worker_batch_size: they are held in memory.
func TestLongIDs(t *testing.T) {
	a, b := newStore("a"), &counting{store: newStore("b")}
	for i := range 20 {
		a.edit(fmt.Sprint(i, strings.Repeat("x", 1<<20)), "{}")
	}
	s := request()
	s.Workers = 1
	replicate(t, piecemeal{a}, b, s)
	same(t, a, b.store)
	if most := b.most.Load(); most > 4 {
		t.Errorf("%d changes with ids of 1 MB in a batch", most)
	}
}

// unfiltered is a source that takes no notice of filters.
type unfiltered struct{ *store }

func (u unfiltered) Changes(ctx context.Context, q endpoint.ChangesQuery) (endpoint.Feed, error) {
	q.Filter = endpoint.Filter{}
	return u.store.Changes(ctx, q)
}

// What a source tells of other documents than those it was asked about is not held.
func TestLeavesOfOthers(t *testing.T) {
	a := newStore("a")
	for i := range 100 {
		a.edit(fmt.Sprint(i), "{}")
	}
	r := &run{Options: options(unfiltered{a}, newStore("b"), request())}
	got, err := r.leaves(t.Context(), []endpoint.Wanted{{ID: "7"}, {ID: "gone"}})
	if err != nil || len(got) != 2 || len(got["7"]) != 1 || got["gone"] != nil {
		t.Errorf("%v, %v", got, err)
	}
}

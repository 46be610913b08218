package figures_test

import (
	"errors"
	"sync"
	"testing"

	"divan/cluster"
	"divan/cluster/figures"
	"divan/shard"
	"divan/storage/fault"
)

// A refusal is no failure of the cluster; an edit that too few copies have, or maybe
// none, is one.
func TestCounters(t *testing.T) {
	refused, lost := fault.New(fault.Conflict, "x"), fault.New(fault.Unavailable, "x")
	for name, tc := range map[string]struct {
		results []shard.EditResult
		err     error
		want    figures.Figures
	}{
		"good":           {[]shard.EditResult{{}, {}, {}}, nil, figures.Figures{}},
		"refused":        {[]shard.EditResult{{}, {Err: refused}, {Err: refused}}, nil, figures.Figures{}},
		"too few copies": {[]shard.EditResult{{Accepted: true}, {}, {Accepted: true}}, nil, figures.Figures{QuorumErrors: 2}},
		"no copy":        {[]shard.EditResult{{Err: lost}, {}, {Err: errors.New("x")}}, nil, figures.Figures{UpdateErrors: 2}},
		"none of all":    {nil, lost, figures.Figures{UpdateErrors: 3}},
		"all refused":    {nil, fault.New(fault.MissingStub, "x"), figures.Figures{}},
	} {
		var c figures.Counters
		c.Updated(3, tc.results, tc.err, cluster.Refusal)
		if got := c.Now(); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	var c figures.Counters
	c.Repaired(nil)
	c.Repaired(lost)
	if got := c.Now(); got.ReadRepairs != 2 || got.FailedReadRepairs != 1 {
		t.Errorf("%+v", got)
	}
}

// However many repairs fail meanwhile, no more of them have failed than there were.
func TestNoMoreFailuresThanRepairs(t *testing.T) {
	var c figures.Counters
	var wg sync.WaitGroup
	end := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
				c.Repaired(errors.New("no copy"))
			}
		}
	})
	for range 1_000_000 {
		if f := c.Now(); f.FailedReadRepairs > f.ReadRepairs {
			t.Errorf("%d of %d", f.FailedReadRepairs, f.ReadRepairs)
			break
		}
	}
	close(end)
	wg.Wait()
}

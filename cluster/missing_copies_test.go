package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/fault"
)

// damaged is a copy that cannot be read.
type damaged struct{ to replica.Copies }

func (d damaged) Do(ctx context.Context, call replica.Call) error {
	if _, ok := call.(*replica.Asked[shard.OpenRequest, *shard.Doc]); ok {
		return fault.New(fault.Corruption, "the file is damaged")
	}
	return call.On(ctx, d.to)
}

// TestDamageIsNotHidden: the files of one copy are gone, the others are damaged. That is what is told, at once.
func TestDamageIsNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		d := w.create("pond", CreateOptions{Q: 1})
		w.settleWrites()
		w.lose(d.routing.All()[0].Name)
		for _, link := range w.fleet.links {
			link.to = damaged{link.to}
		}
		begun := time.Now()
		err := w.Do(t.Context(), "pond", func(d *DB) error {
			_, err := d.Open(t.Context(), OpenOptions{ID: "frog"})
			return err
		})
		if !fault.Is(err, fault.Corruption) || time.Since(begun) > 0 {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

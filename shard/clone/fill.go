package clone

import (
	"context"
	"errors"
	"fmt"

	"divan/storage"
)

// fill fills the empty target.
func (r *run) fill(ctx context.Context) error {
	c := r.Source.Counters()
	done, total := uint64(0), c.Live+c.Deleted
	filling, err := r.Target.Fill(r.Source, storage.FillOptions{
		Origins: r.originsAt(c.Seq), Belongs: r.Belongs,
		Looked: func(docs, copied int) error {
			done += uint64(docs)
			r.Progress(done, total)
			return r.pace.wait(ctx, copied)
		},
	})
	if err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	if err := r.Write(ctx, &Step{run: r, filling: filling, Design: filling.Design(), Last: true}); err != nil {
		return errors.Join(err, filling.Discard())
	}
	r.Progress(total, total)
	return nil
}

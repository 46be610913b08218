package repair

import (
	"context"
	"fmt"
	"strconv"

	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	localPrefix = "_local/"
	// maxLocalBytes and maxLocalDocs bound how much of local documents is sent at once.
	maxLocalBytes = 1 << 20
	maxLocalDocs  = 100
)

// localDocs brings the local documents of clients to a target that comes in the place of others: those
// that it has of a lower count, and if it is new those that it does not have. Edits meanwhile go to both
// ends by themselves. One that is deleted in that very moment may come back to a new target, as nothing
// is kept of deletions.
func (p *push) localDocs(ctx context.Context, isNew bool) error {
	if err := p.copyLocalDocs(ctx, isNew); err != nil {
		return fmt.Errorf("local documents: %w", err)
	}
	return nil
}

func (p *push) copyLocalDocs(ctx context.Context, isNew bool) error {
	s, err := p.local.LocalDocs(ctx, shard.LocalDocsRequest{Copy: p.source.Name, Lo: localPrefix, Hi: localPrefix + "\xff", HasHi: true})
	if err != nil {
		return err
	}
	defer s.Close()
	holds := p.target.holds(&p.source, p.limits.Partitioned)
	var b shard.LocalBatch
	var edits []shard.Edit
	bytes := 0
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			return err
		}
		for i := range b.Rows {
			d := &b.Rows[i]
			if holds != nil && !holds(d.ID) {
				continue
			}
			behind, err := p.lacksLocal(ctx, d, isNew)
			if err != nil {
				return err
			}
			if !behind {
				continue
			}
			edits = append(edits, shard.Edit{ID: d.ID, Parent: doc.Rev{ID: strconv.FormatUint(d.Rev-1, 10)}, Body: d.Body})
			if bytes += len(d.Body); bytes >= maxLocalBytes || len(edits) == maxLocalDocs {
				if err := p.sendLocalDocs(ctx, edits); err != nil {
					return err
				}
				edits, bytes = edits[:0], 0
			}
		}
		if err := p.sendLocalDocs(ctx, edits); err != nil { // before the batch is used again
			return err
		}
		edits, bytes = edits[:0], 0
	}
	return nil
}

// lacksLocal reports whether a local document is missing in a target that is new, or has a lower count there.
func (p *push) lacksLocal(ctx context.Context, d *shard.LocalDoc, isNew bool) (bool, error) {
	if d.Rev == 0 {
		return false, nil // no client has written that
	}
	there, err := replica.LocalGet.On(ctx, p.target.Copy, replica.LocalGetRequest{Copy: p.target.Name, ID: d.ID})
	switch {
	case fault.Is(err, fault.NotFound):
		return isNew, nil
	case err != nil:
		return false, err
	default:
		return there.Rev < d.Rev, nil
	}
}

func (p *push) sendLocalDocs(ctx context.Context, edits []shard.Edit) error {
	if len(edits) == 0 {
		return nil
	}
	p.progress.touch()
	results, err := replica.Update.On(ctx, p.target.Copy, shard.UpdateRequest{
		Copy: p.target.Name, Edits: edits, NewEdits: true, Trusted: true, NoPath: true,
	})
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

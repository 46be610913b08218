package protocol

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/pause"
)

const (
	// missingDelay is how long the source gets to show a revision that its
	// changes told of.
	missingDelay = 2 * time.Second
	// attempts is how often a batch is tried when connections break, the endpoints'
	// own attempts not counted: a stream that is cut in its middle is not
	// theirs to begin again.
	attempts     = 3
	attemptDelay = 500 * time.Millisecond
)

// transfer copies what the target lacks of a batch of changes.
func (r *run) transfer(ctx context.Context, rows []endpoint.Change) error {
	ids := make([]shard.IDRevs, len(rows))
	var checked int
	for i := range rows {
		ids[i] = shard.IDRevs{ID: rows[i].ID, Revs: rows[i].Revs}
		checked += len(rows[i].Revs)
	}
	counted := false
	for n := 1; ; n++ {
		wanted, err := r.missing(ctx, ids)
		if err == nil {
			if !counted {
				r.count(checked, wanted)
				counted = true
			}
			err = r.fetchAll(ctx, merged(wanted), rows)
		}
		if err == nil || n == attempts || ctx.Err() != nil || !endpoint.Retryable(err) {
			return err
		}
		r.log.Info("a batch is tried again", zap.Error(err))
		if pause.For(ctx, time.Duration(n)*attemptDelay) != nil {
			return context.Cause(ctx)
		}
	}
}

// count notes what came out of comparing, and how large the next batches are:
// comparing costs little for each change, so that where little is missing more
// of them go together.
func (r *run) count(checked int, wanted []endpoint.Wanted) {
	found := revisions(wanted)
	r.Progress.update(func(s *Stats) {
		s.RevisionsChecked += int64(checked)
		s.MissingFound += int64(found)
	})
	size := int64(r.Spec.BatchSize)
	if found <= checked/8 {
		size = max(size, min(2*r.size.Load(), maxBatch))
	}
	r.size.Store(size)
}

func revisions(wanted []endpoint.Wanted) int {
	var n int
	for i := range wanted {
		n += len(wanted[i].Revs)
	}
	return n
}

// missing asks the target what it does not have, in parts if it takes no
// more.
func (r *run) missing(ctx context.Context, ids []shard.IDRevs) ([]endpoint.Wanted, error) {
	answer, err := r.Target.Missing(ctx, ids)
	if half := len(ids) / 2; half > 0 && fault.Is(err, fault.RequestTooLarge) {
		first, err := r.missing(ctx, ids[:half])
		if err != nil {
			return nil, err
		}
		second, err := r.missing(ctx, ids[half:])
		return append(first, second...), err
	}
	if err != nil {
		return nil, fmt.Errorf("ask the %s for what is missing: %w", r.target.name, err)
	}
	var wanted []endpoint.Wanted
	for i := range answer {
		if a := &answer[i]; len(a.Missing) > 0 {
			if wanted == nil {
				wanted = make([]endpoint.Wanted, 0, len(answer)-i)
			}
			wanted = append(wanted, endpoint.Wanted{ID: a.ID, Revs: a.Missing, Ancestors: a.PossibleAncestors})
		}
	}
	return wanted, nil
}

// merged has one entry for each document. A continuous feed may tell of one
// several times in a batch, and the source then shows its newest revision once.
func merged(wanted []endpoint.Wanted) []endpoint.Wanted {
	places := make(map[string]int, len(wanted))
	out := wanted[:0]
	for _, w := range wanted {
		at, ok := places[w.ID]
		if !ok {
			places[w.ID] = len(out)
			out = append(out, w)
			continue
		}
		out[at].Revs = union(out[at].Revs, w.Revs)
		out[at].Ancestors = union(out[at].Ancestors, w.Ancestors)
	}
	return out
}

func union(a, b []doc.Rev) []doc.Rev {
	a = slices.Clip(a)
	for _, r := range b {
		if !slices.Contains(a, r) {
			a = append(a, r)
		}
	}
	return a
}

// fetchAll copies revisions that rows told of, as many at once as were asked for.
func (r *run) fetchAll(ctx context.Context, wanted []endpoint.Wanted, rows []endpoint.Change) error {
	for part := range slices.Chunk(wanted, r.Spec.BatchSize) {
		if err := r.fetch(ctx, part, rows); err != nil {
			return err
		}
	}
	return nil
}

// fetch copies revisions. Those that the source does not show yet get some time,
// and those whose stubs the target does not know come again with their
// attachments.
func (r *run) fetch(ctx context.Context, wanted []endpoint.Wanted, rows []endpoint.Change) error {
	first := newLoad(r, wanted)
	if err := first.move(ctx); err != nil {
		return err
	}
	bare := first.bare
	if late := r.stillLeaves(ctx, first.late(), rows); len(late) > 0 {
		r.log.Info("the source does not show revisions that its changes told of",
			zap.String("document", late[0].ID), zap.Int("documents", len(late)))
		if pause.For(ctx, missingDelay) != nil {
			return context.Cause(ctx)
		}
		again := newLoad(r, late)
		if err := again.move(ctx); err != nil {
			return err
		}
		if err := r.notShown(r.stillLeaves(ctx, again.late(), rows)); err != nil {
			return err
		}
		bare = append(bare, again.bare...)
	}
	if len(bare) == 0 {
		return nil
	}
	last := newLoad(r, merged(bare))
	last.whole = true
	if err := last.move(ctx); err != nil {
		return err
	}
	return r.notShown(r.stillLeaves(ctx, last.late(), rows))
}

// notShown fails for revisions that the source does not show.
func (r *run) notShown(late []endpoint.Wanted) error {
	if len(late) == 0 {
		return nil
	}
	return fault.Newf(fault.Unavailable, "the %s does not show revision %s of document %q", r.source.name, late[0].Revs[0], late[0].ID)
}
